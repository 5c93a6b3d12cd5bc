"""Tests of pages in a real browser: open a page, run a script in it, and read its report."""

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

# The script of a test calls report(…) at its end; the test reads the JSON from the dumped page.
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
    """The path of a browser; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"needs a browser, one of: {', '.join(BROWSERS)}")
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
    """Open a page, run a script after its own scripts, and return the script's report.

    Args:
        browser: Path of the browser, from `find_browser`.
        folder: Folder for the page and the browser's profile.
        page: HTML of the page.
        script: JavaScript that calls `report` with an object.
        address: Fragment or query after the page's name in the URL.
        width: Width of the window in pixels.
        milliseconds: Virtual time of the page, for events after clicks and for animations.
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
