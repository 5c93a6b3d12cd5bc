"""A local Ray cluster, started once per process because it is slow; and a time limit for tests."""

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
"""Ray reads its own deprecated settings, and does not close all files."""
CPUS = 2


@lru_cache
def local_ray() -> None:
    """Start a local cluster without dashboard and usage statistics."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # else Ray writes one to the home folder
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (default 15: too slow)
    os.environ.pop("RAY_ADDRESS", None)
    ray.init(num_cpus=CPUS, include_dashboard=False, log_to_driver=False, logging_level="WARNING")


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail a test that takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
