"""Measures the memory of predicting a long stream of short documents.

    python benchmarks/predict_memory.py [--documents 100000] [--leak BYTES]

A small untrained model predicts a stream of short synthetic documents; the memory of the process is
printed after every tenth of them. The exit code is 1 if it has grown by more than a few MiB since
the first tenth. --leak keeps some bytes of every document, to show that growth is detected.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice

from spandet import Recognizer, generate
from spandet.inference.memory import release_memory, resident_bytes
from spandet.inference.model_settings import ModelSettings
from spandet.text import Document

SETTINGS = {
    "encoder": {"hashed": {"dim": 16, "rows": 64}, "fusion": {"dim": 16}},
    "detector": {"name": "locate-and-label"},
}
MIB = 1 << 20
SLACK = 4 * MIB
"""Allocators may need more memory for batches of a new shape."""


def documents() -> Iterator[Document]:
    """Beginnings of generated sentences; numbers repeat, because words are cached."""
    sentences = [s.words for document in generate(200, seed=3) for s in document.sentences]
    for number, words in enumerate(cycle(sentences)):
        yield Document(" ".join([*words[: 3 + number % 5], f"{number % 1000}."]), id=str(number))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--leak", type=int, default=0)
    options = parser.parse_args()
    recognizer = Recognizer.build(ModelSettings.resolve(SETTINGS), generate(30, seed=2))
    held: list[int] = []
    kept: list[bytes] = []
    began = time.perf_counter()
    found = recognizer.predict(islice(documents(), options.documents))
    for number, _ in enumerate(found, start=1):
        kept.append(bytes(options.leak))
        if number % (options.documents // 10) == 0:
            release_memory()
            held.append(resident_bytes())
            seconds = time.perf_counter() - began
            print(f"{number:9,} documents {seconds:7.1f} s {held[-1] / MIB:8.1f} MiB", flush=True)
    grown = held[-1] - held[0]
    print(f"{grown / MIB:+.1f} MiB since the first tenth")
    sys.exit(grown > SLACK)


if __name__ == "__main__":
    main()
