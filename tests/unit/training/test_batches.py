from __future__ import annotations

from itertools import chain, count

from hypothesis import given
from hypothesis import strategies as st

from spandet.training.batches import batches, part_of
from spandet.training.settings import TrainingSettings

SIZES = st.lists(st.integers(1, 300), max_size=300)
BUDGETS = st.builds(
    TrainingSettings,
    seed=st.integers(0, 5),
    batch_sentences=st.integers(1, 9),
    batch_pieces=st.integers(1, 400),
)


def alone(sizes: list[int]) -> list[list[int]]:
    """Every sentence is read by itself."""
    return [[number] for number in range(len(sizes))]


@given(SIZES, BUDGETS, st.integers(0, 3))
def test_every_sentence_is_in_exactly_one_batch(
    sizes: list[int], budget: TrainingSettings, epoch: int
) -> None:
    plan = batches(alone(sizes), sizes, epoch=epoch, settings=budget)

    assert sorted(chain.from_iterable(plan)) == list(range(len(sizes)))


@given(SIZES, BUDGETS)
def test_only_a_single_sentence_may_break_the_budget(
    sizes: list[int], budget: TrainingSettings
) -> None:
    for batch in batches(alone(sizes), sizes, epoch=0, settings=budget):
        assert 1 <= len(batch) <= budget.batch_sentences
        padded = len(batch) * max(sizes[i] for i in batch)
        assert padded <= budget.batch_pieces or len(batch) == 1


@given(SIZES, BUDGETS, st.integers(1, 4))
def test_the_parts_of_a_batch_are_the_batch(
    sizes: list[int], budget: TrainingSettings, processes: int
) -> None:
    for batch in batches(alone(sizes), sizes, epoch=0, settings=budget):
        parts = [part_of(batch, process=p, processes=processes) for p in range(processes)]
        assert sorted(chain.from_iterable(parts)) == sorted(batch)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_seed_and_epoch_decide() -> None:
    sizes = [i % 37 + 1 for i in range(500)]
    first = TrainingSettings(seed=1, batch_sentences=8)
    plan = batches(alone(sizes), sizes, epoch=0, settings=first)

    assert batches(alone(sizes), sizes, epoch=0, settings=first) == plan
    assert batches(alone(sizes), sizes, epoch=1, settings=first) != plan
    assert (
        batches(alone(sizes), sizes, epoch=0, settings=first.model_copy(update={"seed": 2})) != plan
    )


def test_sentences_of_similar_length_meet() -> None:
    sizes = [i * 7919 % 100 + 1 for i in range(5000)]
    plan = batches(alone(sizes), sizes, epoch=0, settings=TrainingSettings(batch_sentences=16))
    padded = sum(len(batch) * max(sizes[i] for i in batch) for batch in plan)

    assert padded < 1.06 * sum(sizes)  # in random batches it is 1.8


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 300)), max_size=100), BUDGETS)
def test_what_is_read_as_one_stays_together_and_is_counted_once(
    shapes: list[tuple[int, int]], budget: TrainingSettings
) -> None:
    numbers = count()
    runs = [[next(numbers) for _ in range(length)] for length, _ in shapes]
    sizes = [size for length, size in shapes for _ in range(length)]
    plan = batches(runs, sizes, epoch=0, settings=budget)
    by_first = {run[0]: run for run in runs}
    for batch in plan:
        inside = [sentence for sentence in batch if sentence in by_first]
        assert list(batch) == list(chain.from_iterable(by_first[first] for first in inside))
        padded = len(inside) * max(sizes[first] for first in inside)
        fits = len(batch) <= budget.batch_sentences and padded <= budget.batch_pieces
        assert fits or len(inside) == 1
