"""Request ids: taken from the client where usable, else made; in every answer and in the log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from uuid import uuid4

REQUEST_ID = "X-Request-ID"

# Printable ASCII without spaces: it can neither break a line of the log nor a header.
_USABLE = re.compile(rb"[!-~]{1,128}")

current_request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered; empty outside of requests."""


def new_request_id() -> str:
    """An id that no other request has."""
    return uuid4().hex


def request_id_of(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The client's id if it sent exactly one, short and in printable ASCII; else a new one.

    Args:
        headers: The headers of a request as ASGI gives them: names in lower case.
    """
    sent = [value for name, value in headers if name == REQUEST_ID.lower().encode()]
    if len(sent) == 1 and _USABLE.fullmatch(sent[0]):
        return sent[0].decode("ascii")
    return new_request_id()
