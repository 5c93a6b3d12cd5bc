"""Fixtures and settings of all tests. Tests run in parallel processes with one thread each."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

os.environ["OMP_NUM_THREADS"] = "1"  # for processes that tests start
torch.set_num_threads(1)  # pytest's plugins have loaded torch by now

pytest_plugins = ["support.page_fixtures"]

# Without a deadline, so that tests do not fail on a busy machine.
settings.register_profile("no deadline", parent=settings(), deadline=None)
settings.load_profile("no deadline")

_TESTS = Path(__file__).parent
_GOLDEN = _TESTS / "golden" / "files"


def pytest_configure() -> None:
    """Enable SIGINT, also for child processes: a shell ignores it for background processes."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark golden and end-to-end tests as slow; others are marked in their files."""
    for item in items:
        if {"golden", "endtoend"} & set(item.path.relative_to(_TESTS).parts):
            item.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="Regenerate the golden files.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function that compares a text with a golden file."""

    def check(name: str, text: str) -> None:
        path = _GOLDEN / name
        if request.config.getoption("--regenerate"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text

    return check
