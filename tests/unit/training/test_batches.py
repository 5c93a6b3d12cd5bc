from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.text import WordRow
from spandet.training.batches import batches, share_of_process
from spandet.training.data import TrainingSentences
from spandet.training.recipe import Recipe, TrainingSettings

SIZES = st.lists(st.integers(1, 300), max_size=300)
BUDGETS = st.builds(
    TrainingSettings,
    seed=st.integers(0, 5),
    batch_sentences=st.integers(1, 9),
    batch_pieces=st.integers(1, 400),
)


def sentences(sizes: list[int]) -> TrainingSentences:
    """Every sentence is read by itself, and every word is one piece."""
    rows = [WordRow(("word",) * size, ()) for size in sizes]
    return TrainingSentences((), rows, sizes, [[number] for number in range(len(sizes))])


@given(SIZES, BUDGETS, st.integers(0, 3))
def test_every_sentence_is_in_exactly_one_batch(
    sizes: list[int], budget: TrainingSettings, epoch: int
) -> None:
    plan = batches(sentences(sizes), epoch=epoch, settings=budget)

    assert sorted(chain.from_iterable(plan)) == list(range(len(sizes)))


@given(SIZES, BUDGETS)
def test_only_a_single_sentence_may_exceed_the_budget(
    sizes: list[int], budget: TrainingSettings
) -> None:
    for batch in batches(sentences(sizes), epoch=0, settings=budget):
        assert 1 <= len(batch) <= budget.batch_sentences
        padded = len(batch) * max(sizes[i] for i in batch)
        assert padded <= budget.batch_pieces or len(batch) == 1


@given(SIZES, BUDGETS, st.integers(1, 4))
def test_the_shares_of_processes_are_the_whole_batch(
    sizes: list[int], budget: TrainingSettings, processes: int
) -> None:
    for batch in batches(sentences(sizes), epoch=0, settings=budget):
        parts = [share_of_process(batch, process=p, processes=processes) for p in range(processes)]
        assert sorted(chain.from_iterable(parts)) == sorted(batch)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_batches_depend_on_seed_and_epoch_only() -> None:
    given = sentences([i % 37 + 1 for i in range(500)])
    first = TrainingSettings(seed=1, batch_sentences=8)
    plan = batches(given, epoch=0, settings=first)

    assert batches(given, epoch=0, settings=first) == plan
    assert batches(given, epoch=1, settings=first) != plan
    assert batches(given, epoch=0, settings=first.model_copy(update={"seed": 2})) != plan


def test_batches_have_sentences_of_similar_length() -> None:
    sizes = [i * 7919 % 100 + 1 for i in range(5000)]
    plan = batches(sentences(sizes), epoch=0, settings=TrainingSettings(batch_sentences=16))
    padded = sum(len(batch) * max(sizes[i] for i in batch) for batch in plan)

    assert padded < 1.06 * sum(sizes)  # in random batches it is 1.8


@given(SIZES, BUDGETS)
def test_the_first_epochs_may_be_sorted_by_length(
    sizes: list[int], budget: TrainingSettings
) -> None:
    given = sentences(sizes)
    ordered = budget.model_copy(update={"short_first_epochs": 2})
    for epoch in (0, 1):
        plan = batches(given, epoch=epoch, settings=ordered)
        longest = [max(sizes[number] for number in batch) for batch in plan]
        assert longest == sorted(longest)
        assert sorted(plan) == sorted(batches(given, epoch=epoch, settings=budget))
    later = batches(given, epoch=2, settings=ordered)
    assert later == batches(given, epoch=2, settings=budget)


def with_context(neighbours: int, *, longest: int = 512) -> list[int]:
    """Pieces of the sentences of abstracts with their neighbours, of lengths as in GENIA."""
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(300):
        own = rng.lognormal(3.6, 0.45, size=9).astype(int).clip(3, 200)
        for place in range(len(own)):
            seen = own[max(0, place - neighbours) : place + neighbours + 1]
            sizes.append(min(int(seen.sum()) + 2, longest))
    return sizes


@pytest.mark.parametrize("preset", ["paper", "released-code"])
@pytest.mark.parametrize("name", ["locate-and-label", "proposer-regressor", "boundary-diffusion"])
def test_batches_of_published_presets_are_full(name: str, preset: str) -> None:
    values = {
        "encoder": {"transformer": {"name": "bert-large-cased"}},
        "detector": {"name": name, "preset": preset},
    }
    recipe = Recipe.from_values(values)
    transformer, settings = recipe.model.encoder.transformer, recipe.training
    assert transformer is not None
    neighbours = transformer.neighbour_sentences or 2  # 128 pieces of context are fewer
    plan = batches(sentences(with_context(neighbours)), epoch=0, settings=settings)
    assert sum(len(batch) < settings.batch_sentences for batch in plan) <= 1


def test_the_default_budget_cuts_batches_with_context() -> None:
    settings = TrainingSettings(batch_sentences=8)
    plan = batches(sentences(with_context(2)), epoch=0, settings=settings)
    assert sum(len(batch) < 8 for batch in plan) > 10


def test_a_batch_of_the_longest_rows_is_not_cut() -> None:
    """A transformer reads at most 512 pieces at once."""
    recipe = Recipe.from_values(
        {"encoder": {"hashed": {}}, "detector": {"name": "locate-and-label", "preset": "paper"}}
    )
    plan = batches(sentences([512] * 80), epoch=0, settings=recipe.training)
    assert {len(batch) for batch in plan} == {8}
