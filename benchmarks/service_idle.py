"""Measures the effect of idle connections on a service.

    python benchmarks/service_idle.py MODEL [--sockets 1000] [--requests 50]

Starts `spandet serve MODEL`, opens connections that send nothing, half a request line, or half a
body, and keeps them open while `GET /healthz` and a short text are timed on other connections. Then
it waits for the service to close the idle connections. The exit code is 1 if a request is refused,
or if a socket is still open 5 s after its timeout.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import sys
import time
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

from service_load import service

HALF_BODY = (
    b"POST /v1/entities HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{"
)
KINDS = {"none": None, "silent": b"", "half a line": b"GET /heal", "half a body": HALF_BODY}
TIMEOUT = 5.0
"""Seconds; low, to keep the script fast."""
TEXT = b'{"text": "Halburn Rangers beat Tibburn 3-2."}'


def open_socket(address: str) -> socket.socket:
    place = urlsplit(address)
    return socket.create_connection((place.hostname or "", place.port or 80), timeout=TIMEOUT)


def seconds_of(address: str, method: str, path: str, count: int) -> list[float]:
    """The seconds of each request, each on a new connection."""
    place = urlsplit(address)
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        with closing(HTTPConnection(place.hostname or "", place.port, timeout=60)) as client:
            client.request(method, path, body=TEXT, headers={"Content-Type": "application/json"})
            response = client.getresponse()
            response.read()
        if response.status != 200:
            sys.exit(f"{method} {path}: {response.status}")
        taken.append(time.perf_counter() - began)
    return taken


def is_closed(client: socket.socket, deadline: float) -> bool:
    client.settimeout(max(0.01, deadline - time.monotonic()))
    try:
        while client.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def measure(address: str, first: bytes | None, options: argparse.Namespace) -> tuple[str, int]:
    with ExitStack() as stack:
        count = 0 if first is None else options.sockets
        idle = [stack.enter_context(open_socket(address)) for _ in range(count)]
        for client in idle:
            with suppress(ConnectionError):  # closed for a later one already
                client.sendall(first or b"")
        cells = [f"{len(idle):6,}"]
        for method, path in (("GET", "/healthz"), ("POST", "/v1/entities")):
            seconds = seconds_of(address, method, path, options.requests)
            cuts = statistics.quantiles(seconds, n=20)
            cells.append(f"{1000 * cuts[9]:7.1f} ms  {1000 * cuts[18]:7.1f} ms")
        deadline = time.monotonic() + TIMEOUT + 5
        left = sum(not is_closed(client, deadline) for client in idle)
        return " | ".join([*cells, f"{left:6,}"]), left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--sockets", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=50)
    options = parser.parse_args()
    print("idle         |  count | /healthz p50, p95        | text p50, p95            | left open")
    short = ("--header-timeout", str(TIMEOUT), "--body-timeout", str(TIMEOUT))
    left = 0
    with service(options.model, *short) as (address, _):
        for name, first in KINDS.items():
            row, still_open = measure(address, first, options)
            print(f"{name:12} | {row}")
            left += still_open
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
