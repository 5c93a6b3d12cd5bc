"""A real browser for tests of pages: open one, run a script in it, and hear what it says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
]

# A page's test calls report(…) when it is done; the test gets it as JSON from the dumped page.
REPORT = """
const report = (found) => {
  const place = document.createElement("pre");
  place.id = "probe";
  place.textContent = JSON.stringify({
    ...found,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name),
    title: document.title,
  });
  document.body.append(place);
};
"""


def find_browser() -> str:
    """The browser to look at pages with; a test that asks is skipped where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"needs a browser to look at the page, one of: {', '.join(BROWSERS)}")
    return found


def probe(
    browser: str,
    folder: Path,
    page: str,
    script: str,
    address: str = "",
    *,
    width: int = 1000,
    milliseconds: int = 500,
    flags: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Open the page at `address`, run the script after its own, and return what it reports.

    Args:
        browser: What `find_browser` found.
        folder: Where the page and the browser's files may go.
        page: The page.
        script: Must call `report` with an object.
        address: What follows the page's name in the address.
        width: Of the window, in pixels.
        milliseconds: Of the page's own time, for events that a click causes and for animations.
        flags: More options of the browser.
    """
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f"<script>{REPORT}{script}</script></body>"), "utf-8")
    done = subprocess.run(
        [
            browser,
            *FLAGS,
            *flags,
            f"--virtual-time-budget={milliseconds}",
            f"--window-size={width},700",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            path.as_uri() + address,
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    match = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stdout[-2000:]
    found: dict[str, Any] = json.loads(unescape(match[1]))
    assert found.pop("requests") == []
    return found
