"""The service as a process: listening, logging, and a graceful shutdown on signals."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from types import FrameType

import torch
import uvicorn
from fastapi import FastAPI

from spandet.errors import UsageError
from spandet.serving.connections import Connections, Network, connection_class
from spandet.serving.settings import ServiceSettings

_GRACE = 2.0
"""Seconds for sending the last responses after `shutdown_seconds`."""
_KEEP_ALIVE = 30
_REQUEST = ("method", "path", "status", "milliseconds", "client", "request_id")
_PROCESS = ("model", "address", "pid", "threads", "signal", "requests", "seconds")
_FIELDS = (*_REQUEST, *_PROCESS)
"""Optional fields of a JSON log line."""
_logger = logging.getLogger("spandet.process")


class JsonLines(logging.Formatter):
    """Format log records as JSON, one object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {key: vars(record)[key] for key in _FIELDS if key in vars(record)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up_log(*, requests: bool, json_lines: bool) -> None:
    """Log start, stop, errors and warnings to stderr, and with `requests` a line per request."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if json_lines else plain)
    for name in ("spandet", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
    _logger.setLevel(logging.INFO)
    logging.getLogger("spandet.requests").setLevel(logging.INFO if requests else logging.WARNING)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service that listens on `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 selects a free port.

    Raises:
        UsageError: The address does not exist, or is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error}") from None
    # Connections inherit it. Without it the end of a response waits 40 ms for the client to
    # acknowledge its beginning. asyncio sets it only for sockets that name their protocol, which
    # this one does not.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def networks(texts: Sequence[str]) -> list[Network]:
    """Parse the addresses and networks of proxies.

    Raises:
        UsageError: A text is neither an address nor a network.
    """
    try:
        return [ip_network(text) for text in texts]
    except ValueError as error:
        raise UsageError(f"--trusted-proxy: {error}; expected 10.0.0.7 or 10.0.0.0/8") from None


def address(listener: socket.socket) -> str:
    """The URL of the service."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def configuration(app: FastAPI, *, proxies: Sequence[Network] = ()) -> uvicorn.Config:
    """The configuration of uvicorn for the service.

    Args:
        app: The service, from `create_app`.
        proxies: Proxies whose X-Forwarded-For is used as the address of the client.
    """
    settings: ServiceSettings = app.state.settings
    connections = Connections(settings, app.state.metrics, proxies=proxies)
    return uvicorn.Config(
        app,
        http=connection_class(connections),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        proxy_headers=bool(proxies),
        forwarded_allow_ips=[str(proxy) for proxy in proxies],
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.shutdown_seconds + _GRACE) + 1,
    )


def run(
    app: FastAPI,
    listener: socket.socket,
    *,
    ready: Callable[[], None],
    proxies: Sequence[Network] = (),
) -> None:
    """Serve until SIGTERM or SIGINT, then finish accepted requests and return.

    Args:
        app: The service, from `create_app`.
        listener: The listening socket.
        ready: Called when requests and signals are handled.
        proxies: Proxies whose X-Forwarded-For is used as the address of the client.
    """
    config = configuration(app, proxies=proxies)
    # The model is never garbage; scanning it again and again would make large requests slow.
    gc.collect()
    gc.freeze()
    # uvicorn raises the signal again after its shutdown; it must then have no effect.
    previous = {
        number: signal.signal(number, _ignore) for number in (signal.SIGTERM, signal.SIGINT)
    }
    log = _ProcessLog(model=app.state.description.name, address=address(listener))

    def start() -> None:
        log.started()
        ready()

    def stop(number: int) -> None:
        log.stopping(number)
        app.state.batcher.stop(app.state.settings.shutdown_seconds)

    server = _Server(config, on_start=start, on_stop=stop)
    try:
        server.run([listener])
    finally:
        if server.started:
            log.stopped(server.server_state.total_requests)
        for number, handler in previous.items():
            signal.signal(number, handler)


class _ProcessLog:
    """Log lines at the start of the process, on a signal to stop, and at its end."""

    def __init__(self, *, model: str, address: str) -> None:
        self._began = time.monotonic()
        self._about = {"model": model, "address": address, "pid": os.getpid()}
        self._where = f"{model} at {address}, pid {os.getpid()}"

    def started(self) -> None:
        threads = torch.get_num_threads()
        more = {**self._about, "threads": threads}
        _logger.info("started: %s, %d threads", self._where, threads, extra=more)

    def stopping(self, number: int) -> None:
        name = signal.Signals(number).name
        _logger.info("stopping: %s, %s", self._where, name, extra={**self._about, "signal": name})

    def stopped(self, requests: int) -> None:
        seconds = round(time.monotonic() - self._began, 1)
        more = {**self._about, "requests": requests, "seconds": seconds}
        _logger.info(
            "stopped: %s, %d requests in %.1f s", self._where, requests, seconds, extra=more
        )


class _Server(uvicorn.Server):
    """A uvicorn server with callbacks after its start and on a signal to stop."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_start: Callable[[], None],
        on_stop: Callable[[int], None],
    ) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._on_stop = on_stop
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._on_stop, sig)


def _ignore(_: int, __: FrameType | None) -> None:
    """Do nothing on a signal."""
