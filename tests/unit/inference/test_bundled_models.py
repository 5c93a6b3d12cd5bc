"""Bundled models are small, documented, and work without a network."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spandet.cli import app
from spandet.inference.model_names import CARD, Listed, find_model, measured, models
from spandet.inference.recognizer import Recognizer
from spandet.serving.description import Description

PROJECT = Path(__file__).parents[3]
ABSTRACT = PROJECT / "recipes" / "demo" / "abstract.txt"
MOST_BYTES = 25_000_000


def bundled() -> list[Listed]:
    return [model for model in models() if model.origin == "bundled"]


def test_there_is_a_bundled_model_for_biomedicine() -> None:
    assert "bio-en" in {model.name for model in bundled()}


def test_bundled_models_are_small_and_have_cards() -> None:
    for model in bundled():
        assert model.bytes <= MOST_BYTES
        assert model.dev_f1 is not None
        card = (Path(model.folder) / CARD).read_text(encoding="utf-8")
        for heading in ("How it was made", "Limits", "Licences and credit"):
            assert f"\n## {heading}\n" in card


def test_the_figures_of_bio_en_are_the_same_everywhere() -> None:
    folder = find_model("bio-en")
    figures = {one.data: f"{100 * one.f1:.2f}" for one in measured(folder)}
    assert set(figures) == {"GENIA dev, raw text", "GENIA dev, given words"}
    for page in (folder / CARD, PROJECT / "README.md", PROJECT / "docs" / "models.md"):
        text = " ".join(page.read_text(encoding="utf-8").split())
        for data, f1 in figures.items():
            listed = re.findall(rf"([\d.]+) (?:\(parent [\d.]+\) )?on {data}", text)
            assert listed == [f1], (page, data)
    results = (PROJECT / "docs" / "results.md").read_text(encoding="utf-8")
    for data, f1 in figures.items():
        row = next(line for line in results.splitlines() if line.startswith(f"| {data}"))
        assert f"**{f1}**" in row
    shown = CliRunner().invoke(app, ["models"], env={"COLUMNS": "250"}).stdout
    described = Description.of_folder(folder)
    assert described.scores == {"f1": described.measured[0].f1}
    for one in described.measured:
        assert f"{figures[one.data]} ({one.data})" in shown


def test_bundled_models_find_nested_entities_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a request to the network")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr("spandet.encoding.pretrained._minilm_folder", refuse)
    for model in bundled():
        document = Recognizer.from_pretrained(model.name)(ABSTRACT.read_text(encoding="utf-8"))
        spans = [entity.span for entity in document.entities]
        assert any(a != b and a.start <= b.start and b.end <= a.end for a in spans for b in spans)
