"""Where the time of a training step goes: forward by part, then backward.

    python benchmarks/detector_profile.py RECIPE train.jsonl.gz

One thread, processor time, batches of 8 sorted by length, fresh weights. A part includes what is
indented below it; what a part does outside of its own parts is in its line only.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

import torch
from detector_speed import batches
from torch import nn

import spandet
from spandet.chance import generator
from spandet.recognizer import Recognizer, gold_spans
from spandet.tensors import total_of
from spandet.training.recipe import Recipe

DEPTH = 2


class Clock:
    """Adds up the processor time that modules spend in their forward pass."""

    def __init__(self, modules: nn.Module) -> None:
        self.times: dict[str, float] = {}
        self._began: dict[str, float] = {}
        for name, module in modules.named_modules():
            if name and name.count(".") <= DEPTH:
                self.times[name] = 0.0
                module.register_forward_pre_hook(lambda *_, name=name: self._start(name))
                module.register_forward_hook(lambda *_, name=name: self._stop(name))

    def _start(self, name: str) -> None:
        self._began[name] = time.process_time()

    def _stop(self, name: str) -> None:
        self.times[name] += time.process_time() - self._began[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("data")
    parser.add_argument("--sentences", type=int, default=64)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    documents = list(islice(spandet.read(arguments.data), 1 + arguments.sentences // 5))
    recognizer = Recognizer.build(Recipe.load(arguments.recipe).model, documents)
    examples = [e for d in documents for e in recognizer.examples_of(d)][: arguments.sentences]
    rows = [row for d in documents for row in d.rows()][: arguments.sentences]
    modules = recognizer.modules().train()
    clock, forward, backward = Clock(modules), 0.0, 0.0
    for own, truth in batches(examples, rows, 8):
        chance = [generator(0, *example.words) for example in own]
        batch, gold = recognizer.encoder.prepare(own), gold_spans(truth, recognizer.labels)
        begin = time.process_time()
        total = total_of(recognizer.detector(recognizer.encoder(batch), gold, chance))
        middle = time.process_time()
        total.backward()
        forward += middle - begin
        backward += time.process_time() - middle
    print(f"{len(examples)} sentences: forward {forward:.2f} s, backward {backward:.2f} s")
    for name, seconds in clock.times.items():
        if seconds > forward / 100:
            indent, part = "  " * name.count("."), name.rpartition(".")[2]
            print(f"{100 * seconds / forward:5.1f} %  {indent}{part}")


if __name__ == "__main__":
    main()
