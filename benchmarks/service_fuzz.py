"""Sends ten thousand invalid and hostile requests to a service.

    python benchmarks/service_fuzz.py MODEL [--requests 10000] [--seed 1]

Starts `spandet serve MODEL`, then sends well-formed requests with odd texts, ill-formed JSON, wrong
shapes, huge and deep bodies, wrong methods, paths and headers, raw bytes that are not HTTP, and
requests that are cut off. Every response must have a documented status, in time, and a body of
valid JSON; afterwards the service must respond as before, with about as much memory. The exit code
is 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import psutil

ENTITIES, TRACE = "/v1/entities", "/v1/trace"
EXPECTED = {200, 404, 405, 408, 413, 415, 422, 429}
SENTENCE = "Halburn Rangers beat Tibburn 3-2 in the Ludyne Shipping Arena."
ODD = ["\0", "\ud800", "\udfff\ud800", "\u202e", "\ufeff", "🧬", "خلية", "\r\n", "a" * 300, "́"]
REST = 10.0
"""Seconds after which the service has returned its memory."""
SLACK = 200 * 2**20
"""Allowed growth of memory in bytes: allocators keep some freed memory."""

Sent = tuple[str, str, bytes, dict[str, str]]


def odd_text(rng: random.Random) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(40)))
    if kind == 1:
        return "".join(rng.choice([*ODD, *SENTENCE.split()]) for _ in range(rng.randrange(9)))
    if kind == 2:
        return rng.choice(ODD) * rng.randrange(400)
    words = SENTENCE.split()
    return " ".join(rng.choice([*words, *ODD]) for _ in range(rng.randrange(30)))


def odd_value(rng: random.Random, depth: int = 0) -> object:
    makers: list[Callable[[], object]] = [
        lambda: None,
        lambda: rng.random() < 0.5,
        lambda: rng.choice([0, -1, 1, 2**64, 10**300, 0.5, -0.0, 1e308]),
        lambda: odd_text(rng),
        lambda: [odd_value(rng, depth + 1) for _ in range(rng.randrange(4))],
        lambda: {odd_text(rng)[:9]: odd_value(rng, depth + 1) for _ in range(2)},
    ]
    return rng.choice(makers if depth < 3 else makers[:4])()


def posted(path: str, body: bytes, **headers: str) -> Sent:
    sent = {"Content-Type": "application/json"} | {
        key.replace("_", "-"): value for key, value in headers.items()
    }
    return "POST", path, body, sent


def good(rng: random.Random) -> Sent:
    if rng.random() < 0.2:
        return posted(TRACE, json.dumps({"text": odd_text(rng)}).encode())
    texts = [odd_text(rng) for _ in range(rng.randrange(4))]
    body = {"texts": texts, "min_score": rng.choice([0, 0.3, 1])}
    return posted(ENTITIES, json.dumps(body).encode())


def wrong_shape(rng: random.Random) -> Sent:
    keys = ["text", "texts", "min_score", "labels", "other", ""]
    body = {key: odd_value(rng) for key in rng.sample(keys, rng.randrange(5))}
    value = body if rng.random() < 0.8 else odd_value(rng)
    return posted(rng.choice([ENTITIES, TRACE]), json.dumps(value).encode())


def damaged(rng: random.Random) -> Sent:
    body = bytearray(
        json.dumps({"text": odd_text(rng)}, ensure_ascii=rng.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
    )
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(body))
        if rng.random() < 0.5:
            body[place] = rng.randrange(256)
        else:
            del body[place]
    return posted(rng.choice([ENTITIES, TRACE]), bytes(body))


def deep(rng: random.Random) -> Sent:
    opening = rng.choice([b"[", b'{"text":', b'{"texts":['])
    return posted(ENTITIES, opening * rng.choice([10, 1000, 100_000]))


def huge(rng: random.Random) -> Sent:
    size = rng.choice([10**5, 10**6, 5 * 10**6, 2 * 10**7])
    makers = [
        lambda: json.dumps({"text": "x" * size}).encode(),
        lambda: b'{"texts": [' + b"[]," * (size // 3) + b"[]]}",
        lambda: b'{"texts": [' + b'"",' * (size // 3) + b'""]}',
        lambda: b'{"min_score": ' + b"9" * size + b"}",
    ]
    return posted(ENTITIES, rng.choice(makers)())


def elsewhere(rng: random.Random) -> Sent:
    method = rng.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "POST"])
    paths = [ENTITIES, TRACE, "/", "/v1/model", "/metrics", "/healthz", "/../etc/passwd", "/%00"]
    kind = rng.choice(["text/plain", "application/json; charset=utf-16", "", "\x7f"])
    return method, rng.choice(paths), b"{}", {"Content-Type": kind}


KINDS: dict[str, tuple[int, Callable[[random.Random], Sent]]] = {
    "good": (30, good),
    "wrong shape": (30, wrong_shape),
    "damaged": (25, damaged),
    "elsewhere": (11, elsewhere),
    "deep": (2, deep),
    "huge": (1, huge),
}


def leave(address: str, rng: random.Random) -> None:
    """Send something that is not HTTP or only part of a request, and close the connection."""
    place = urlsplit(address)
    body = json.dumps({"text": SENTENCE * 20}).encode()
    head = f"POST {ENTITIES} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    lines = [
        whole,
        whole[: rng.randrange(len(whole))],
        rng.randbytes(rng.randrange(1, 2000)),
        f"{head}Transfer-Encoding: chunked\r\n\r\nffffffff\r\n".encode() + body,
        f"{head}Content-Length: -5\r\n\r\n".encode(),
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000,
    ]
    with socket.create_connection((place.hostname or "", place.port or 80), timeout=10) as client:
        try:
            client.sendall(rng.choice(lines))
        except OSError:
            return  # the service has closed the connection


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    command = [sys.executable, "-m", "spandet", "serve", options.model, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        found = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        if found is None:
            sys.exit("the service did not start")
        problems = fuzz(found.group(), psutil.Process(process.pid), options)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    for problem in problems[:20]:
        print("error:", problem)
    sys.exit(bool(problems) or process.returncode != 0)


def fuzz(address: str, server: psutil.Process, options: argparse.Namespace) -> list[str]:
    with httpx.Client(base_url=address, timeout=120) as client:
        before = client.post(ENTITIES, json={"text": SENTENCE}).json()
        for _ in range(20):
            client.post(ENTITIES, json={"texts": [SENTENCE] * 32})
        memory = server.memory_info().rss
        problems = attack(client, address, options)
        after = client.post(ENTITIES, json={"text": SENTENCE}).json()
        metrics = client.get("/metrics").text
    if after != before:
        problems.append("the service does not respond as before")
    if "spandet_queue_texts 0.0" not in metrics:
        problems.append("the queue is not empty")
    time.sleep(REST)
    grown = server.memory_info().rss - memory
    print(f"memory: {memory / 2**20:.0f} MiB before, {grown / 2**20:+.0f} MiB after")
    if grown > SLACK:
        problems.append("memory has grown")
    return problems


def attack(client: httpx.Client, address: str, options: argparse.Namespace) -> list[str]:
    rng = random.Random(options.seed)  # noqa: S311 (not for security)
    problems: list[str] = []
    seen: Counter[tuple[str, int]] = Counter()
    names = list(KINDS)
    weights = [KINDS[name][0] for name in names]
    began = time.perf_counter()
    for number in range(options.requests):
        if rng.random() < 0.01:
            leave(address, rng)
            seen["left", 0] += 1
            continue
        name = rng.choices(names, weights)[0]
        status, problem = send(client, KINDS[name][1](rng))
        seen[name, status] += 1
        if problem:
            problems.append(f"request {number} ({name}): {problem}")
    print(f"{options.requests:,} requests in {time.perf_counter() - began:.0f} s")
    for (name, status), times in sorted(seen.items()):
        print(f"{name:12} {status or '':4} {times:6,}")
    return problems


def send(client: httpx.Client, sent: Sent) -> tuple[int, str]:
    method, path, body, headers = sent
    try:
        response = client.request(method, path, content=body, headers=headers)
    except httpx.WriteError:
        return 413, ""  # the service has closed the connection during a huge body
    if response.status_code not in EXPECTED:
        return response.status_code, f"status {response.status_code}: {response.text[:300]}"
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("application/json") and method != "HEAD":
        json.loads(response.content)
    if response.status_code >= 400 and method != "HEAD" and "detail" not in response.text:
        return response.status_code, "the response has no detail"
    return response.status_code, ""


if __name__ == "__main__":
    main()
