"""A recognizer without a model, and jobs for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from spandet import write
from spandet.errors import FormatError, UsageError
from spandet.inference import batching
from spandet.inference.recognizer import Recognizer
from spandet.jobs import Inputs, Job, JobOptions
from spandet.text import CharSpan, Document, Entity


class Fake:
    """Predicts the first character, with a score that depends on the number of documents at once.

    A text with BAD in it raises FormatError, one with UNTAGGED raises UsageError.
    """

    def __init__(self, *, dies_after: int | None = None) -> None:
        self.calls = 0
        self.dies_after = dies_after

    def predict(self, stream: Iterable[Document], _: object = None) -> Iterator[Document]:
        window = list(stream)
        self.calls += 1
        if self.dies_after is not None and self.calls > self.dies_after:
            raise KeyboardInterrupt
        for document in window:
            if "BAD" in document.text:
                raise FormatError("words overlap")
            if "UNTAGGED" in document.text:
                raise UsageError("the model reads tags")
            entities = (Entity(CharSpan(0, 1), "x", 1 / (1 + len(window))),)
            yield Document(
                document.text, entities, document.id, document.metadata, document.own_sentences
            )


def fake(**options: Any) -> Recognizer:
    return cast("Recognizer", Fake(**options))


def job(inputs: Iterable[str], out: Path, *, skip_bad: bool = False, **options: Any) -> Job:
    return Job(Inputs.of(inputs, skip_bad=skip_bad), str(out), None, JobOptions(**options))


def six_windows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write two files with three documents each; every document is a window of its own."""
    monkeypatch.setattr(batching, "_WINDOW_CHARACTERS", 20)
    for name, first in [("a", 0), ("b", 3)]:
        texts = [f"{n} " + "é\ud800" * 20 for n in range(first, first + 3)]
        write([Document(t, id=str(n)) for n, t in enumerate(texts)], folder / f"{name}.jsonl")
    return [str(folder / "a.jsonl"), str(folder / "b.jsonl")]
