"""Measurement of time and memory, and the batches for it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import torch

from spandet.inference.memory import release_memory

Task = Callable[[], object]
Batch = Sequence[int]
"""Indices of sentences."""

_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Settings of the measurement of time."""

    sentences: int = 200
    """Approximate number of sentences, evenly sampled from all lengths."""
    batch: int = 8
    """Sentences per batch."""
    rounds: int = 4
    """Number of times each batch is timed; the shortest time counts."""
    threads: int = 1
    """CPU threads. With one thread CPU time is measured, with more wall-clock time."""

    @property
    def clock(self) -> str:
        """The kind of time that is measured."""
        return "CPU time" if _uses_cpu_time(self.threads) else "wall-clock time"

    def method(self) -> str:
        """The method in half a sentence."""
        threads = "one thread" if self.threads == 1 else f"{self.threads} threads"
        return f"best of {self.rounds} interleaved rounds, {threads}, {self.clock}"


def _uses_cpu_time(threads: int) -> bool:
    """CPU time adds up over threads and does not include the time of a GPU."""
    return threads == 1 and not torch.accelerator.is_available()


def best_times(tasks: Sequence[Task], timing: Timing) -> list[float]:
    """Seconds of each task: the shortest of several rounds.

    The tasks take turns, and every round begins with another one, so that other load on the machine
    affects all of them equally.
    """
    clock = process_time if _uses_cpu_time(timing.threads) else _wall_clock
    times: list[list[float]] = [[] for _ in tasks]
    for first in range(timing.rounds):
        for turn in range(len(tasks)):
            chosen = (first + turn) % len(tasks)
            start = clock()
            tasks[chosen]()
            times[chosen].append(clock() - start)
    return [min(own) for own in times]


def _wall_clock() -> float:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return perf_counter()


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let torch use this many CPU threads inside the `with` block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def sorted_batches(runs: Sequence[Batch], lengths: Sequence[int], size: int) -> list[Batch]:
    """Batches of about the same size, sorted by length as in training and prediction.

    Args:
        runs: Sentences that are encoded together and therefore stay in one batch.
        lengths: Words that are encoded together with each sentence; sentences with 0 are omitted.
        size: Minimum number of sentences per batch; only the last batch may have fewer.
    """
    batches: list[list[int]] = []
    for run in sorted((r for r in runs if lengths[r[0]]), key=lambda run: lengths[run[0]]):
        if not batches or len(batches[-1]) >= size:
            batches.append([])
        batches[-1].extend(run)
    return list(batches)


def encoded_lengths(runs: Sequence[Batch], lengths: Sequence[int]) -> list[int]:
    """Words that are encoded together with each sentence: the sum over its run."""
    words = [0] * len(lengths)
    for run in runs:
        for sentence in run:
            words[sentence] = sum(lengths[other] for other in run)
    return words


def runs_in(runs: Sequence[Batch], group: Iterable[int]) -> list[Batch]:
    """The runs whose sentences are in a group of equally long ones, which holds runs entirely."""
    inside = frozenset(group)
    return [run for run in runs if run[0] in inside]


def sample(batches: Sequence[Batch], sentences: int) -> list[Batch]:
    """Evenly spaced batches with about this many sentences together."""
    total = sum(map(len, batches))
    if total <= sentences:
        return list(batches)
    count = max(1, round(len(batches) * sentences / total))
    return [batches[i * len(batches) // count] for i in range(count)]


def reset_peak_memory() -> None:
    """Measure the peak from now on; where the system does not support it, the old peak stays."""
    gc.collect()
    release_memory()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    try:
        _CLEAR_REFS.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:  # not Linux, or not permitted
        return


def peak_memory() -> int | None:
    """Peak memory in bytes since the reset, weights included: of the GPU, else of the process."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    try:
        status = _STATUS.read_text(encoding="ascii")
    except OSError:  # not Linux
        return None
    # Not getrusage, which includes the memory of the process before it called exec.
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(peak.split()[1])


def peak_memory_of(task: Task) -> int | None:
    """Peak memory in bytes while a task runs."""
    reset_peak_memory()
    task()
    return peak_memory()


def megabytes(size: int | None) -> str:
    """Bytes as megabytes; empty where unknown."""
    return "" if size is None else f"{size / 1e6:,.0f}"
