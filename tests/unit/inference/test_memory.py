from __future__ import annotations

import sys
from mmap import PAGESIZE, mmap
from pathlib import Path

import pytest

from spandet.inference import memory
from spandet.inference.memory import Tidiness, resident


def test_memory_is_released_when_the_process_has_grown_by_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = [100]
    trimmed = []

    def give_back() -> None:
        trimmed.append(held[0])
        held[0] = 120

    monkeypatch.setattr(memory, "resident", lambda: held[0])
    monkeypatch.setattr(memory, "give_back", give_back)
    tidiness = Tidiness()
    for now in (100, 150, 151, 150, 180, 181):
        held[0] = now
        tidiness.keep()

    assert trimmed == [151, 181]  # half as much again as 100, and then as 120


def test_without_proc_no_memory_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", Path("/nowhere/statm"))
    monkeypatch.setattr(memory, "give_back", pytest.fail)

    assert resident() == 0
    Tidiness().keep()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_resident_memory_is_in_bytes() -> None:
    before = resident()
    with mmap(-1, 64 << 20) as fresh:  # memory that no other test has left behind
        for place in range(0, len(fresh), PAGESIZE):
            fresh[place] = 1
        assert 0.9 * len(fresh) < resident() - before < 2 * len(fresh)
