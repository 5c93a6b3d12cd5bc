"""HTTP/1.1 parsing with h11, stricter where proxies and servers may disagree on a request."""

from __future__ import annotations

from http import HTTPStatus
from typing import NoReturn

import h11

MAX_HEAD_BYTES = 16 * 1024
"""Maximum length of request line and headers together."""


class StrictParser(h11.Connection):
    """An h11 server connection that refuses long headers and bodies of ambiguous length."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self.status = HTTPStatus.BAD_REQUEST
        """Status of the response after a `RemoteProtocolError`."""
        self.detail = ""
        """Reason of the error."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event.

        Raises:
            RemoteProtocolError: The request is not valid HTTP or is refused; see `status` and
                `detail`.
        """
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
                self._refuse(_too_long(line=b"\n" not in self.unread))
            self._refuse(error)
        if isinstance(event, h11.Request) and (fault := _fault(event)):
            self._refuse(fault)
        return event

    @property
    def unread(self) -> bytes:
        """Bytes received of the next event."""
        return self.trailing_data[0]

    def _refuse(self, error: h11.RemoteProtocolError) -> NoReturn:
        self.status = HTTPStatus(error.error_status_hint)
        self.detail = str(error)
        raise error


def _fault(request: h11.Request) -> h11.RemoteProtocolError | None:
    names = {name for name, _ in request.headers}
    if names >= {b"transfer-encoding", b"content-length"}:
        return h11.RemoteProtocolError("both Content-Length and Transfer-Encoding were sent")
    if b"transfer-encoding" in names and request.http_version < b"1.1":
        return h11.RemoteProtocolError("HTTP/1.0 has no Transfer-Encoding")
    # h11 limits only a head that arrives in several packets.
    line = len(request.target)
    if line + sum(len(name) + len(value) for name, value in request.headers) > MAX_HEAD_BYTES:
        return _too_long(line=line > MAX_HEAD_BYTES)
    return None


def _too_long(*, line: bool) -> h11.RemoteProtocolError:
    return h11.RemoteProtocolError(
        f"the request line and headers are longer than {MAX_HEAD_BYTES:,} bytes",
        HTTPStatus.REQUEST_URI_TOO_LONG if line else HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    )
