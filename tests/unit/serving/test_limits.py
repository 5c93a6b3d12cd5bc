"""What a service refuses, how it says so, and that others do not suffer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from support.serving_toys import (
    Watched,
    metric,
    plain,
    sentences,
    sure_recognizer,
    until,
    with_client,
)

ENTITIES = "/v1/entities"
JSON = {"Content-Type": "application/json"}


def answer_to(
    content: bytes | str | AsyncIterator[bytes],
    *,
    path: str = ENTITIES,
    sent: dict[str, str] | None = None,
    **settings: Any,
) -> httpx.Response:
    async def story(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post(path, content=content, headers=JSON | (sent or {}))

    return with_client(story, **settings)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"text": NaN}', "NaN is no JSON number"),
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
def test_what_is_not_understood_is_a_422_that_says_why(body: bytes, words: str) -> None:
    answer = answer_to(body)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert len(answer.content) < 2000


def test_bad_input_is_not_sent_back() -> None:
    answer = answer_to(json.dumps({"texts": [["secret"] * 1000] * 200}))
    assert answer.status_code == 422
    assert "secret" not in answer.text
    assert len(answer.content) < 3000


@pytest.mark.parametrize("sent", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_only_json_is_taken(sent: str) -> None:
    assert answer_to(b'{"text": "a"}', sent={"Content-Type": sent}).status_code == 415


def test_a_long_body_is_refused_by_its_announcement() -> None:
    answer = answer_to(json.dumps({"text": "x" * 1000}), max_body_bytes=500)
    assert answer.status_code == 413
    assert "500 bytes" in answer.json()["detail"]


def test_a_long_body_without_announcement_is_not_kept() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'{"text": "'
        while sent < 2**30:
            sent += 2**20
            yield b"x" * 2**20

    answer = answer_to(endless(), max_body_bytes=2**20)
    assert answer.status_code == 413
    assert sent < 100 * 2**20


def test_a_body_that_does_not_come_is_given_up() -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b'{"text": '
        await asyncio.sleep(5)
        yield b'"a"}'

    assert answer_to(slow(), body_seconds=0.1).status_code == 408


def test_long_and_many_texts_are_refused() -> None:
    long = json.dumps({"texts": ["a", "x" * 11]})
    answer = answer_to(long, max_text_chars=10)
    assert answer.status_code == 413
    assert "text 1 has 11 characters" in answer.json()["detail"]
    assert answer_to(json.dumps({"texts": ["a"] * 3}), max_texts=2).status_code == 413
    trace = answer_to(json.dumps({"text": "x" * 11}), path="/v1/trace", max_trace_chars=10)
    assert trace.status_code == 413
    # What could never fit into the queue is not worth trying again.
    many = json.dumps({"texts": ["abc", "def"]})
    assert answer_to(many, max_queue_texts=1).status_code == 413
    assert answer_to(many, max_queue_chars=5).status_code == 413


def test_a_full_queue_says_when_to_come_back() -> None:
    recognizer = Watched()

    async def story(client: httpx.AsyncClient) -> None:
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
        answers = await asyncio.gather(*waiting)
        assert {answer.status_code for answer in answers} == {200}
        assert (await client.post(ENTITIES, json={"text": "Now."})).status_code == 200

    with_client(story, recognizer, max_queue_texts=4)


def test_the_wait_follows_from_the_pace() -> None:
    recognizer = Watched()

    async def story(client: httpx.AsyncClient) -> None:
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

    with_client(story, recognizer, max_queue_chars=100)


def test_who_waits_too_long_is_told_what_happened() -> None:
    recognizer = Watched()
    recognizer.free.clear()

    async def story(client: httpx.AsyncClient) -> None:
        answer = await client.post(ENTITIES, json={"texts": ["one", "two", "three"]})
        assert answer.status_code == 504
        assert "of 3 parts 0 were done, 1 had begun" in answer.json()["detail"]
        recognizer.free.set()
        after = await client.post(ENTITIES, json={"text": "four"})
        assert after.status_code == 200

    with_client(story, recognizer, timeout_seconds=3, max_batch_texts=1)
    assert recognizer.seen == ["one", "four"]


def test_what_a_client_left_behind_is_dropped() -> None:
    recognizer = Watched()
    recognizer.free.clear()

    async def story(client: httpx.AsyncClient) -> str:
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

    exposition = with_client(story, recognizer)
    assert recognizer.seen == ["first", "last"]
    assert 'status="499"} 1.0' in exposition
    assert metric(exposition, "spandet_queue_texts") == 0


def test_one_bad_text_does_not_poison_its_batch(caplog: pytest.LogCaptureFixture) -> None:
    recognizer = Watched()
    recognizer.free.clear()
    good = sentences(6)

    async def story(client: httpx.AsyncClient) -> list[httpx.Response]:
        first = asyncio.create_task(client.post(ENTITIES, json={"text": "first"}))
        await until(recognizer.busy.is_set)
        texts = [*good[:3], "the poison", *good[3:]]
        tasks = [asyncio.create_task(client.post(ENTITIES, json={"text": t})) for t in texts]
        await asyncio.sleep(0.05)
        recognizer.free.set()
        await first
        return await asyncio.gather(*tasks)

    with caplog.at_level(logging.ERROR, logger="spandet"):
        answers = with_client(story, recognizer)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 500, 200, 200, 200]
    bad = answers.pop(3).json()
    assert bad["id"] in caplog.text
    assert "the poison works" in caplog.text
    assert "the poison works" not in bad["detail"]
    for text, answer in zip(good, answers, strict=True):
        assert answer.json() == {"documents": [{"entities": plain(sure_recognizer()(text))}]}


def test_a_token_is_asked_for_before_anything_is_read() -> None:
    secret = "open-sesame"  # noqa: S105 (not any more)

    async def story(client: httpx.AsyncClient) -> None:
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
        answer = await client.post(ENTITIES, json={"text": "a"}, headers=bearer)
        assert answer.status_code == 200
        assert (await client.get("/v1/model", headers=bearer)).status_code == 200
        contract = (await client.get("/openapi.json")).json()
        assert contract["paths"]["/v1/model"]["get"]["security"]

    with_client(story, token=secret, max_body_bytes=100)


async def stopped_at_work(
    client: httpx.AsyncClient, recognizer: Watched, seconds: float
) -> asyncio.Task[httpx.Response]:
    """Stop a service that is held up by a text; gives who waits for the answer."""
    recognizer.free.clear()
    held = asyncio.create_task(client.post(ENTITIES, json={"text": "held"}))
    await until(recognizer.busy.is_set)
    client._transport.app.state.batcher.stop(seconds)  # type: ignore[attr-defined]
    return held


def test_a_service_that_stops_finishes_what_it_has() -> None:
    recognizer = Watched()

    async def story(client: httpx.AsyncClient) -> None:
        held = await stopped_at_work(client, recognizer, 30)
        refused = await client.post(ENTITIES, json={"text": "late"})
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        recognizer.free.set()
        assert (await held).status_code == 200

    with_client(story, recognizer)


def test_a_service_that_stops_waits_only_so_long() -> None:
    recognizer = Watched()

    async def story(client: httpx.AsyncClient) -> None:
        held = await stopped_at_work(client, recognizer, 0.05)
        assert (await held).status_code == 503
        recognizer.free.set()

    with_client(story, recognizer)
