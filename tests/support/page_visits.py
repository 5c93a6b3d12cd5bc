"""Visits to the page of the service in a real browser that a test drives."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, ConsoleMessage, Locator, Request, Route, sync_playwright

LABELS = ("DNA", "cell", "protein")
THRESHOLD = 0.5
MODEL = {
    "name": "canned",
    "detector": "locate-and-label",
    "encoder": "none",
    "labels": LABELS,
    "threshold": THRESHOLD,
    "scores": None,
    "version": "0",
    "limits": {"max_text_chars": 100_000, "max_trace_chars": 5_000},
}


@contextmanager
def chromium(executable: str) -> Iterator[Browser]:
    """A browser that scripts can drive; `executable` is what `find_browser` found."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address of a server for the application, on a free port of this machine."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join(timeout=10)


AT_REST = "() => document.getAnimations().every((one) => one.playState !== 'running')"
"""Bars grow when they come."""


class Visit:
    """A visit to a page, with everything that must not happen: errors, and calls elsewhere."""

    def __init__(self, browser: Browser, address: str, **settings: Any) -> None:
        self.address = address
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)  # a busy machine
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._notice)

    def _hear(self, message: ConsoleMessage) -> None:
        # A browser itself reports every answer that is no success; the page says it kindly.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _notice(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def open(self) -> None:
        """Go to the page."""
        self.page.goto(self.address)

    def find(self, text: str) -> None:
        """Put a text in, and ask for its entities."""
        self.page.get_by_role("textbox", name="Text to look for").fill(text)
        self.page.get_by_role("button", name="Find entities").click()
        self.page.wait_for_selector("#results:not([hidden])")
        self.page.wait_for_function(AT_REST)

    def answer(self, *entities: dict[str, Any], trace: dict[str, Any] | None = None) -> None:
        """Play the server: whatever is asked, these entities are in it."""
        answers = {
            "model": MODEL,
            "entities": {"documents": [{"entities": entities}]},
            "trace": trace,
        }
        for name, body in answers.items():
            self.page.route(f"**/v1/{name}", _Canned(json.dumps(body)))

    @property
    def bars(self) -> Locator:
        """The entities that are drawn, in the order of the text."""
        return self.page.locator("#sheet button.bar")

    @property
    def names(self) -> list[str]:
        """What a screen reader says of each."""
        return [bar.get_attribute("aria-label") or "" for bar in self.bars.all()]

    @property
    def heading(self) -> str:
        """How many there are."""
        return self.page.locator("#found").inner_text()

    def finish(self) -> None:
        """Leave the page; it must have been quiet."""
        self.context.close()
        assert self.complaints == []
        assert self.elsewhere == []


class _Canned:
    """Answers a request with the same body, always."""

    def __init__(self, body: str) -> None:
        self.body = body

    def __call__(self, route: Route) -> None:
        route.fulfill(content_type="application/json", body=self.body)


def entity(
    text: str, words: str, label: str, score: float, *, pieces: Sequence[str] = ()
) -> dict[str, Any]:
    """An entity as the service gives it, by its first occurrence; `pieces` follow one another."""
    start = text.index(words)
    found = {"start": start, "end": start + len(words), "label": label, "score": score}
    if not pieces:
        return found | {"text": words}
    fragments, at = [], start
    for piece in pieces:
        at = text.index(piece, at)
        fragments.append([at, at + len(piece)])
        at += len(piece)
    return found | {"text": " … ".join(pieces), "fragments": fragments}
