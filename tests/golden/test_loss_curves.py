"""Golden files: the losses of every detector in its first ten steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from spandet import generate
from spandet.inference.recognizer import Recognizer
from spandet.seeding import generator
from spandet.tensors import total_loss
from spandet.training import Recipe
from spandet.training.batches import gold_spans

RECIPES = Path(__file__).parents[2] / "recipes" / "demo"
FILES = Path(__file__).parent / "files"
DETECTORS = sorted(path.stem for path in RECIPES.glob("*.toml"))


def curve(detector: str) -> list[dict[str, float]]:
    torch.manual_seed(0)
    documents = list(generate(40, seed=9))
    recognizer = Recognizer.build(Recipe.load(RECIPES / f"{detector}.toml").model, documents)
    modules = recognizer.modules()
    modules.eval()  # no dropout: its numbers may change with torch
    optimizer = torch.optim.AdamW(modules.parameters(), lr=3e-3)
    examples = [example for document in documents for example in recognizer.examples_of(document)]
    rows = [row for document in documents for row in document.rows()]
    points = []
    for step in range(10):
        chosen = range(step * 4, step * 4 + 4)
        words = recognizer.encoder(recognizer.encoder.prepare([examples[i] for i in chosen]))
        gold = gold_spans([rows[i] for i in chosen], recognizer.labels)
        losses = recognizer.detector(words, gold, [generator("golden", i) for i in chosen])
        points.append({name: loss.mean.item() for name, loss in losses.items()})
        total_loss(losses).backward()
        optimizer.step()
        optimizer.zero_grad()
    return points


@pytest.mark.parametrize("detector", DETECTORS)
def test_losses_are_unchanged(detector: str, request: pytest.FixtureRequest) -> None:
    path = FILES / f"losses-{detector}.json"
    points = curve(detector)
    if request.config.getoption("--regenerate"):
        rounded = [{name: round(value, 5) for name, value in point.items()} for point in points]
        path.write_text(json.dumps(rounded, indent=1) + "\n")
    for point, before in zip(points, json.loads(path.read_text()), strict=True):
        assert point == pytest.approx(before, rel=1e-2, abs=1e-4)
