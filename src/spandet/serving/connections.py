"""Limits on the number of open connections, and on the time that each waits for its client.

A connection waits for its client (for a request line and headers, for a body, or for the client to
read a response), or the client waits for the service. Only the first kind is closed here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import chain
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from spandet.serving.http_parser import StrictParser
from spandet.serving.metrics import Metrics
from spandet.serving.middleware import SURPLUS, RequestRecord
from spandet.serving.responses import REQUEST_ID, SAFE_HEADERS, new_request_id
from spandet.serving.settings import ServiceSettings

Network = IPv4Network | IPv6Network

_logger = logging.getLogger("spandet.serving")
_MAX_DETAIL_CHARS = 200
_WARN_SECONDS = 60.0


class Connections:
    """The open connections of a service, by client."""

    def __init__(
        self, settings: ServiceSettings, metrics: Metrics, *, proxies: Sequence[Network] = ()
    ) -> None:
        """Start without connections.

        Args:
            settings: Limits on their number and on waiting times.
            metrics: Metrics to update.
            proxies: Proxies: the limit per client does not apply to them.
        """
        self.settings = settings
        self.metrics = metrics
        self._proxies = tuple(proxies)
        self._open: dict[str, set[Connection]] = {}
        self._count = 0
        self._sweeping: asyncio.TimerHandle | None = None
        self._warned = float("-inf")

    def key_of(self, address: str) -> str:
        """Key of the client with this address; empty if the limit per client does not apply."""
        ip = ip_address(address)
        if isinstance(ip, IPv6Address):
            ip = ip.ipv4_mapped or ip
        if any(ip in network for network in self._proxies):
            return ""
        # An IPv6 provider gives each customer 64 bits of addresses.
        return str(ip) if ip.version == 4 else str(ip_network((int(ip), 64), strict=False))

    def admit(self, new: Connection) -> bool:
        """Add a connection; False if there are too many and none can be closed for it."""
        own = self._open.setdefault(new.client_key, set())
        own.add(new)
        self._add(1)
        if self._sweeping is None:
            self._sweep(new.loop)
        room = True
        if new.client_key and 0 < self.settings.max_connections_per_client < len(own):
            room = self._make_room(new, own)
        if 0 < self.settings.max_connections < self._count:
            room = self._make_room(new, self._all()) and room
        return room

    def forget(self, connection: Connection) -> None:
        """Remove a connection that is closed, or about to be."""
        own = self._open.get(connection.client_key, set())
        if connection in own:
            own.remove(connection)
            self._add(-1)
            if not own:
                del self._open[connection.client_key]

    def _all(self) -> Iterable[Connection]:
        return chain.from_iterable(self._open.values())

    def _add(self, difference: int) -> None:
        self._count += difference
        self.metrics.connections(self._count)

    def _make_room(self, new: Connection, among: Iterable[Connection]) -> bool:
        """Close the connection that has waited longest for its client, if there is one.

        Those that wait for headers come before those that wait for a body, and those of the client
        with most connections before those of others.
        """
        self._warn(new)
        waiting = [each for each in among if each is not new and each.waits_for_request]
        if not waiting:
            return False
        chosen = min(waiting, key=lambda each: (each.busy, -self._siblings(each), each.since))
        self.forget(chosen)
        self.metrics.closed("limit")
        chosen.transport.close()
        return True

    def _siblings(self, connection: Connection) -> int:
        """Number of connections of the same client; 0 for a proxy."""
        return len(self._open[connection.client_key]) if connection.client_key else 0

    def _warn(self, new: Connection) -> None:
        now = new.loop.time()
        if now - self._warned > _WARN_SECONDS:
            self._warned = now
            own = f"{self._siblings(new)} of them from {new.client_key}, " if new.client_key else ""
            _logger.warning(
                "too many connections: %d are open, %sidle ones are closed for new ones",
                self._count,
                own,
            )

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections that have waited too long, and repeat while any is open."""
        now = loop.time()
        for connection in list(self._all()):
            connection.enforce(now)
        seconds = min(self.settings.header_seconds, self.settings.send_seconds)
        pause = min(1.0, seconds / 10)
        self._sweeping = loop.call_later(pause, self._sweep, loop) if self._open else None


class Connection(H11Protocol):
    """A connection of uvicorn with a strict parser and the limits of `Connections`."""

    all: ClassVar[Connections]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn: StrictParser = StrictParser()
        self.client_key = ""
        self.since = self.loop.time()
        """Time from which it waits for its client."""
        self._head_due = True
        """Whether the header timeout runs; between requests, only after their first byte."""

    @property
    def busy(self) -> bool:
        """Whether a request has begun and its response is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waits_for_request(self) -> bool:
        """Whether closing it loses at most an incomplete request."""
        if self._unsent:
            return False
        return not self.busy or self.cycle.more_body

    @property
    def _unsent(self) -> bool:
        return self.transport.is_closing() or self.transport.get_write_buffer_size() > 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection; beyond the limits only /healthz is served on it."""
        super().connection_made(transport)
        self.client_key = self.all.key_of(self.client[0]) if self.client else ""
        if not self.all.admit(self):
            self.app_state = {**self.app_state, SURPLUS: True}

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, which the client or the service has closed."""
        self.all.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes."""
        if not self.busy and not self._head_due:
            self._head_due = True
            self.since = self.loop.time()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request, or start it if it has arrived already."""
        self._head_due = False
        self.since = self.loop.time()
        super().on_response_complete()
        if not self.busy and self.conn.unread:
            self._head_due = True

    def shutdown(self) -> None:
        """Close the connection after its current response, or immediately if there is none."""
        # The method of uvicorn fails on a connection that was refused and is not closed yet.
        if not self.transport.is_closing():
            super().shutdown()

    def enforce(self, now: float) -> None:
        """Close the connection if it has waited too long for its client."""
        waited = now - self.since
        settings, metrics = self.all.settings, self.all.metrics
        if self._unsent:
            # During a request the unsent bytes may belong to the previous response; they are
            # overdue only if they block the next response.
            stuck = self.transport.is_closing() or not self.busy or self.flow.write_paused
            if stuck and waited > settings.send_seconds:
                metrics.closed("send timeout")
                self.transport.abort()
        elif self._head_due and not self.busy and waited > settings.header_seconds:
            metrics.closed("header timeout")
            detail = f"the request did not arrive within {settings.header_seconds:g} s"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, detail, respond=bool(self.conn.unread))

    def send_400_response(self, msg: str) -> None:
        """Send the error of the parser, which is more specific than `msg`."""
        self._refuse(self.conn.status, self.conn.detail or msg)

    def _refuse(self, status: HTTPStatus, detail: str, *, respond: bool = True) -> None:
        """Close the connection, with an error response if the client waits for a response.

        Args:
            status: Status of the response.
            detail: Reason in the response.
            respond: Whether the client has sent anything; otherwise it expects no response.
        """
        if respond and self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            request_id = new_request_id()
            self.transport.write(_response(status, detail[:_MAX_DETAIL_CHARS], request_id))
            RequestRecord(
                method="-",
                path="other",
                status=status,
                milliseconds=round(1000 * (self.loop.time() - self.since), 1),
                client=self.client[0] if self.client else "-",
                request_id=request_id,
            ).write(self.all.metrics)
        if self.cycle is not None:
            # The application may still be reading the body; it must not send another response.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def connection_class(connections: Connections) -> type[Connection]:
    """A protocol class for uvicorn whose instances share these limits."""
    return type("Connection", (Connection,), {"all": connections})


def _response(status: HTTPStatus, detail: str, request_id: str) -> bytes:
    """An error response that closes the connection, independent of the parser's state."""
    body = json.dumps({"detail": detail})
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        REQUEST_ID: request_id,
        **SAFE_HEADERS,
    }
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", body]).encode("ascii")
