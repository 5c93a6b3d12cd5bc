"""Tasks are timed alternately, and the best time of each is returned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spandet.benchmarking import measuring
from spandet.benchmarking.measuring import (
    Timing,
    best_times,
    encoded_lengths,
    sample,
    sorted_batches,
    torch_threads,
)


@given(st.integers(1, 6), st.integers(1, 6))
def test_every_round_runs_each_task_once_from_another_start(count: int, rounds: int) -> None:
    calls: list[int] = []
    tasks = [lambda number=number: calls.append(number) for number in range(count)]
    assert len(best_times(tasks, Timing(rounds=rounds))) == count
    turns = [calls[i : i + count] for i in range(0, len(calls), count)]
    assert len(turns) == rounds
    assert all(sorted(turn) == list(range(count)) for turn in turns)
    assert [turn[0] for turn in turns] == [number % count for number in range(rounds)]


def test_the_best_time_of_each_task_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def passing(times: Iterator[float]) -> None:
        nonlocal now
        now += next(times)

    monkeypatch.setattr(measuring, "process_time", lambda: now)
    ours, theirs = iter([3.0, 1.0, 2.0]), iter([5.0, 9.0, 4.0])
    tasks = [lambda: passing(ours), lambda: passing(theirs)]
    assert best_times(tasks, Timing(rounds=3)) == [1.0, 4.0]


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        _ = 1 / 0
    assert torch.get_num_threads() == before


def test_cpu_time_is_used_with_one_thread_only() -> None:
    assert Timing(threads=2).clock == "wall-clock time"


@given(st.lists(st.integers(0, 9)), st.integers(1, 5), st.integers(1, 60))
def test_batches_contain_every_sentence_with_words_once(
    lengths: list[int], size: int, sentences: int
) -> None:
    batches = sorted_batches([[number] for number in range(len(lengths))], lengths, size)
    inside = [number for batch in batches for number in batch]
    assert sorted(inside) == [number for number, length in enumerate(lengths) if length]
    assert [lengths[number] for number in inside] == sorted(filter(None, lengths))
    assert all(len(batch) == size for batch in batches[:-1])
    some = sample(batches, sentences)
    firsts = [batch[0] for batch in some]
    assert len(set(firsts)) == len(firsts)
    assert all(batch in batches for batch in some)
    total = sum(map(len, some))
    assert total == len(inside) if len(inside) <= sentences else abs(total - sentences) <= 2 * size


def test_a_passage_is_in_one_batch_with_the_length_of_all_its_sentences() -> None:
    runs = [[0, 1, 2], [3], [4, 5]]
    lengths = encoded_lengths(runs, [1, 0, 6, 5, 2, 1])
    assert lengths == [7, 7, 7, 5, 3, 3]
    assert sorted_batches(runs, lengths, 3) == [[4, 5, 3], [0, 1, 2]]
    assert sorted_batches(runs, lengths, 1) == [[4, 5], [3], [0, 1, 2]]
