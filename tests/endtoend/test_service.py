"""`spandet serve` with real processes, sockets and signals."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from spandet.inference.recognizer import Recognizer
from support.service_process import Service, service
from support.serving_toys import entity_dicts, permissive_recognizer, sentences

ENTITIES = "/v1/entities"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "toy"
    permissive_recognizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def running(model: Path) -> Iterator[Service]:
    with service(model) as one:
        yield one


def serve(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spandet", "serve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def expected_results(model: Path, texts: Sequence[str]) -> list[Any]:
    documents = Recognizer.from_pretrained(model).predict(texts)
    return [
        {"documents": [{"entities": rounded(entity_dicts(document))}]} for document in documents
    ]


def rounded(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Round scores, whose last digits depend on the shape of a batch."""
    return [{**entity, "score": round(entity["score"], 4)} for entity in entities]


def entities_of(client: httpx.Client, text: str) -> Any:
    response = client.post(ENTITIES, json={"text": text})
    response.raise_for_status()
    (document,) = response.json()["documents"]
    return {"documents": [{"entities": rounded(document["entities"])}]}


def in_threads(work: Callable[[int], None], count: int) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def join(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def test_concurrent_clients_get_their_own_results(running: Service, model: Path) -> None:
    texts = sentences(48)
    expected = expected_results(model, texts)
    got: dict[int, Any] = {}

    def work(number: int) -> None:
        with httpx.Client(base_url=running.address, timeout=60) as client:
            for place in range(number, len(texts), 16):
                got[place] = entities_of(client, texts[place])

    join(in_threads(work, 16))
    assert [got[place] for place in range(len(texts))] == expected


def test_huge_and_endless_bodies_do_not_increase_memory(running: Service) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b"[" * 2**20

    with httpx.Client(base_url=running.address, timeout=60) as client:
        headers = {"Content-Type": "application/json"}
        entities_of(client, "Warm.")
        before = running.memory()
        for body in (endless(), b"[" * 2**25, b'{"texts": [' + b"[]," * 2**20 + b"[]]}"):
            response = client.post(ENTITIES, content=body, headers=headers)
            assert response.status_code in {413, 422}
        entities_of(client, "Still there.")
        assert running.memory() - before < 150 * 2**20


def test_work_for_a_disconnected_client_is_dropped(running: Service) -> None:
    def counted(client: httpx.Client) -> float:
        lines = client.get("/metrics").text.splitlines()
        return float(next(x for x in lines if x.startswith("spandet_characters_total")).split()[1])

    body = json.dumps({"text": " ".join(sentences(300)) * 2}).encode()
    head = f"POST {ENTITIES} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with httpx.Client(base_url=running.address, timeout=60) as client:
        before = counted(client)
        with socket.create_connection(("127.0.0.1", running.port)) as leaving:
            leaving.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            while counted(client) == before:
                time.sleep(0.01)
        for _ in range(200):
            if "spandet_queue_texts 0.0" in client.get("/metrics").text:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the text is still in the queue")
        assert counted(client) - before < len(body) / 2


def test_health_checks_work_with_a_thousand_idle_connections(running: Service) -> None:
    with ExitStack() as stack:
        for number in range(1000):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", running.port)))
            with suppress(ConnectionError):  # closed for a later one already
                idle.sendall(b"GET /healthz HTTP/1.1\r\nHo" if number % 2 else b"")
        began = time.monotonic()
        assert httpx.get(f"{running.address}healthz").status_code == 200
        with httpx.Client(base_url=running.address, timeout=60) as client:
            entities_of(client, "Still there.")
        assert time.monotonic() - began < 5  # a busy machine; milliseconds on an idle one
    evil = {"Host": "evil.example"}
    assert httpx.get(f"{running.address}v1/model", headers=evil).status_code == 421


def test_after_sigterm_accepted_requests_are_finished(model: Path) -> None:
    texts = sentences(64)
    expected = dict(zip(texts, expected_results(model, texts), strict=True))
    answered: list[str] = []
    lost: list[str] = []
    refused: list[str] = []
    with service(model) as one:
        stopping = threading.Event()

        def is_correct(client: httpx.Client, text: str) -> bool:
            try:
                right: bool = entities_of(client, text) == expected[text]
            except httpx.HTTPStatusError as error:
                (refused if error.response.status_code == 503 else lost).append(text)
                return False
            except httpx.TransportError:
                # After SIGTERM it accepts no more connections, and closes idle ones.
                (refused if stopping.is_set() else lost).append(text)
                return False
            (answered if right else lost).append(text)
            return right

        def work(number: int) -> None:
            with httpx.Client(base_url=one.address, timeout=60) as client:
                for text in texts[number % 8 :: 8] * 50:
                    if not is_correct(client, text):
                        return

        threads = in_threads(work, 8)
        while len(answered) < 20:
            time.sleep(0.01)
        stopping.set()
        assert one.stop() == 0, one.log_text()
        join(threads)
        assert "Traceback" not in one.log_text()
    assert answered
    assert not lost


def test_after_sigterm_a_long_request_is_finished(model: Path) -> None:
    text = " ".join(sentences(300))
    with service(model) as one, httpx.Client(base_url=one.address, timeout=60) as client:
        got: list[int] = []
        other = httpx.Client(base_url=one.address, timeout=60)

        def work(_: int) -> None:
            got.append(client.post(ENTITIES, json={"texts": [text] * 3}).status_code)

        threads = in_threads(work, 1)
        with other:
            while "spandet_queue_texts 3.0" not in other.get("/metrics").text:
                time.sleep(0.01)
        assert one.stop() == 0
        join(threads)
        assert got == [200]


def test_clients_that_retry_lose_nothing_over_a_restart(model: Path) -> None:
    texts = sentences(64)
    expected = expected_results(model, texts)
    got: dict[int, Any] = {}
    retried = []

    def with_retries(client: httpx.Client, text: str) -> Any:
        for _ in range(600):
            try:
                return entities_of(client, text)
            except httpx.HTTPError:
                retried.append(text)
                time.sleep(0.1)
        raise AssertionError("no response after 600 attempts")

    with service(model) as first:
        port, address = first.port, first.address

        def work(number: int) -> None:
            with httpx.Client(base_url=address, timeout=60) as client:
                for place in range(number, len(texts), 8):
                    got[place] = with_retries(client, texts[place])

        threads = in_threads(work, 8)
        while len(got) < 8:
            time.sleep(0.002)
        first.kill()
    with service(model, "--port", port):
        join(threads)
    assert [got[place] for place in range(len(texts))] == expected
    assert retried or len(got) == len(texts)


def test_a_token_from_a_file_or_the_environment(model: Path, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    bearer = {"Authorization": "Bearer s3cret"}
    with service(model, "--token-file", secret, "--log-requests", "--log-json") as one:
        with httpx.Client(base_url=one.address, timeout=60) as client:
            assert client.get("/v1/model").status_code == 401
            assert client.get("/v1/model", headers=bearer).json()["name"] == "toy"
            client.get("/healthz", headers={"X-Request-ID": "probe-7"}).raise_for_status()
        assert one.stop() == 0
        start, *requests, stopping, stop = map(json.loads, one.log_text().splitlines())
        assert [line["status"] for line in requests] == [401, 200, 200]
        assert {line["client"] for line in requests} == {"127.0.0.1"}
        assert requests[-1]["request_id"] == "probe-7"
        process = {"model": "toy", "address": one.address, "pid": one.process.pid}
        assert start.items() >= {**process, "threads": 1}.items()
        assert stopping.items() >= {**process, "signal": "SIGTERM"}.items()
        assert stop.items() >= {**process, "requests": 3}.items()
        assert "s3cret" not in one.log_text()
    with service(model, token="other") as one:  # noqa: S106 (not a secret)
        assert httpx.get(f"{one.address}v1/model", headers=bearer).status_code == 401


def test_log_lines_of_a_run_and_warning_without_a_token(model: Path) -> None:
    with service(model) as one:
        httpx.get(f"{one.address}healthz")
        assert one.stop() == 0
        where = rf"toy at {one.address}, pid {one.process.pid}"
        lines = one.log_text().splitlines()
        assert len(lines) == 3
        for line, words in zip(
            lines,
            (
                rf"INFO started: {where}, 1 threads",
                rf"INFO stopping: {where}, SIGTERM",
                rf"INFO stopped: {where}, 1 requests in \d+\.\d s",
            ),
            strict=True,
        ):
            assert re.search(rf"{words}$", line), line
    with service(model, "--host", "0.0.0.0") as one:  # noqa: S104 (the warning is tested)
        any_host = {"Host": "spandet.default.svc"}
        assert httpx.get(f"http://127.0.0.1:{one.port}/v1/model", headers=any_host).is_success
        assert "no token is set" in one.log_text()
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(60) == 0


def test_user_mistakes_are_one_line_on_stderr(model: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options, words in [
            (["--port", port], f"cannot listen on 127.0.0.1 port {port}"),
            (["--port", 0, "--token-file", empty], "must contain one token"),
            (["--port", 0, "--token-file", tmp_path / "none"], "cannot be read"),
        ]:
            done = serve(model, *options)
            assert done.returncode == 2
            assert words in done.stderr
            assert len(done.stderr.splitlines()) == 1
    assert serve(tmp_path / "nothing", "--port", 0).returncode == 2
