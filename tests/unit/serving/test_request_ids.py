"""Request ids: in every response, and in the log."""

from __future__ import annotations

import json
import logging

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.serving.responses import request_id_of
from spandet.serving.server import JsonLines
from support.serving_toys import RecordingRecognizer, with_client

ENTITIES = "/v1/entities"


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=128))
def test_a_usable_id_is_kept(sent: str) -> None:
    assert request_id_of([(b"x-request-id", sent.encode())]) == sent


@given(st.lists(st.binary(max_size=200), max_size=3))
def test_every_id_is_short_and_printable(sent: list[bytes]) -> None:
    got = request_id_of([(b"x-request-id", value) for value in sent])
    assert 1 <= len(got) <= 128
    assert got.isascii()
    assert got.isprintable()
    assert " " not in got
    if got.encode() not in sent:
        assert got != request_id_of([])


def test_every_response_has_the_id_of_its_request(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        huge = b"x" * 1000
        json_type = {"Content-Type": "application/json"}
        for number, (method, path, content, status) in enumerate(
            [
                ("GET", "/healthz", b"", 200),
                ("GET", "/", b"", 200),
                ("GET", "/nothing", b"", 404),
                ("PUT", ENTITIES, b"", 405),
                ("POST", ENTITIES, huge, 413),
                ("POST", ENTITIES, b"{", 422),
                ("POST", ENTITIES, b'{"text": "poison"}', 500),
                ("GET", "/v1/model", b"", 500),
            ]
        ):
            if path == "/v1/model":  # an unexpected exception
                client._transport.app.state.recognizer = None  # type: ignore[attr-defined]
            name = f"me-{number}"
            sent = json_type | {"X-Request-ID": name}
            response = await client.request(method, path, content=content, headers=sent)
            assert (response.status_code, response.headers["X-Request-ID"]) == (status, name)
            record = next(x for x in caplog.records if x.name == "spandet.requests")
            assert name in record.getMessage()
            assert json.loads(JsonLines().format(record))["request_id"] == name
            failures = [x for x in caplog.records if x.levelno == logging.ERROR]
            assert len(failures) == (status == 500)
            assert all(vars(x)["request_id"] == name and x.exc_info for x in failures)
            caplog.clear()

    with caplog.at_level(logging.INFO, logger="spandet"):
        with_client(scenario, RecordingRecognizer(), max_body_bytes=100)


def test_a_request_without_an_id_gets_a_new_one() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        made = {(await client.get("/healthz")).headers["X-Request-ID"] for _ in range(3)}
        assert len(made) == 3
        odd = await client.get("/healthz", headers={"X-Request-ID": "a b"})
        assert odd.headers["X-Request-ID"] != "a b"

    with_client(scenario)


def test_the_log_has_the_address_of_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        await client.get("/healthz")

    with caplog.at_level(logging.INFO, logger="spandet.requests"):
        with_client(scenario)
    (record,) = caplog.records
    assert json.loads(JsonLines().format(record))["client"] == "127.0.0.1"
