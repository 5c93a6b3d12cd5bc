"""Inputs that jobs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet import streaming, write
from spandet.text import Document


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Six windows: each document is too large for company."""
    monkeypatch.setattr(streaming, "_WINDOW_CHARACTERS", 20)
    for name, first in [("a", 0), ("b", 3)]:
        texts = [f"{n} " + "é\ud800" * 20 for n in range(first, first + 3)]
        write([Document(t, id=str(n)) for n, t in enumerate(texts)], tmp_path / f"{name}.jsonl")
    return [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
