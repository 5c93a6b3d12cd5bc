"""Time that other work on the machine changes little: in turn, repeated, the best of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time

import torch

Work = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How much is timed, and how."""

    sentences: int = 200
    """About so many sentences, evenly taken from all."""
    batch: int = 8
    """Sentences of a batch."""
    rounds: int = 4
    """How often each batch is timed; the best time counts."""
    threads: int = 1
    """With one thread, time is the processor's; with more, that of the clock on the wall."""

    @property
    def clock(self) -> str:
        """Whose time it is, in words."""
        return "processor time" if _is_processors(self.threads) else "wall-clock time"

    def described(self) -> str:
        """The method in half a sentence."""
        some = "one thread" if self.threads == 1 else f"{self.threads} threads"
        return f"best of {self.rounds} rounds taken in turn, {some}, {self.clock}"


def _is_processors(threads: int) -> bool:
    """Can the processor's own time be used? It adds up over threads, and a GPU has none."""
    return threads == 1 and not torch.accelerator.is_available()


def best_times(works: Sequence[Work], timing: Timing) -> list[float]:
    """Seconds of each piece of work: the best of several rounds.

    The pieces take turns, and every round begins with another one, so that whatever else the
    machine does hits them all alike.
    """
    clock = process_time if _is_processors(timing.threads) else _wall
    times: list[list[float]] = [[] for _ in works]
    for first in range(timing.rounds):
        for turn in range(len(works)):
            chosen = (first + turn) % len(works)
            start = clock()
            works[chosen]()
            times[chosen].append(clock() - start)
    return [min(own) for own in times]


def _wall() -> float:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return perf_counter()


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Inside, torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
