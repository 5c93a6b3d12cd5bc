"""What all tests share.

Tests run side by side and are small: one thread each.
"""

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

# Other work on the machine is no failure.
settings.register_profile("patient", parent=settings(), deadline=None)
settings.load_profile("patient")

_TESTS = Path(__file__).parent
_GOLDEN = _TESTS / "golden" / "files"


def pytest_configure() -> None:
    """Let Ctrl-C be heard, by child processes too: in the background it may be switched off."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Golden and end-to-end tests are slow; others say it themselves (`@pytest.mark.slow`)."""
    for item in items:
        if {"golden", "endtoend"} & set(item.path.relative_to(_TESTS).parts):
            item.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="Write the golden files anew.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a golden file: what the code said when somebody last looked."""

    def check(name: str, text: str) -> None:
        path = _GOLDEN / name
        if request.config.getoption("--regenerate"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text

    return check
