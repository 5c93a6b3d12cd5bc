from __future__ import annotations

import sys
from mmap import PAGESIZE, mmap
from pathlib import Path

import pytest

from spandet.inference import memory
from spandet.inference.memory import MemoryGuard, resident_bytes


def test_memory_is_released_when_the_process_has_grown_by_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = [100]
    trimmed = []

    def release_memory() -> None:
        trimmed.append(held[0])
        held[0] = 120

    monkeypatch.setattr(memory, "resident_bytes", lambda: held[0])
    monkeypatch.setattr(memory, "release_memory", release_memory)
    guard = MemoryGuard()
    for now in (100, 150, 151, 150, 180, 181):
        held[0] = now
        guard.check()

    assert trimmed == [151, 181]  # more than 1.5 × 100, then more than 1.5 × 120


def test_without_proc_no_memory_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", Path("/nowhere/statm"))
    monkeypatch.setattr(memory, "release_memory", pytest.fail)

    assert resident_bytes() == 0
    MemoryGuard().check()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_resident_memory_is_in_bytes() -> None:
    before = resident_bytes()
    with mmap(-1, 64 << 20) as fresh:  # new memory, which no other test has freed
        for place in range(0, len(fresh), PAGESIZE):
            fresh[place] = 1
        assert 0.9 * len(fresh) < resident_bytes() - before < 2 * len(fresh)
