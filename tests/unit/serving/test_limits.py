"""Refused requests, their errors, and that other requests are not affected."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from support.serving_toys import (
    RecordingRecognizer,
    entity_dicts,
    metric,
    permissive_recognizer,
    sentences,
    until,
    with_client,
)

ENTITIES = "/v1/entities"
JSON = {"Content-Type": "application/json"}


def response_to(
    content: bytes | str | AsyncIterator[bytes],
    *,
    path: str = ENTITIES,
    sent: dict[str, str] | None = None,
    **settings: Any,
) -> httpx.Response:
    async def scenario(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post(path, content=content, headers=JSON | (sent or {}))

    return with_client(scenario, **settings)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"text": NaN}', "NaN is not a JSON number"),
        (b'\xef\xbb\xbf{"text": ""}', "not JSON"),
        (b'{"text": "\xff"}', "not UTF-8"),
        (b'{"text": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"text": "a\nb"}', "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"text": ' * 50_000, "nested too deeply"),
        (b'{"min_score": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"{}", 'either "text" or "texts"'),
        (b'{"text": "a", "texts": ["b"]}', 'either "text" or "texts"'),
        (b'{"text": null}', "text: "),
        (b'{"text": 1}', "text: "),
        (b'{"texts": "a"}', "texts: "),
        (b'{"texts": ["a", 1]}', "texts: Value error, item 1"),
        (b'{"texts": null}', "texts: "),
        (b'{"text": "a", "labels": null}', "labels: "),
        (b'{"texts": [' + b"[]," * 300_000 + b"[]]}", "item 0"),
        (json.dumps(dict.fromkeys(map(str, range(100_000)), 1)).encode(), "100,000 keys"),
        (b'{"text": "a", "min_score": "0.5"}', "min_score: "),
        (b'{"text": "a", "min_score": 1.5}', "min_score: "),
        (b'{"text": "a", "min_score": true}', "min_score: "),
        (b'{"text": "a", "min_score": null}', "min_score: "),
        (b'{"text": "a", "labels": []}', "labels: "),
        (b'{"text": "a", "labels": ["\\ud800"]}', "no label '\\ud800'"),
        (b'{"text": "a", "txet": 1}', "txet: "),
        (b"[]", "body: "),
        (b'"text"', "body: "),
    ],
)
def test_an_invalid_body_is_a_422_with_a_reason(body: bytes, words: str) -> None:
    response = response_to(body)
    assert response.status_code == 422
    assert words in response.json()["detail"]
    assert len(response.content) < 2000


def test_errors_do_not_contain_the_input() -> None:
    response = response_to(json.dumps({"texts": [["secret"] * 1000] * 200}))
    assert response.status_code == 422
    assert "secret" not in response.text
    assert len(response.content) < 3000


@pytest.mark.parametrize("sent", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_other_content_types_than_json_are_refused(sent: str) -> None:
    assert response_to(b'{"text": "a"}', sent={"Content-Type": sent}).status_code == 415


def test_a_body_is_refused_by_its_content_length() -> None:
    response = response_to(json.dumps({"text": "x" * 1000}), max_body_bytes=500)
    assert response.status_code == 413
    assert "500 bytes" in response.json()["detail"]


def test_a_chunked_body_is_refused_when_it_exceeds_the_limit() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'{"text": "'
        while sent < 2**30:
            sent += 2**20
            yield b"x" * 2**20

    response = response_to(endless(), max_body_bytes=2**20)
    assert response.status_code == 413
    assert sent < 100 * 2**20


def test_a_body_that_does_not_arrive_times_out() -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b'{"text": '
        await asyncio.sleep(5)
        yield b'"a"}'

    assert response_to(slow(), body_seconds=0.1).status_code == 408


def test_too_long_and_too_many_texts_are_refused() -> None:
    long = json.dumps({"texts": ["a", "x" * 11]})
    response = response_to(long, max_text_chars=10)
    assert response.status_code == 413
    assert "text 1 has 11 characters" in response.json()["detail"]
    assert response_to(json.dumps({"texts": ["a"] * 3}), max_texts=2).status_code == 413
    trace = response_to(json.dumps({"text": "x" * 11}), path="/v1/trace", max_trace_chars=10)
    assert trace.status_code == 413
    # A request that exceeds the size of the queue must not be tried again.
    many = json.dumps({"texts": ["abc", "def"]})
    assert response_to(many, max_queue_texts=1).status_code == 413
    assert response_to(many, max_queue_chars=5).status_code == 413


def test_a_full_queue_is_a_429_with_retry_after() -> None:
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> None:
        await client.post(ENTITIES, json={"text": "To learn the pace."})
        recognizer.free.clear()
        texts = sentences(4)
        waiting = [
            asyncio.create_task(client.post(ENTITIES, json={"text": text})) for text in texts
        ]
        await asyncio.sleep(0.05)
        refused = await client.post(ENTITIES, json={"text": "One too many."})
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert refused.json()["retry_after"] == int(refused.headers["Retry-After"])
        exposition = (await client.get("/metrics")).text
        assert metric(exposition, "spandet_queue_texts") == 4
        assert metric(exposition, "spandet_queue_characters") == sum(map(len, texts))
        recognizer.free.set()
        responses = await asyncio.gather(*waiting)
        assert {response.status_code for response in responses} == {200}
        assert (await client.post(ENTITIES, json={"text": "Now."})).status_code == 200

    with_client(scenario, recognizer, max_queue_texts=4)


def test_retry_after_follows_from_the_measured_throughput() -> None:
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> None:
        held = asyncio.create_task(client.post(ENTITIES, json={"text": "x" * 10}))
        recognizer.free.clear()
        await until(recognizer.busy.is_set)
        await asyncio.sleep(0.5)  # ten characters in half a second
        recognizer.free.set()
        await held
        recognizer.free.clear()
        recognizer.busy.clear()
        held = asyncio.create_task(client.post(ENTITIES, json={"text": "x" * 95}))
        await until(recognizer.busy.is_set)
        refused = await client.post(ENTITIES, json={"text": "x" * 10})
        assert 4 <= int(refused.headers["Retry-After"]) <= 15
        recognizer.free.set()
        await held

    with_client(scenario, recognizer, max_queue_chars=100)


def test_a_timeout_is_a_504_that_reports_progress() -> None:
    recognizer = RecordingRecognizer()
    recognizer.free.clear()

    async def scenario(client: httpx.AsyncClient) -> None:
        response = await client.post(ENTITIES, json={"texts": ["one", "two", "three"]})
        assert response.status_code == 504
        assert "of 3 parts 0 were done, 1 had begun" in response.json()["detail"]
        recognizer.free.set()
        after = await client.post(ENTITIES, json={"text": "four"})
        assert after.status_code == 200

    with_client(scenario, recognizer, timeout_seconds=3, max_batch_texts=1)
    assert recognizer.seen == ["one", "four"]


def test_texts_of_a_disconnected_client_are_dropped() -> None:
    recognizer = RecordingRecognizer()
    recognizer.free.clear()

    async def scenario(client: httpx.AsyncClient) -> str:
        app = client._transport.app  # type: ignore[attr-defined]
        first = asyncio.create_task(client.post(ENTITIES, json={"text": "first"}))
        await until(recognizer.busy.is_set)
        leave = asyncio.Event()
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if not leave.is_set() and not sent:
                sent.append("body")
                return {"type": "http.request", "body": b'{"text": "left"}'}
            await leave.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": ENTITIES,
            "raw_path": ENTITIES.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("test", 80),
        }
        leaving = asyncio.create_task(app(scope, receive, send))
        last = asyncio.create_task(client.post(ENTITIES, json={"text": "last"}))
        await asyncio.sleep(0.05)
        leave.set()
        await leaving
        recognizer.free.set()
        for task in (first, last):
            assert (await task).status_code == 200
        return (await client.get("/metrics")).text

    exposition = with_client(scenario, recognizer)
    assert recognizer.seen == ["first", "last"]
    assert 'status="499"} 1.0' in exposition
    assert metric(exposition, "spandet_queue_texts") == 0


def test_a_failing_text_does_not_fail_the_rest_of_its_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recognizer = RecordingRecognizer()
    recognizer.free.clear()
    good = sentences(6)

    async def scenario(client: httpx.AsyncClient) -> list[httpx.Response]:
        first = asyncio.create_task(client.post(ENTITIES, json={"text": "first"}))
        await until(recognizer.busy.is_set)
        texts = [*good[:3], "the poison", *good[3:]]
        tasks = [asyncio.create_task(client.post(ENTITIES, json={"text": t})) for t in texts]
        await asyncio.sleep(0.05)
        recognizer.free.set()
        await first
        return await asyncio.gather(*tasks)

    with caplog.at_level(logging.ERROR, logger="spandet"):
        responses = with_client(scenario, recognizer)
    assert [response.status_code for response in responses] == [200, 200, 200, 500, 200, 200, 200]
    bad = responses.pop(3).json()
    assert bad["id"] in caplog.text
    assert "poisoned text" in caplog.text
    assert "poisoned text" not in bad["detail"]
    for text, response in zip(good, responses, strict=True):
        assert response.json() == {
            "documents": [{"entities": entity_dicts(permissive_recognizer()(text))}]
        }


def test_the_token_is_checked_before_the_body_is_read() -> None:
    secret = "open-sesame"  # noqa: S105 (not any more)

    async def scenario(client: httpx.AsyncClient) -> None:
        bearer = {"Authorization": f"Bearer {secret}"}
        for sent in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {secret}"}):
            for path in ("/v1/entities", "/v1/trace"):
                huge = await client.post(path, content=b"x" * 10_000, headers=sent)
                assert huge.status_code == 401
                assert huge.headers["WWW-Authenticate"] == "Bearer"
            for path in ("/v1/model", "/metrics"):
                assert (await client.get(path, headers=sent)).status_code == 401
        for path in ("/healthz", "/openapi.json"):
            assert (await client.get(path)).status_code == 200
        response = await client.post(ENTITIES, json={"text": "a"}, headers=bearer)
        assert response.status_code == 200
        assert (await client.get("/v1/model", headers=bearer)).status_code == 200
        contract = (await client.get("/openapi.json")).json()
        assert contract["paths"]["/v1/model"]["get"]["security"]

    with_client(scenario, token=secret, max_body_bytes=100)


async def stop_while_busy(
    client: httpx.AsyncClient, recognizer: RecordingRecognizer, seconds: float
) -> asyncio.Task[httpx.Response]:
    """Stop a service while it processes a text; returns the task of that request."""
    recognizer.free.clear()
    held = asyncio.create_task(client.post(ENTITIES, json={"text": "held"}))
    await until(recognizer.busy.is_set)
    client._transport.app.state.batcher.stop(seconds)  # type: ignore[attr-defined]
    return held


def test_a_stopping_service_finishes_accepted_requests() -> None:
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> None:
        held = await stop_while_busy(client, recognizer, 30)
        refused = await client.post(ENTITIES, json={"text": "late"})
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        recognizer.free.set()
        assert (await held).status_code == 200

    with_client(scenario, recognizer)


def test_a_stopping_service_fails_requests_after_the_shutdown_timeout() -> None:
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> None:
        held = await stop_while_busy(client, recognizer, 0.05)
        assert (await held).status_code == 503
        recognizer.free.set()

    with_client(scenario, recognizer)
