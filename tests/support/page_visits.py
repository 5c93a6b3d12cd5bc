"""Visits to the page of the service in a real browser, driven by Playwright."""

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
    """A browser under the control of Playwright; `executable` comes from `find_browser`."""
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
"""Whether the animations of new bars have ended."""


class Visit:
    """A visit to a page that records console errors and requests to other hosts."""

    def __init__(self, browser: Browser, address: str, **settings: Any) -> None:
        self.address = address
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)  # a busy machine
        self.errors: list[str] = []
        self.foreign_requests: list[str] = []
        self.page.on("console", self._on_message)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._on_request)

    def _on_message(self, message: ConsoleMessage) -> None:
        # The browser itself reports every response with an error status.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.foreign_requests.append(request.url)

    def open(self) -> None:
        """Open the page."""
        self.page.goto(self.address)

    def find(self, text: str) -> None:
        """Enter a text, find its entities, and wait for the results."""
        self.page.get_by_role("textbox", name="Input text").fill(text)
        self.page.get_by_role("button", name="Find entities").click()
        self.page.wait_for_selector("#results:not([hidden])")
        self.page.wait_for_function(AT_REST)

    def respond_with(self, *entities: dict[str, Any], trace: dict[str, Any] | None = None) -> None:
        """Replace the responses of the server: every text has these entities."""
        bodies = {
            "model": MODEL,
            "entities": {"documents": [{"entities": entities}]},
            "trace": trace,
        }
        for name, body in bodies.items():
            self.page.route(f"**/v1/{name}", _FixedResponse(json.dumps(body)))

    @property
    def bars(self) -> Locator:
        """The buttons of the drawn entities, in the order of the text."""
        return self.page.locator("#text-view button.bar")

    @property
    def names(self) -> list[str]:
        """The accessible names of the drawn entities."""
        return [bar.get_attribute("aria-label") or "" for bar in self.bars.all()]

    @property
    def heading(self) -> str:
        """The heading with the number of entities."""
        return self.page.locator("#found").inner_text()

    def finish(self) -> None:
        """Close the page, and check that there were no errors and no requests to other hosts."""
        self.context.close()
        assert self.errors == []
        assert self.foreign_requests == []


class _FixedResponse:
    """A route handler that always responds with the same body."""

    def __init__(self, body: str) -> None:
        self.body = body

    def __call__(self, route: Route) -> None:
        route.fulfill(content_type="application/json", body=self.body)


def entity(
    text: str, words: str, label: str, score: float, *, fragments: Sequence[str] = ()
) -> dict[str, Any]:
    """An entity in the format of the service, at the first occurrence of its words."""
    start = text.index(words)
    found = {"start": start, "end": start + len(words), "label": label, "score": score}
    if not fragments:
        return found | {"text": words}
    spans, at = [], start
    for fragment in fragments:
        at = text.index(fragment, at)
        spans.append([at, at + len(fragment)])
        at += len(fragment)
    return found | {"text": " … ".join(fragments), "fragments": spans}
