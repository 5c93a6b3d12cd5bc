"""Fixtures for tests of the service's page: a browser and a service.

Imports are inside functions, so that the other tests run without a browser or its driver.
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
    """The model of the service; a test module may define another."""
    from support.serving_toys import permissive_recognizer

    return permissive_recognizer()


@pytest.fixture(scope="module")
def address(recognizer: Recognizer) -> Iterator[str]:
    from spandet.serving import create_app
    from support.page_visits import serving

    with serving(create_app(recognizer)) as address:
        yield address
