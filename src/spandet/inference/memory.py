"""Release of freed memory to the operating system."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

_STATM = Path("/proc/self/statm")
_GROWTH = 1.5


@cache
def _libc() -> Any:
    """The C library if it is glibc, otherwise None."""
    try:
        return ctypes.CDLL("libc.so.6")
    except OSError:  # not glibc: other allocators do not need it
        return None


def release_memory() -> None:
    """Return freed memory to the operating system.

    Batches differ in length, so memory freed by one rarely fits the next, and glibc keeps all of
    it: without this, a long run on a CPU grows to several times the memory of a step.
    """
    libc = _libc()
    if libc is not None:
        libc.malloc_trim(0)


def resident_bytes() -> int:
    """Resident memory of this process in bytes; 0 if it is unknown."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class MemoryGuard:
    """Releases memory whenever the process has grown by half since the last release.

    A release after every step would take a tenth of the time.
    """

    def __init__(self) -> None:
        self._held = resident_bytes()

    def check(self) -> None:
        """Release memory if necessary; called after every step."""
        if resident_bytes() > _GROWTH * self._held:
            release_memory()
            self._held = resident_bytes()
