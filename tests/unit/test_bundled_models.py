"""What comes with the package is small, explained, and at work without a network."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from spandet.catalog import CARD, Listed, models
from spandet.recognizer import Recognizer

ABSTRACT = Path(__file__).parents[2] / "recipes" / "demo" / "abstract.txt"
MOST_BYTES = 25_000_000


def bundled() -> list[Listed]:
    return [model for model in models() if model.origin == "bundled"]


def test_there_is_one_for_biomedicine() -> None:
    assert "bio-en" in {model.name for model in bundled()}


def test_they_are_small_and_have_cards() -> None:
    for model in bundled():
        assert model.bytes <= MOST_BYTES
        assert model.dev_f1 is not None
        card = (Path(model.folder) / CARD).read_text(encoding="utf-8")
        for heading in ("How it was made", "Limits", "Licences and credit"):
            assert f"\n## {heading}\n" in card


def test_they_find_nested_entities_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr("spandet.encoding.pretrained._minilm_folder", refuse)
    for model in bundled():
        document = Recognizer.from_pretrained(model.name)(ABSTRACT.read_text(encoding="utf-8"))
        spans = [entity.span for entity in document.entities]
        assert any(a != b and a.start <= b.start and b.end <= a.end for a in spans for b in spans)
