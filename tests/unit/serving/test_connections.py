"""Connections over real sockets: none keeps the service waiting, or others out."""

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
from support.serving_toys import Watched, metric, served, sure_recognizer

HOME = "127.0.0.1"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
TYPED = b"POST /v1/entities HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"text": "a"}'
WHOLE = TYPED + b"Content-Length: 13\r\n\r\n" + BODY
CHUNKED = TYPED + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A service that gives up soon on what does not arrive."""
    with served(header_seconds=0.4, body_seconds=0.4) as one:
        yield one


def connected(port: int, *, source: str = HOME) -> socket.socket:
    return socket.create_connection((HOME, port), timeout=20, source_address=(source, 0))


def rest_of(client: socket.socket) -> bytes:
    """All that comes until the service closes the connection."""
    pieces = []
    with suppress(ConnectionError):
        while piece := client.recv(2**16):
            pieces.append(piece)
    return b"".join(pieces)


def answer_on(client: socket.socket) -> httpx.Response:
    """The next answer on a connection that stays open."""
    data = b""
    while not (found := answers_in(data)):
        piece = client.recv(2**16)
        assert piece, "the service has closed the connection"
        data += piece
    return found[0]


def said_to(port: int, *sent: bytes) -> list[httpx.Response]:
    """The answers on one connection to what is sent in pieces, until the service closes it."""
    with connected(port) as client:
        for piece in sent:
            client.sendall(piece)
            time.sleep(0.05)
        return answers_in(rest_of(client))


def answers_in(data: bytes) -> list[httpx.Response]:
    """The whole answers, each with a length."""
    answers = []
    while b"\r\n\r\n" in data:
        head, _, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        body, data = (
            data[: int(headers["content-length"])],
            data[int(headers["content-length"]) :],
        )
        if len(body) == int(headers["content-length"]):
            answers.append(httpx.Response(int(first.split()[1]), headers=headers, content=body))
    return answers


def ask(port: int, path: str = "/healthz", *, source: str = HOME) -> httpx.Response:
    transport = httpx.HTTPTransport(local_address=source)
    with httpx.Client(base_url=f"http://{HOME}:{port}", transport=transport, timeout=20) as client:
        if path == "/v1/entities":
            return client.post(path, json={"text": "a"})
        return client.get(path)


def other_address() -> str:
    """Another address of this machine, where the system has one."""
    try:
        with socket.create_server(("127.0.0.2", 0)):
            return "127.0.0.2"
    except OSError:
        return HOME


def requests_in(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
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
def test_a_thousand_idle_sockets_keep_nobody_out(first: bytes, limits: dict[str, Any]) -> None:
    with served(header_seconds=1.0, **limits) as port, many(port, 1000, first) as idle:
        began = time.monotonic()
        for source in (HOME, other_address()):
            assert ask(port, source=source).status_code == 200
            assert ask(port, "/v1/entities", source=source).status_code == 200
        assert time.monotonic() - began < 5  # a busy machine; a few milliseconds on an idle one
        statuses = {answer.status_code for one in idle for answer in answers_in(rest_of(one))}
        assert statuses <= ({408} if first else set())
        exposition = ask(port, "/metrics").text
        assert metric(exposition, "spandet_connections") == 1
        assert ('closed_total{reason="limit"}' in exposition) is not bool(limits)


def test_half_a_head_is_given_up_however_it_drips(port: int) -> None:
    began = time.monotonic()
    with connected(port) as client:
        for byte in HEALTH[:-2].decode():
            try:
                client.sendall(byte.encode())
            except ConnectionError:
                break
            time.sleep(0.1)
            if time.monotonic() - began > 3:
                pytest.fail("it still listens")
        answers = answers_in(rest_of(client))
    # None, where a byte was under way when the service closed the connection.
    assert {answer.status_code for answer in answers} <= {408}


def test_half_a_head_gets_an_answer_and_silence_gets_none(port: int) -> None:
    (answer,) = said_to(port, HEALTH[:20])
    assert answer.status_code == 408
    assert "within 0.4 s" in answer.json()["detail"]
    assert answer.headers["X-Request-ID"]
    assert said_to(port) == []


def test_a_connection_may_rest_longer_between_requests(port: int) -> None:
    with connected(port) as client:
        for _ in range(2):
            client.sendall(HEALTH)
            assert answer_on(client).status_code == 200
            time.sleep(0.7)
        client.sendall(HEALTH[:20])
        (answer,) = answers_in(rest_of(client))
        assert answer.status_code == 408


def test_half_a_body_is_given_up_and_its_connection_closed(port: int) -> None:
    for half in (WHOLE[:-5], CHUNKED + b"5\r\n{"):
        (answer,) = said_to(port, half)
        assert answer.status_code == 408
        assert answer.headers["Connection"] == "close"


def test_a_body_that_nobody_wants_does_not_hold_the_connection(port: int) -> None:
    began = time.monotonic()
    with connected(port) as client:
        client.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n")
        assert answer_on(client).status_code == 404
        try:
            while time.monotonic() - began < 5:
                client.sendall(b"x")
                time.sleep(0.05)
        except ConnectionError:
            return
    pytest.fail("it still listens")


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    answers = said_to(port, WHOLE + HEALTH + WHOLE + HEALTH[:20])
    assert [answer.status_code for answer in answers] == [200, 200, 200, 408]
    assert "documents" in answers[0].json()
    assert answers[1].json() == {"status": "ok"}


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
def test_what_cannot_be_read_in_one_way_is_refused(
    port: int, sent: bytes, status: int, words: str
) -> None:
    (answer,) = said_to(port, sent)
    assert answer.status_code == status
    assert words in answer.json()["detail"]
    assert answer.headers["Connection"] == "close"
    assert answer.headers["X-Request-ID"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_same_length_twice_is_one_length(port: int) -> None:
    answers = said_to(
        port, TYPED + b"Content-Length: 13\r\nContent-Length: 13\r\n\r\n" + BODY + b"G"
    )
    assert [answer.status_code for answer in answers] == [200, 408]


def test_nonsense_after_an_answer_ends_the_connection_quietly(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    missing = CHUNKED.replace(b"/v1/entities", b"/nothing")
    with caplog.at_level(logging.INFO):
        (answer,) = said_to(port, missing + b"1\r\na\r\n", b"zzz\r\n")
    assert answer.status_code == 404
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_what_is_refused_is_logged_and_counted(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="spandet.requests"):
        (answer,) = said_to(port, TYPED + BOTH)
    (record,) = requests_in(caplog)
    assert vars(record)["request_id"] == answer.headers["X-Request-ID"]
    assert vars(record)["client"] == HOME
    assert 'spandet_requests_total{path="other",status="400"}' in ask(port, "/metrics").text


def test_a_refused_connection_that_is_not_closed_yet_does_not_disturb_the_shutdown() -> None:
    async def story() -> None:
        config = configuration(create_app(sure_recognizer()))
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

    asyncio.run(story())


def test_who_does_not_read_is_disconnected() -> None:
    with served(send_seconds=0.5) as port, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((HOME, port))
        client.settimeout(0.2)
        wanted = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
        # The service does not read more while its answers are not read.
        with suppress(TimeoutError, ConnectionError):
            for _ in range(100):
                client.sendall(wanted)
        for _ in range(100):
            exposition = ask(port, "/metrics").text
            if 'closed_total{reason="send timeout"} 1.0' in exposition:
                break
            time.sleep(0.05)
        else:
            pytest.fail("it still waits for its reader")
        assert metric(exposition, "spandet_connections") == 1


def test_where_all_connections_are_at_work_only_health_is_answered() -> None:
    recognizer = Watched()
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
                assert "too many connections" in refused.json()["detail"]
                assert ask(port).status_code == 200
                recognizer.free.set()
                for client in (*clients, *fourth):
                    assert answer_on(client).status_code == 200
        assert ask(port, "/v1/entities").status_code == 200


def test_half_sent_bodies_make_room_for_whole_requests() -> None:
    with served(max_connections=4) as port, many(port, 8, WHOLE[:-5]) as halves:
        assert ask(port, "/v1/entities").status_code == 200
        # Who has waited longest was closed first; the last may go on.
        halves[-1].sendall(WHOLE[-5:])
        assert answer_on(halves[-1]).status_code == 200
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
        assert answer_on(resting).status_code == 200
        idle[-1].sendall(HEALTH[5:])
        assert answer_on(idle[-1]).status_code == 200
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
def test_a_client_is_an_address_and_a_proxy_is_many_clients(address: str, key: str) -> None:
    proxies = [ip_network("10.0.0.0/8"), ip_network("2001:db8::7")]
    assert Connections(ServiceSettings(), Metrics(), proxies=proxies).key_of(address) == key


@pytest.mark.parametrize(
    ("proxies", "expected"), [((), HOME), ((HOME,), "192.0.2.9"), (("10.0.0.0/8",), HOME)]
)
def test_only_a_trusted_proxy_may_name_the_client(
    proxies: tuple[str, ...], expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent = HEALTH[:-2] + b"X-Forwarded-For: 203.0.113.5, 192.0.2.9\r\n\r\n"
    with (
        caplog.at_level(logging.INFO, logger="spandet.requests"),
        served(proxies=proxies, max_connections_per_client=1) as port,
        many(port, 3, sent[:5]) as clients,
    ):
        clients[-1].sendall(sent[5:])
        assert answer_on(clients[-1]).status_code == 200
        open_now = metric(ask(port, "/metrics").text, "spandet_connections")
        assert open_now == (4 if HOME in proxies else 1)
    answered, *_ = requests_in(caplog)
    assert vars(answered)["client"] == expected


def test_a_full_service_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with served(max_connections=2) as port, many(port, 20):
        assert ask(port).status_code == 200
    (line,) = [record.getMessage() for record in caplog.records if "too many" in record.msg]
    assert line == (
        "too many connections: 3 are open, 3 of them from 127.0.0.1, "
        "and idle ones are closed for new ones"
    )
