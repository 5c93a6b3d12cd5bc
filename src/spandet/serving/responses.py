"""Parts of every response: ASCII JSON, security headers and the request id."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final
from uuid import uuid4

from starlette.responses import Response

SAFE_HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Default headers of every response."""

REQUEST_ID = "X-Request-ID"

# Printable ASCII without spaces, so that an id can break neither a log line nor a header.
_USABLE_ID = re.compile(rb"[!-~]{1,128}")

current_request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request that is being handled; empty outside of requests."""


class AsciiJSON(Response):
    """A JSON response in ASCII, which can carry any text, lone surrogates included."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode the body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def new_request_id() -> str:
    """A new unique id."""
    return uuid4().hex


def request_id_of(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The client's id if it sent exactly one, short and in printable ASCII; else a new one.

    Args:
        headers: The headers of a request in ASGI form: names in lower case.
    """
    sent = [value for name, value in headers if name == REQUEST_ID.lower().encode()]
    if len(sent) == 1 and _USABLE_ID.fullmatch(sent[0]):
        return sent[0].decode("ascii")
    return new_request_id()
