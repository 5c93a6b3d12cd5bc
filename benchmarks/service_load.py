"""Measures a service under load, with and without batching.

    python benchmarks/service_load.py MODEL [--clients 32] [--seconds 30]

Starts `spandet serve MODEL` with one thread for the model and sends texts: first from one client,
then from many, each sending the next text after the response to the last. Then the same without
batching (--max-batch-texts 1). Every response is compared with the prediction of the recognizer in
this process; after a 429 the client waits for Retry-After; anything else is an error, and the
exit code is 1.

Other load on the machine lowers texts/s; responses per CPU second of the service depend on it less.

The texts are generated sentences of at most 60 characters (news and biomedical), because batching
matters most for short texts. --long uses sentences of all lengths.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import httpx
import psutil

from spandet import Recognizer, generate
from spandet.text.dicts import document_to_dict

ONE_THREAD = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


@dataclass
class Tally:
    """The responses that the clients of one run received."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    problems: list[str] = field(default_factory=list)
    elapsed: float = 0.0
    cpu_seconds: float = 0.0
    """CPU time of the service."""

    @property
    def rate(self) -> float:
        """Responses per second, of all clients together."""
        return len(self.seconds) / self.elapsed

    @property
    def cpu_rate(self) -> float:
        """Responses per CPU second of the service."""
        return len(self.seconds) / self.cpu_seconds

    def __str__(self) -> str:
        cuts = statistics.quantiles(self.seconds, n=20)
        return (
            f"{self.rate:8.1f} texts/s   {self.cpu_rate:8.1f} per CPU second   "
            f"p50 {1000 * cuts[9]:7.1f} ms   "
            f"p95 {1000 * cuts[18]:7.1f} ms   {len(self.seconds):6,} responses   "
            f"{self.refused:4,} × 429   {len(self.problems)} errors"
        )


def texts(most: int, *, long: bool) -> list[str]:
    found: dict[str, None] = {}
    for seed in count(7):
        for document in generate(500, seed=seed):
            for sentence in document.sentences:
                if sentence.span is not None and (long or len(sentence.span) <= 60):
                    found[document.text[sentence.span.start : sentence.span.end]] = None
        if len(found) >= most:
            return list(found)[:most]
    raise AssertionError


@contextmanager
def service(model: str, *options: str) -> Iterator[tuple[str, psutil.Process]]:
    command = [sys.executable, "-m", "spandet", "serve", model, "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD
    )
    try:
        found = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        if found is None:
            sys.exit("the service did not start")
        yield found.group(), psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ask(client: httpx.Client, text: str, expected: object, tally: Tally) -> None:
    began = time.perf_counter()
    try:
        response = client.post("/v1/entities", json={"text": text})
    except httpx.HTTPError as error:
        tally.problems.append(f"no response to {text!r}: {error!r}")
        return
    if response.status_code == 429:
        tally.refused += 1
        time.sleep(float(response.headers["Retry-After"]))
    elif response.status_code != 200:
        tally.problems.append(f"{response.status_code}: {response.text[:200]}")
    elif not same(response.json(), expected):
        tally.problems.append(f"wrong response to {text!r}: {response.text[:200]}")
    else:
        tally.seconds.append(time.perf_counter() - began)


def same(response: object, expected: object) -> bool:
    """Whether two values are equal up to rounding of scores, which depends on the batch."""
    if isinstance(response, float) and isinstance(expected, float):
        return abs(response - expected) < 1e-4
    if isinstance(response, dict) and isinstance(expected, dict):
        return response.keys() == expected.keys() and all(
            same(response[key], expected[key]) for key in response
        )
    if isinstance(response, list) and isinstance(expected, list):
        return len(response) == len(expected) and all(map(same, response, expected))
    return response == expected


def load(
    address: str, pairs: Sequence[tuple[str, object]], *, clients: int, seconds: float
) -> Tally:
    tallies = [Tally() for _ in range(clients)]
    stop = time.perf_counter() + seconds

    def work(number: int) -> None:
        with httpx.Client(base_url=address, timeout=120) as client:
            turn = number * 7919
            while time.perf_counter() < stop:
                ask(client, *pairs[turn % len(pairs)], tallies[number])
                turn += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Tally(elapsed=time.perf_counter() - began)
    for tally in tallies:
        total.seconds += tally.seconds
        total.refused += tally.refused
        total.problems += tally.problems
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--texts", type=int, default=500, help="number of different texts")
    parser.add_argument("--long", action="store_true", help="sentences of all lengths")
    options = parser.parse_args()
    chosen = texts(options.texts, long=options.long)
    recognizer = Recognizer.from_pretrained(options.model)
    expected = [
        {"documents": [{"entities": document_to_dict(document)["entities"]}]}
        for document in recognizer.predict(chosen)
    ]
    pairs = list(zip(chosen, expected, strict=True))
    length = statistics.mean(map(len, chosen))
    print(f"{len(chosen)} texts of {length:.0f} characters on average, {options.seconds:g} s each")
    many: list[Tally] = []
    problems: list[str] = []
    for name, extra in [("batching", ()), ("one by one", ("--max-batch-texts", "1"))]:
        with service(options.model, *extra) as (address, server):
            for clients in (1, options.clients):
                before = sum(server.cpu_times()[:2])
                tally = load(address, pairs, clients=clients, seconds=options.seconds)
                tally.cpu_seconds = sum(server.cpu_times()[:2]) - before
                print(f"{name:11} {clients:3} client{'s' if clients > 1 else ' '} {tally}")
                problems += tally.problems
        many.append(tally)
    print(f"batching gives {many[0].rate / many[1].rate:.2f} × the throughput of one by one")
    print(f"and {many[0].cpu_rate / many[1].cpu_rate:.2f} × the responses per CPU second")
    for problem in problems[:10]:
        print("error:", problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
