"""Windows of documents: bounded in size, and independent of where reading starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spandet.errors import UsageError
from spandet.inference import batching
from spandet.inference.batching import documents_of, windows
from spandet.text import Document


def sizes(texts: list[str]) -> list[int]:
    return [len(window) for window in windows(documents_of(texts))]


def test_a_long_document_is_a_window_of_its_own() -> None:
    assert sizes(["a", "b", "x " * 200_000, "c"]) == [2, 1, 1]


@pytest.mark.parametrize("text", ["", " ", "One sentence."])
def test_empty_documents_fill_a_window(text: str) -> None:
    assert sizes([text] * 3000) == [1024, 1024, 952]


def test_at_most_one_window_is_read_ahead() -> None:
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "A short text."

    next(windows(documents_of(source())))
    assert taken <= 1025


def test_windows_do_not_depend_on_earlier_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "_WINDOW_CHARACTERS", 1000)
    texts = [("word. " * (n % 7 * 10)).strip() for n in range(90)]
    every = [[d.text for d in window] for window in windows(documents_of(texts))]
    assert len(every) > 3
    passed = len(every[0]) + len(every[1])
    rest = [[d.text for d in window] for window in windows(documents_of(texts[passed:]))]
    assert rest == every[2:]
    for window in every:
        assert [[d.text for d in again] for again in windows(documents_of(window))] == [window]


@pytest.mark.parametrize("stream", ["text", Document("text")])
def test_a_single_string_is_refused(stream: str | Document) -> None:
    with pytest.raises(UsageError, match="takes many documents or texts"):
        documents_of(stream)  # type: ignore[arg-type]


def test_values_that_are_not_documents_are_refused() -> None:
    with pytest.raises(UsageError, match="documents or texts, got a bytes"):
        list(documents_of([b"text"]))  # type: ignore[list-item]


def test_a_passage_is_in_one_batch_and_counted_once() -> None:
    runs, sizes = [[0, 1, 2], [3], [4, 5]], [20, 20, 20, 50, 30, 30]
    assert list(batching.batches(runs, sizes, sizes, 100)) == [(3,), (0, 1, 2, 4, 5)]
    assert list(batching.batches(runs, sizes, sizes, 49)) == [(3,), (4, 5), (0, 1, 2)]
