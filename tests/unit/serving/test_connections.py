"""Limits and timeouts of connections, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_network
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from uvicorn.server import ServerState

from spandet.serving import ServiceSettings, create_app
from spandet.serving.connections import Connection, Connections
from spandet.serving.metrics import Metrics
from spandet.serving.server import configuration
from support.serving_toys import RecordingRecognizer, metric, permissive_recognizer, served

HOME = "127.0.0.1"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
TYPED = b"POST /v1/entities HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"text": "a"}'
WHOLE = TYPED + b"Content-Length: 13\r\n\r\n" + BODY
CHUNKED = TYPED + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a service with short timeouts."""
    with served(header_seconds=0.4, body_seconds=0.4) as number:
        yield number


def connected(port: int, *, source: str = HOME) -> socket.socket:
    return socket.create_connection((HOME, port), timeout=20, source_address=(source, 0))


def rest_of(client: socket.socket) -> bytes:
    """All bytes until the service closes the connection."""
    chunks = []
    with suppress(ConnectionError):
        while chunk := client.recv(2**16):
            chunks.append(chunk)
    return b"".join(chunks)


def response_on(client: socket.socket) -> httpx.Response:
    """The next response on a connection that stays open."""
    data = b""
    while not (found := responses_in(data)):
        chunk = client.recv(2**16)
        assert chunk, "the service has closed the connection"
        data += chunk
    return found[0]


def responses_to(port: int, *sent: bytes) -> list[httpx.Response]:
    """The responses on one connection to chunks of bytes, until the service closes it."""
    with connected(port) as client:
        for chunk in sent:
            client.sendall(chunk)
            time.sleep(0.05)
        return responses_in(rest_of(client))


def responses_in(data: bytes) -> list[httpx.Response]:
    """The complete responses, each of which has a Content-Length."""
    responses = []
    while b"\r\n\r\n" in data:
        head, _, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        body, data = (
            data[: int(headers["content-length"])],
            data[int(headers["content-length"]) :],
        )
        if len(body) == int(headers["content-length"]):
            responses.append(httpx.Response(int(first.split()[1]), headers=headers, content=body))
    return responses


def ask(port: int, path: str = "/healthz", *, source: str = HOME) -> httpx.Response:
    transport = httpx.HTTPTransport(local_address=source)
    with httpx.Client(base_url=f"http://{HOME}:{port}", transport=transport, timeout=20) as client:
        if path == "/v1/entities":
            return client.post(path, json={"text": "a"})
        return client.get(path)


def other_address() -> str:
    """Another address of this machine, if the system has one."""
    try:
        with socket.create_server(("127.0.0.2", 0)):
            return "127.0.0.2"
    except OSError:
        return HOME


def request_records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "spandet.requests"]


@contextmanager
def many(port: int, count: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(count)]
        for client in clients:
            with suppress(ConnectionError):  # closed for a later one already
                client.sendall(first)
        yield clients


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{}, {"max_connections": 0, "max_connections_per_client": 0}])
@pytest.mark.parametrize("first", [b"", b"GET /heal"])
def test_a_thousand_idle_connections_do_not_block_others(
    first: bytes, limits: dict[str, Any]
) -> None:
    with served(header_seconds=1.0, **limits) as port, many(port, 1000, first) as idle:
        began = time.monotonic()
        for source in (HOME, other_address()):
            assert ask(port, source=source).status_code == 200
            assert ask(port, "/v1/entities", source=source).status_code == 200
        assert time.monotonic() - began < 5  # a busy machine; a few milliseconds on an idle one
        statuses = {response.status_code for one in idle for response in responses_in(rest_of(one))}
        assert statuses <= ({408} if first else set())
        exposition = ask(port, "/metrics").text
        assert metric(exposition, "spandet_connections") == 1
        assert ('closed_total{reason="limit"}' in exposition) is not bool(limits)


def test_slow_headers_time_out(port: int) -> None:
    began = time.monotonic()
    with connected(port) as client:
        for byte in HEALTH[:-2].decode():
            try:
                client.sendall(byte.encode())
            except ConnectionError:
                break
            time.sleep(0.1)
            if time.monotonic() - began > 3:
                pytest.fail("the connection is still open")
        responses = responses_in(rest_of(client))
    # No response if a byte was on its way when the service closed the connection.
    assert {response.status_code for response in responses} <= {408}


def test_incomplete_headers_get_a_408_and_a_silent_connection_no_response(port: int) -> None:
    (response,) = responses_to(port, HEALTH[:20])
    assert response.status_code == 408
    assert "within 0.4 s" in response.json()["detail"]
    assert response.headers["X-Request-ID"]
    assert responses_to(port) == []


def test_the_header_timeout_does_not_run_between_requests(port: int) -> None:
    with connected(port) as client:
        for _ in range(2):
            client.sendall(HEALTH)
            assert response_on(client).status_code == 200
            time.sleep(0.7)
        client.sendall(HEALTH[:20])
        (response,) = responses_in(rest_of(client))
        assert response.status_code == 408


def test_an_incomplete_body_times_out_and_its_connection_is_closed(port: int) -> None:
    for half in (WHOLE[:-5], CHUNKED + b"5\r\n{"):
        (response,) = responses_to(port, half)
        assert response.status_code == 408
        assert response.headers["Connection"] == "close"


def test_a_body_that_is_not_read_does_not_keep_the_connection_open(port: int) -> None:
    began = time.monotonic()
    with connected(port) as client:
        client.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n")
        assert response_on(client).status_code == 404
        try:
            while time.monotonic() - began < 5:
                client.sendall(b"x")
                time.sleep(0.05)
        except ConnectionError:
            return
    pytest.fail("the connection is still open")


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    responses = responses_to(port, WHOLE + HEALTH + WHOLE + HEALTH[:20])
    assert [response.status_code for response in responses] == [200, 200, 200, 408]
    assert "documents" in responses[0].json()
    assert responses[1].json() == {"status": "ok"}


BOTH = (
    b"Transfer-Encoding: chunked\r\nContent-Length: 13\r\n\r\nd\r\n"
    + BODY
    + b"\r\n0\r\n\r\n"
    + HEALTH
)


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (TYPED + BOTH, 400, "both Content-Length and Transfer-Encoding"),
        (TYPED.replace(b"POST", b"HEAD") + BOTH, 400, ""),
        (
            b"Content-Length: 14\r\n".join([TYPED, b"Content-Length: 13\r\n\r\n"]),
            400,
            "conflicting",
        ),
        (TYPED + b"Content-Length: 13, 14\r\n\r\n", 400, "conflicting"),
        (TYPED + b"Content-Length: -1\r\n\r\n", 400, "Content-Length"),
        (CHUNKED.replace(b"1.1", b"1.0"), 400, "HTTP/1.0"),
        (TYPED + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "chunked"),
        (TYPED + b"Host: elsewhere\r\n\r\n", 400, "Host"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "Host"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400, ""),
        (HEALTH[:-2] + b"X: " + b"x" * 20_000 + b"\r\n\r\n", 431, "16,384 bytes"),
        (HEALTH[:-2] + b"X: y\r\n" * 5_000, 431, "16,384 bytes"),
        (HEALTH.replace(b"healthz", b"x" * 20_000), 414, "16,384 bytes"),
        (b"GET /" + b"x" * 20_000, 414, "16,384 bytes"),
        (CHUNKED + b"zzz\r\n", 400, ""),
        (CHUNKED + b"f" * 25 + b"\r\n", 400, ""),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else str(value),
)
def test_ambiguous_and_invalid_http_is_refused(
    port: int, sent: bytes, status: int, words: str
) -> None:
    (response,) = responses_to(port, sent)
    assert response.status_code == status
    assert words in response.json()["detail"]
    assert response.headers["Connection"] == "close"
    assert response.headers["X-Request-ID"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_repeated_equal_content_length_is_accepted(port: int) -> None:
    responses = responses_to(
        port, TYPED + b"Content-Length: 13\r\nContent-Length: 13\r\n\r\n" + BODY + b"G"
    )
    assert [response.status_code for response in responses] == [200, 408]


def test_invalid_bytes_after_a_response_close_the_connection_without_an_error(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    missing = CHUNKED.replace(b"/v1/entities", b"/nothing")
    with caplog.at_level(logging.INFO):
        (response,) = responses_to(port, missing + b"1\r\na\r\n", b"zzz\r\n")
    assert response.status_code == 404
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_refused_requests_are_logged_and_counted(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="spandet.requests"):
        (response,) = responses_to(port, TYPED + BOTH)
    (record,) = request_records(caplog)
    assert vars(record)["request_id"] == response.headers["X-Request-ID"]
    assert vars(record)["client"] == HOME
    assert 'spandet_requests_total{path="other",status="400"}' in ask(port, "/metrics").text


def test_shutdown_with_a_refused_connection_that_is_still_closing() -> None:
    async def scenario() -> None:
        config = configuration(create_app(permissive_recognizer()))
        config.load()
        one = config.http_protocol_class(config, ServerState(), {})  # type: ignore[call-arg]
        assert isinstance(one, Connection)
        transport = Mock(spec=asyncio.Transport)
        transport.get_extra_info.return_value = None
        transport.is_closing.side_effect = lambda: transport.close.called
        transport.get_write_buffer_size.return_value = 1
        one.connection_made(transport)
        one.data_received(TYPED + BOTH)
        assert transport.write.call_args.args[0].startswith(b"HTTP/1.1 400 Bad Request")
        assert transport.close.called
        one.shutdown()
        one.connection_lost(None)

    asyncio.run(scenario())


def test_a_client_that_does_not_read_is_disconnected() -> None:
    with served(send_seconds=0.5) as port, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((HOME, port))
        client.settimeout(0.2)
        wanted = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
        # The service does not read more while its responses are not read.
        with suppress(TimeoutError, ConnectionError):
            for _ in range(100):
                client.sendall(wanted)
        for _ in range(100):
            exposition = ask(port, "/metrics").text
            if 'closed_total{reason="send timeout"} 1.0' in exposition:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the connection is still open")
        assert metric(exposition, "spandet_connections") == 1


def test_if_all_connections_are_busy_only_health_checks_are_served() -> None:
    recognizer = RecordingRecognizer()
    with served(recognizer, max_connections=4) as port:
        recognizer.free.clear()
        with many(port, 3, WHOLE) as clients:
            while metric(ask(port, "/metrics").text, "spandet_queue_texts") < 3:
                time.sleep(0.01)
            with many(port, 1, WHOLE) as fourth:
                time.sleep(0.2)
                refused = ask(port, "/v1/entities")
                assert refused.status_code == 503
                assert refused.headers["Retry-After"]
                assert "too many open connections" in refused.json()["detail"]
                assert ask(port).status_code == 200
                recognizer.free.set()
                for client in (*clients, *fourth):
                    assert response_on(client).status_code == 200
        assert ask(port, "/v1/entities").status_code == 200


def test_connections_with_incomplete_bodies_are_closed_for_new_ones() -> None:
    with served(max_connections=4) as port, many(port, 8, WHOLE[:-5]) as halves:
        assert ask(port, "/v1/entities").status_code == 200
        # The connection that has waited longest is closed first; the last stays open.
        halves[-1].sendall(WHOLE[-5:])
        assert response_on(halves[-1]).status_code == 200
        assert rest_of(halves[0]) == b""


def test_one_client_cannot_use_up_the_connections_of_others() -> None:
    if (other := other_address()) == HOME:
        pytest.skip("needs two addresses")
    with (
        served(max_connections_per_client=3) as port,
        connected(port, source=other) as resting,
        many(port, 10, HEALTH[:5]) as idle,
    ):
        assert metric(ask(port, "/metrics", source=other).text, "spandet_connections") == 5
        resting.sendall(HEALTH)
        assert response_on(resting).status_code == 200
        idle[-1].sendall(HEALTH[5:])
        assert response_on(idle[-1]).status_code == 200
        assert rest_of(idle[0]) == b""


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("10.1.2.3", ""),
        ("::ffff:10.1.2.3", ""),
        ("2001:db8::7", ""),
    ],
)
def test_clients_are_identified_by_address_and_proxies_are_exempt(address: str, key: str) -> None:
    proxies = [ip_network("10.0.0.0/8"), ip_network("2001:db8::7")]
    assert Connections(ServiceSettings(), Metrics(), proxies=proxies).key_of(address) == key


@pytest.mark.parametrize(
    ("proxies", "expected"), [((), HOME), ((HOME,), "192.0.2.9"), (("10.0.0.0/8",), HOME)]
)
def test_x_forwarded_for_is_used_only_from_trusted_proxies(
    proxies: tuple[str, ...], expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent = HEALTH[:-2] + b"X-Forwarded-For: 203.0.113.5, 192.0.2.9\r\n\r\n"
    with (
        caplog.at_level(logging.INFO, logger="spandet.requests"),
        served(proxies=proxies, max_connections_per_client=1) as port,
        many(port, 3, sent[:5]) as clients,
    ):
        clients[-1].sendall(sent[5:])
        assert response_on(clients[-1]).status_code == 200
        open_now = metric(ask(port, "/metrics").text, "spandet_connections")
        assert open_now == (4 if HOME in proxies else 1)
    record, *_ = request_records(caplog)
    assert vars(record)["client"] == expected


def test_too_many_connections_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with served(max_connections=2) as port, many(port, 20):
        assert ask(port).status_code == 200
    (line,) = [record.getMessage() for record in caplog.records if "too many" in record.msg]
    assert line == (
        "too many connections: 3 are open, 3 of them from 127.0.0.1, "
        "idle ones are closed for new ones"
    )
