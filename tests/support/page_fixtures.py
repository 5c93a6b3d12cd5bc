"""What tests of the service's page share: a browser to drive, and a service to visit.

Imports stand inside, so that the other tests run where there is no browser, or no driver for it.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from spandet.inference.recognizer import Recognizer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from support.browsing import find_browser
    from support.page_visits import chromium

    with chromium(find_browser()) as browser:
        yield browser


@pytest.fixture(scope="module")
def recognizer(browser: Browser) -> Recognizer:
    """Whom the service asks; a module may have another one."""
    from support.serving_toys import permissive_recognizer

    return permissive_recognizer()


@pytest.fixture(scope="module")
def address(recognizer: Recognizer) -> Iterator[str]:
    from spandet.serving import create_app
    from support.page_visits import serving

    with serving(create_app(recognizer)) as address:
        yield address
