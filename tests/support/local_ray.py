"""A Ray cluster of this process, started once, because it takes long; and a limit on waiting."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType

import pytest

IGNORED = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
"""Ray reads deprecated settings of its own, and leaves files to the garbage collector."""
CPUS = 2


@lru_cache
def local_ray() -> None:
    """Start a cluster that nobody else can reach and that tells nobody of itself."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # or it leaves one in the user's home
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (or workers starve when it is busy)
    os.environ.pop("RAY_ADDRESS", None)
    ray.init(num_cpus=CPUS, include_dashboard=False, log_to_driver=False, logging_level="WARNING")


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """A test that hangs is a test that fails."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
