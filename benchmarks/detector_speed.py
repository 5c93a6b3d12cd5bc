"""What a detector adds to its bare encoder: the same batches, in turn, in one run.

    python benchmarks/detector_speed.py RECIPE dev.jsonl.gz [--model runs/genia]

One thread. Each batch is timed several times in turn for the bare transformer and for the whole
detector (in seconds of processor time, so that other work on the machine counts little), and the
best time of each counts. Without --model the weights are fresh, and the filter lets through what it
would not let through after training: give a trained model for inference.

The line "predict" is the whole path of `Recognizer.predict`, from documents to documents, with the
batches that it makes itself.
"""

from __future__ import annotations

import argparse
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import torch

import spandet
from spandet.chance import generator
from spandet.decoding import decode
from spandet.encoding import Example
from spandet.recognizer import Recognizer, gold_spans
from spandet.tensors import total_of
from spandet.text import Document, WordRow
from spandet.training.recipe import Recipe

ROUNDS = 4
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)


def best_times(works: Sequence[Callable[[], object]]) -> list[float]:
    """The best of several rounds for each piece of work, taken in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, own in zip(works, times, strict=True):
            start = time.process_time()
            work()
            own.append(time.process_time() - start)
    return [min(own) for own in times]


def batches(
    examples: Sequence[Example], rows: Sequence[WordRow], size: int
) -> Iterator[tuple[list[Example], list[WordRow]]]:
    """Batches of one size, sorted by length as training and prediction sort them."""
    order = sorted(range(len(examples)), key=lambda i: len(examples[i].words))
    for first in range(0, len(order), size):
        chosen = order[first : first + size]
        yield [examples[i] for i in chosen], [rows[i] for i in chosen]


class Bench:
    """One recognizer, and the ways to time it: the bare transformer first, then the whole."""

    def __init__(self, recognizer: Recognizer) -> None:
        self.recognizer = recognizer
        self.modules = recognizer.modules()
        assert recognizer.encoder.transformer is not None  # noqa: S101 (what we compare with)
        self.transformer: Any = recognizer.encoder.transformer.model
        self.optimizers = [
            torch.optim.AdamW(p for p in module.parameters() if p.requires_grad)
            for module in (self.transformer, self.modules)
        ]

    def inference(self, examples: Sequence[Example]) -> list[Callable[[], object]]:
        """Forward, and detection down to entities."""
        inputs = self._inputs(examples)

        @torch.inference_mode()
        def bare() -> None:
            self.transformer(**inputs)

        def whole() -> None:
            decode(self.recognizer.detect(examples), self.recognizer.decoding)

        return [bare, whole]

    def training(
        self, examples: Sequence[Example], rows: Sequence[WordRow]
    ) -> list[Callable[[], object]]:
        """Forward, backward and the optimizer's step."""
        inputs, recognizer = self._inputs(examples), self.recognizer
        chance = [generator("benchmark", index) for index in range(len(examples))]

        def bare() -> None:
            self.transformer(**inputs).last_hidden_state.mean().backward()
            self._step(0)

        def whole() -> None:
            words = recognizer.encoder(recognizer.encoder.prepare(examples))
            gold = gold_spans(rows, recognizer.labels)
            total_of(recognizer.detector(words, gold, chance)).backward()
            torch.nn.utils.clip_grad_norm_(self.modules.parameters(), 1.0)
            self._step(1)

        return [bare, whole]

    def _inputs(self, examples: Sequence[Example]) -> dict[str, torch.Tensor]:
        pieces = self.recognizer.encoder.prepare(examples).pieces
        assert pieces is not None  # noqa: S101 (there is a transformer)
        return {"input_ids": pieces.ids, "attention_mask": pieces.mask.long()}

    def _step(self, which: int) -> None:
        self.optimizers[which].step()
        self.optimizers[which].zero_grad()


def report(name: str, sentences: int, bare: float, whole: float) -> None:
    print(
        f"{name:10} bare encoder {sentences / bare:6.1f}/s   detector {sentences / whole:6.1f}/s"
        f"   ratio {whole / bare:.2f}"
    )


def report_predict(recognizer: Recognizer, documents: Sequence[Document], least: int) -> None:
    """Prediction as users call it, on whole documents with at least so many sentences."""
    counts = list(accumulate(len(document.sentences) for document in documents))
    some = documents[: 1 + bisect_left(counts, least)]
    (seconds,) = best_times([lambda: list(recognizer.predict(some))])
    number = counts[len(some) - 1]
    print(f"{'predict':10} documents to documents {number / seconds:6.1f}/s ({number} sentences)")


def kept_bytes(module: torch.nn.Module, forward: Callable[[], object]) -> int:
    """How much memory a forward pass keeps until the backward pass, weights excluded."""
    sizes: dict[int, int] = {}
    weights = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()  # held, so that no two tensors have one place in turn
    del result
    return sum(sizes.values())


def by_length(bench: Bench, documents: Sequence[Document]) -> None:
    """What the detector alone costs for sentences of growing length, encoder excluded."""
    words = [word for document in documents for s in document.sentences for word in s.words]
    recognizer = bench.recognizer
    print("words   detector alone, training and inference, ms per word; kept for backward, kB/word")
    for length in LENGTHS:
        own = tuple((words * (1 + length // len(words)))[:length])
        with torch.no_grad():
            encoded = recognizer.encoder(recognizer.encoder.prepare([Example(own, (), (), ())]))
        spans = [spandet.Entity(spandet.WordSpan(i, i + 2), "x") for i in range(0, length - 2, 8)]
        gold = gold_spans([WordRow(own, spans)], ["x"])

        def train(encoded: Any = encoded, gold: Any = gold) -> None:
            total_of(recognizer.detector(encoded, gold, [generator(0)])).backward()

        def infer(encoded: Any = encoded) -> None:
            with torch.inference_mode():
                decode(recognizer.detector.detect(encoded, [generator(0)]), recognizer.decoding)

        trained, inferred = best_times([train, infer])
        forward = partial(recognizer.detector, encoded, gold, [generator(0)])
        kept = kept_bytes(recognizer.detector, forward)
        times = f"{1000 * trained / length:.3f}   {1000 * inferred / length:.3f}"
        print(f"{length:5}   {times}   {kept / 1024 / length:.1f}")


def peak_memory() -> str:
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return f"{int(peak.split()[1]) / 1024 / 1024:.2f} GB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("data")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--batch", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    documents = list(islice(spandet.read(arguments.data), 1 + arguments.sentences // 5))
    if arguments.model:
        recognizer = Recognizer.from_pretrained(arguments.model)
    else:
        recognizer = Recognizer.build(Recipe.load(arguments.recipe).model, documents)
    examples = [e for d in documents for e in recognizer.examples_of(d)][: arguments.sentences]
    rows = [row for d in documents for row in d.rows()][: arguments.sentences]
    groups = list(batches(examples, rows, arguments.batch))
    bench = Bench(recognizer)
    bench.modules.eval()
    times = [best_times(bench.inference(own)) for own, _ in groups]
    report("inference", len(examples), *map(sum, zip(*times, strict=True)))
    report_predict(recognizer, documents, arguments.sentences)
    bench.modules.train()
    some = groups[:: max(1, len(groups) // 8)]
    times = [best_times(bench.training(own, gold)) for own, gold in some]
    report("training", sum(len(own) for own, _ in some), *map(sum, zip(*times, strict=True)))
    print(f"peak memory of all this: {peak_memory()}")
    by_length(bench, documents)


if __name__ == "__main__":
    main()
