"""What a service does under load, and what batching is worth.

    python benchmarks/service_load.py MODEL [--clients 32] [--seconds 30]

Starts `spandet serve MODEL` as a process of its own with one thread for the model, and asks it:
first one client, then many, each sending its next text when it has the answer to the last. Then the
same again with batching switched off (--max-batch-texts 1). Every answer is compared with what the
recognizer says of the text in this process; a 429 is waited out as Retry-After says; anything else
is an error, and the script ends with 1.

Where other work shares the machine, texts/s is as much its figure as the service's; the answers per
second of the service's own processor time then say more.

The texts are generated sentences, news-like and biomedical-like, of at most 60 characters: short
ones, as in forms, titles and search boxes, are where a call costs more than its text. --long takes
whole generated sentences of every length instead.
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
from spandet.text.plain import plain_document

ONE_THREAD = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


@dataclass
class Tally:
    """What the clients of one run have seen."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    problems: list[str] = field(default_factory=list)
    elapsed: float = 0.0
    processor: float = 0.0
    """Seconds that the service's process has computed."""

    @property
    def rate(self) -> float:
        """Answers in a second, of all clients together."""
        return len(self.seconds) / self.elapsed

    @property
    def thrift(self) -> float:
        """Answers for a second of the service's computing: what a busy machine changes little."""
        return len(self.seconds) / self.processor

    def __str__(self) -> str:
        cuts = statistics.quantiles(self.seconds, n=20)
        return (
            f"{self.rate:8.1f} texts/s   {self.thrift:8.1f} per processor second   "
            f"p50 {1000 * cuts[9]:7.1f} ms   "
            f"p95 {1000 * cuts[18]:7.1f} ms   {len(self.seconds):6,} answers   "
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
        answer = client.post("/v1/entities", json={"text": text})
    except httpx.HTTPError as error:
        tally.problems.append(f"no answer to {text!r}: {error!r}")
        return
    if answer.status_code == 429:
        tally.refused += 1
        time.sleep(float(answer.headers["Retry-After"]))
    elif answer.status_code != 200:
        tally.problems.append(f"{answer.status_code}: {answer.text[:200]}")
    elif not same(answer.json(), expected):
        tally.problems.append(f"not the answer to {text!r}: {answer.text[:200]}")
    else:
        tally.seconds.append(time.perf_counter() - began)


def same(answer: object, expected: object) -> bool:
    """Equal, but for the last digits of scores: sums depend on the shape of a batch."""
    if isinstance(answer, float) and isinstance(expected, float):
        return abs(answer - expected) < 1e-4
    if isinstance(answer, dict) and isinstance(expected, dict):
        return answer.keys() == expected.keys() and all(
            same(answer[key], expected[key]) for key in answer
        )
    if isinstance(answer, list) and isinstance(expected, list):
        return len(answer) == len(expected) and all(map(same, answer, expected))
    return answer == expected


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
    parser.add_argument("--texts", type=int, default=500, help="different ones")
    parser.add_argument("--long", action="store_true", help="sentences of every length")
    options = parser.parse_args()
    chosen = texts(options.texts, long=options.long)
    recognizer = Recognizer.from_pretrained(options.model)
    expected = [
        {"documents": [{"entities": plain_document(document)["entities"]}]}
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
                tally.processor = sum(server.cpu_times()[:2]) - before
                print(f"{name:11} {clients:3} client{'s' if clients > 1 else ' '} {tally}")
                problems += tally.problems
        many.append(tally)
    print(f"batching gives {many[0].rate / many[1].rate:.2f} × the throughput of one by one")
    print(f"and {many[0].thrift / many[1].thrift:.2f} × the answers per processor second")
    for problem in problems[:10]:
        print("error:", problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
