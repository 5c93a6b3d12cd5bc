"""Allowed hosts and trusted proxies of a service."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.errors import UsageError
from spandet.serving import AllowedHosts, create_app
from spandet.serving.server import networks
from support.serving_toys import client_of, permissive_recognizer, with_client

ENTITIES = "/v1/entities"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "a.localhost", "localhost."])
@pytest.mark.parametrize("port", ["", ":8000", ":"])
def test_this_machine_is_always_allowed(host: str, port: str) -> None:
    for listening in ("127.0.0.1", "::1", "localhost", "192.0.2.1", "here.example"):
        assert host + port in AllowedHosts.when_listening_on(listening)


@given(st.ip_addresses())
def test_ip_addresses_are_always_allowed(address: Any) -> None:
    written = f"[{address}]" if address.version == 6 else str(address)
    assert written in AllowedHosts.when_listening_on("127.0.0.1")
    assert f"{written}:8000" in AllowedHosts.when_listening_on("127.0.0.1")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "notlocalhost",
        "127.0.0.1@evil.example",
        "localhost:80:80",
        "localhost:x",
        "[evil.example]",
        "[::1",
        "localhost, evil.example",
        "localhost\\evil",
        " localhost",
        "*",
        "",
    ],
)
def test_other_names_are_not_allowed(host: str) -> None:
    for allowed in (
        AllowedHosts.when_listening_on("127.0.0.1"),
        AllowedHosts.when_listening_on("0.0.0.0", ["ner.example"]),  # noqa: S104 (no socket)
    ):
        assert host not in allowed


def test_own_names_and_given_names_are_allowed() -> None:
    allowed = AllowedHosts.when_listening_on("Here.example", ["NER.example"])
    for host in ("here.example:80", "ner.EXAMPLE", "ner.example.:80", socket.gethostname()):
        assert host in allowed
    assert "other.example" in AllowedHosts.when_listening_on("127.0.0.1", ["*"])


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])  # noqa: S104 (no socket)
def test_on_every_network_any_name_is_allowed_unless_some_are_given(everywhere: str) -> None:
    assert "spandet.default.svc" in AllowedHosts.when_listening_on(everywhere)
    assert "spandet.default.svc" not in AllowedHosts.when_listening_on(everywhere, ["other"])


@pytest.mark.parametrize("name", ["a:80", "http://a/", "*.a", "", "a b", "[::1]"])
def test_an_allowed_name_has_no_port_scheme_or_wildcard(name: str) -> None:
    with pytest.raises(UsageError, match="expected a host name without port"):
        AllowedHosts([name])


def test_a_proxy_is_an_address_or_a_network() -> None:
    assert [str(one) for one in networks(["10.0.0.7", "10.0.0.0/8"])] == [
        "10.0.0.7/32",
        "10.0.0.0/8",
    ]
    for wrong in ("proxy", "10.0.0.7/8", "*"):
        with pytest.raises(UsageError, match=r"--trusted-proxy: .*expected 10\.0\.0\.7 or"):
            networks([wrong])


async def to_host(host: str, path: str, method: str = "GET") -> httpx.Response:
    app = create_app(permissive_recognizer(), hosts=AllowedHosts.when_listening_on("127.0.0.1"))
    async with client_of(app) as client:
        return await client.request(method, path, headers={"Host": host})


@pytest.mark.parametrize("path", ["/", ENTITIES, "/v1/model", "/metrics", "/openapi.json", "/x"])
def test_a_request_to_another_host_is_refused(path: str) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        refused = await to_host("evil.example", path)
        assert refused.status_code == 421
        assert "the host 'evil.example' is not allowed" in refused.json()["detail"]
        assert "--allow-host" in refused.json()["detail"]
        assert refused.headers["X-Request-ID"]
        assert (await to_host("localhost:8000", path)).status_code != 421

    with_client(scenario)


def test_health_checks_work_for_any_host_and_for_head() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        assert (await to_host("pod-7.example", "/healthz")).json() == {"status": "ok"}
        head = await to_host("pod-7.example", "/healthz", "HEAD")
        assert head.status_code == 200
        options = await client.options(ENTITIES)
        assert options.status_code == 405
        assert options.headers["Allow"] == "POST"

    with_client(scenario)
