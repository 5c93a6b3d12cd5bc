from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from spandet.text import WordRow
from spandet.training.batches import batches, share_of_process
from spandet.training.data import TrainingSentences
from spandet.training.recipe import TrainingSettings

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
