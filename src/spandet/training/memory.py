"""Memory that batches of ever new shapes leave behind."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


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
