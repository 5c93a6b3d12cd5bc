"""Measures how fast corpora are read, scored and written, and the memory of a conversion.

    python benchmarks/ground_floor.py train.jsonl.gz

Rates are sentences per second of CPU time, the best of three runs, so that other load on the
machine has little effect. Peak memory is that of a new process that converts the file, and a file
four times as long.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import spandet

FORMATS = ("jsonl", "tokens-jsonl", "tokens-json")
# Not getrusage, which includes the memory of the process before it called exec.
_PEAK = "print(*[l for l in open('/proc/self/status') if l.startswith('VmHWM')])"


def best_rate(sentences: int, work: Callable[[], object]) -> str:
    seconds = []
    for _ in range(3):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return f"{sentences / min(seconds):,.0f}"


def exhaust(path: Path, name: str | None = None) -> None:
    for _ in spandet.read(path, name):
        pass


def convert_memory(path: Path, out: Path) -> str:
    code = f"import spandet; spandet.write(spandet.read({str(path)!r}), {str(out)!r}); {_PEAK}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"{int(done.stdout.split()[1]) // 1024} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    corpus = parser.parse_args().corpus
    documents = list(spandet.read(corpus))
    sentences = sum(len(document.sentences) for document in documents)
    rows = [(f"read {corpus.name}", best_rate(sentences, lambda: exhaust(corpus)))]
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            out = Path(folder, f"out.{name}")
            rate = best_rate(sentences, lambda n=name, o=out: spandet.write(documents, o, n))
            rows.append((f"write {name}", rate))
            rows.append((f"read {name}", best_rate(sentences, lambda n=name, o=out: exhaust(o, n))))
        scoring = best_rate(sentences, lambda: spandet.evaluate(documents, documents, resamples=0))
        rows.append(("score against itself", scoring))
        different = [
            spandet.Document(d.text, d.entities[::2], d.id, d.metadata, d.own_sentences)
            for d in documents
        ]
        scoring = best_rate(sentences, lambda: spandet.evaluate(documents, different))
        rows.append(("score with errors and intervals", scoring))
        passes = -(-1_000_000 // sum(len(d.entities) for d in [*documents, *different]))
        start = time.process_time()
        spandet.evaluate(documents * passes, different * passes)
        million = time.process_time() - start
        large = Path(folder, "large.jsonl")
        data = corpus.read_bytes()
        large.write_bytes((gzip.decompress(data) if corpus.suffix == ".gz" else data) * 4)
        memory = [convert_memory(path, Path(folder, "converted.jsonl")) for path in (corpus, large)]
    width = max(len(name) for name, _ in rows)
    for name, rate in rows:
        print(f"{name:{width}}  {rate:>9} sentences/s")
    print(f"scoring a million entities, gold and predicted together: {million:.1f} s")
    print(f"peak memory of converting: {memory[0]}, four times the file: {memory[1]}")


if __name__ == "__main__":
    main()
