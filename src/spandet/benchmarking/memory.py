"""The most memory that a piece of work has needed."""

from __future__ import annotations

import gc
from pathlib import Path

import torch

from spandet.benchmarking.clock import Work
from spandet.inference.memory import give_back

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"


def forget_peak() -> None:
    """From now on, look for a new peak. Where the system cannot, the old one stays."""
    gc.collect()
    give_back()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    try:
        _FORGET.write_text(_FORGET_PEAK, encoding="ascii")
    except OSError:  # not Linux, or not allowed
        return


def peak_bytes() -> int | None:
    """The most memory since `forget_peak`, weights included: a GPU's, else that of the process."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    try:
        status = _STATUS.read_text(encoding="ascii")
    except OSError:  # not Linux
        return None
    # Not getrusage, which also counts what the process was before it became this one.
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * int(peak.split()[1])


def peak_of(work: Work) -> int | None:
    """The most memory while this was done."""
    forget_peak()
    work()
    return peak_bytes()


def megabytes(size: int | None) -> str:
    """In words; nothing where nobody can tell."""
    return "" if size is None else f"{size / 1e6:,.0f}"
