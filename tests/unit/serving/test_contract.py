"""OpenAPI schema, model description, page files, log and defaults of the service."""

from __future__ import annotations

import inspect
import json
import logging
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from spandet.cli.serve import serve_command
from spandet.errors import UsageError
from spandet.serving import Description, ServiceSettings, create_app
from spandet.serving.server import JsonLines, address, is_loopback, listen
from support.serving_toys import permissive_recognizer, sentences, with_client

# schemathesis does not count a 413 as a refusal by default.
REFUSALS = {"checks": {"negative_data_rejection": {"expected-statuses": ["413", "415", "422"]}}}
schema = schemathesis.openapi.from_asgi(
    "/openapi.json",
    create_app(permissive_recognizer()),
    config=schemathesis.Config.from_dict(REFUSALS),
)


@schema.parametrize()
@settings(
    max_examples=15,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_response_conforms_to_the_openapi_schema(case: Case[Any]) -> None:
    case.call_and_validate()


def test_the_openapi_schema_has_examples_and_the_limits_of_the_service() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        contract = (await client.get("/openapi.json")).json()
        shapes = contract["components"]["schemas"]
        request = shapes["EntitiesRequest"]
        assert request["properties"]["texts"]["maxItems"] == 7
        assert request["properties"]["labels"]["items"]["enum"] == list(
            permissive_recognizer().labels
        )
        for example in request["examples"]:
            assert (await client.post("/v1/entities", json=example)).status_code == 200
        assert shapes["EntitiesResponse"]["examples"]
        statuses = set(contract["paths"]["/v1/entities"]["post"]["responses"])
        assert statuses >= {"200", "408", "413", "415", "422", "429", "500", "503", "504"}
        for path in ("/docs", "/redoc"):
            assert (await client.get(path)).status_code == 404

    with_client(scenario, max_texts=7)


def test_the_model_is_described() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        model = (await client.get("/v1/model")).json()
        assert model["detector"] == "locate-and-label"
        assert model["encoder"] == "hashed"
        assert model["labels"] == list(permissive_recognizer().labels)
        assert model["threshold"] == 0.3
        assert model["scores"] is None
        assert model["limits"]["max_text_chars"] == 10
        assert (await client.get("/healthz")).json() == {"status": "ok"}

    with_client(scenario, max_text_chars=10)


def test_scores_come_from_the_run_file(tmp_path: Path) -> None:
    assert Description.of_folder(tmp_path) == Description(tmp_path.name, None)
    micro = {"precision": 0.5, "recall": 1, "f1": 0.75, "gold": 3}
    (tmp_path / "run.json").write_text(json.dumps({"dev": {"micro": micro}}))
    scores = {"precision": 0.5, "recall": 1.0, "f1": 0.75}
    assert Description.of_folder(tmp_path).scores == scores
    (tmp_path / "run.json").write_text(json.dumps({"dev": None}))
    assert Description.of_folder(tmp_path).scores is None


def test_the_page_is_safe_and_cacheable() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        page = await client.get("/")
        assert page.status_code == 200
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        again = await client.get("/", headers={"If-None-Match": page.headers["ETag"]})
        assert again.status_code == 304
        assert not again.content
        assert (await client.head("/")).status_code == 200
        for path in ("/page.css", "/page.js"):
            file = await client.get(path)
            assert file.status_code == 200
            assert file.headers["X-Content-Type-Options"] == "nosniff"
        assert (await client.get("/../app.py")).status_code == 404

    with_client(scenario)


def test_responses_are_not_cached() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        response = await client.post("/v1/entities", json={"text": sentences(1)[0]})
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in response.headers

    with_client(scenario)


def test_made_up_paths_do_not_fill_the_metrics() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        for number in range(20):
            assert (await client.get(f"/nothing/{number}")).status_code == 404
        assert (await client.get("/v1/entities")).status_code == 405
        exposition = (await client.get("/metrics")).text
        assert "nothing" not in exposition
        assert 'spandet_requests_total{path="other",status="404"} 20.0' in exposition

    with_client(scenario)


def test_two_services_in_a_process_have_separate_metrics() -> None:
    create_app(permissive_recognizer())
    create_app(permissive_recognizer())


def test_the_command_line_has_the_defaults_of_the_settings() -> None:
    given = inspect.signature(serve_command).parameters
    fields = {
        "timeout": "timeout_seconds",
        "shutdown_timeout": "shutdown_seconds",
        "header_timeout": "header_seconds",
        "body_timeout": "body_seconds",
        "send_timeout": "send_seconds",
        **{name: name for name in given if name.startswith("max_")},
    }
    assert len(fields) == 14
    own = ServiceSettings()
    for option, field in fields.items():
        assert given[option].default == getattr(own, field), option


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("192.0.2.1", False), ("me", False)],
)
def test_loopback_addresses(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_port_in_use_is_a_usage_error() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address(taken) == f"http://127.0.0.1:{port}/"
        with pytest.raises(UsageError, match=rf"cannot listen on 127.0.0.1 port {port}: "):
            listen("127.0.0.1", port)


def test_a_line_of_the_log_is_json() -> None:
    record = logging.LogRecord("spandet", logging.ERROR, "", 0, "%s and\nmore", ("this",), None)
    record.status = 500
    line = JsonLines().format(record)
    assert "\n" not in line
    assert json.loads(line)["message"] == "this and\nmore"
    assert json.loads(line)["status"] == 500


def test_accepted_connections_have_tcp_nodelay() -> None:
    with (
        listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
