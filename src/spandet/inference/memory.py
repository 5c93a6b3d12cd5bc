"""Memory that batches of ever new shapes leave behind."""

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
    """The C library, if it is one that can trim."""
    try:
        return ctypes.CDLL("libc.so.6")
    except OSError:  # not glibc: its allocator has no such holes, or no such call
        return None


def give_back() -> None:
    """Return freed memory to the system.

    Batches differ in length, so the holes that one leaves rarely fit the next, and glibc keeps them
    all: without this, a long run on a CPU grows to several times what a step needs.
    """
    libc = _libc()
    if libc is not None:
        libc.malloc_trim(0)


def resident() -> int:
    """How many bytes of memory this process has; 0 where nobody can tell."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class Tidiness:
    """Gives memory back whenever the process has grown by half since it last did.

    At every step, this would cost a tenth of the time: what is given back is asked for again.
    """

    def __init__(self) -> None:
        self._held = resident()

    def keep(self) -> None:
        """Look, and tidy up if need be; to be called after every step."""
        if resident() > _GROWTH * self._held:
            give_back()
            self._held = resident()
