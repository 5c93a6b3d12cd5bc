"""A document that cannot be predicted does not affect the others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet import write
from spandet.errors import FormatError, MissingExtraError, UsageError
from spandet.inference import batching
from spandet.inference.bad_documents import Entry, Skipped, predicted_windows
from spandet.text import Document, Sentence
from support.predicting_toys import Fake, fake, job


class Unsplit(Document):
    """A document whose sentences are the problem."""

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        raise FormatError("words overlap")


def entries(documents: Sequence[Document], **options: Any) -> list[list[Entry]]:
    return list(predicted_windows(documents, Fake().predict, skip_bad=True, **options))


KINDS = {"good": Document, "BAD": Document, "UNTAGGED": Document, "unsplit": Unsplit}


@settings(max_examples=60)
@given(st.lists(st.sampled_from(list(KINDS))), st.integers(1, 4), st.integers(5, 40))
def test_only_bad_documents_fail_and_any_window_can_be_the_first(
    kinds: list[str], sentences: int, characters: int
) -> None:
    documents = [KINDS[kind](kind, id=str(number)) for number, kind in enumerate(kinds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "_WINDOW_SENTENCES", sentences)
        patch.setattr(batching, "_WINDOW_CHARACTERS", characters)
        windows = entries(documents)
        found = list(chain.from_iterable(windows))
        done = 0
        for number, window in enumerate(windows):
            assert entries(documents[done:], done=done) == windows[number:]
            done += len(window)
    assert done == len(documents) == len(found)
    for number, (entry, document) in enumerate(zip(found, documents, strict=True), start=1):
        if document.text == "good":
            assert isinstance(entry, Document)
            assert entry.id == document.id
            assert entry.entities
        else:
            assert isinstance(entry, Skipped)
            assert entry.document is document
            name = f"document {number} ({number - 1}) of the input: "
            assert entry.problem.startswith(name)
            assert isinstance(entry.error, UsageError) == (document.text == "UNTAGGED")


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        (Document("BAD", id="x"), FormatError, r"^document 3 \(x\) of the input: words overlap$"),
        (Document("BAD"), FormatError, "^document 3 of the input: words overlap$"),
        (Unsplit("a", id="x"), FormatError, r"^document 3 \(x\) of the input: words overlap$"),
        (Document("UNTAGGED", id="x"), UsageError, r"^document 3 \(x\) of .*: the model reads"),
    ],
)
def test_a_bad_document_is_an_error_with_its_number_unless_skipped(
    bad: Document, kind: type[Exception], message: str
) -> None:
    documents = [Document("a"), Document("b"), bad, Document("BAD")]
    with pytest.raises(kind, match=message):
        list(predicted_windows(documents, Fake().predict, skip_bad=False))


def test_errors_that_are_not_of_a_document_fail_the_job() -> None:
    def of_all(window: Sequence[Document]) -> list[Document]:
        if len(window) > 1:
            raise ValueError("too many")
        return list(window)

    def of_the_machine(window: Sequence[Document]) -> list[Document]:
        raise MissingExtraError(needs="this", extra="that")

    documents = [Document("a"), Document("b")]
    with pytest.raises(ValueError, match="too many"):
        list(predicted_windows(documents, of_all, skip_bad=True))
    with pytest.raises(MissingExtraError):
        list(predicted_windows(documents, of_the_machine, skip_bad=True))


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Bad records and bad documents."""
    monkeypatch.setattr(batching, "_WINDOW_SENTENCES", 2)
    texts = ["a", "b BAD", "c", "d", "e UNTAGGED", "f", "g BAD"]
    path = tmp_path / "in.jsonl"
    write([Document(text, id=str(n)) for n, text in enumerate(texts)], path)
    path.write_text(path.read_text().replace('{"id": "3"', '{"text": 3}\n{"id": "3"'))
    return str(path)


def test_a_resumed_job_lists_the_same_bad_documents(corpus: str, tmp_path: Path) -> None:
    whole = job([corpus], tmp_path / "whole.jsonl", skip_bad=True)
    whole.run(fake(), "f")
    listed = list(map(str, whole.skipped))
    assert [line.split(": ")[0].split("/")[-1] for line in listed] == [
        "in.jsonl:4",
        "document 2 (1) of the input",
        "document 5 (4) of the input",
        "document 7 (6) of the input",
    ]
    assert whole.skips == 4
    for calls in range(1, 20):
        one = job([corpus], tmp_path / "one.jsonl", skip_bad=True)
        try:
            one.run(fake(dies_after=calls), "f")
        except KeyboardInterrupt:
            one = job([corpus], tmp_path / "one.jsonl", skip_bad=True)
            one.run(fake(), "f", resume=True)
        assert list(map(str, one.skipped)) == listed
        assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_without_skip_bad_a_resumed_job_fails_at_the_same_document(
    corpus: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        job([corpus], out, skip_bad=True).run(fake(dies_after=5), "f")
    with pytest.raises(FormatError, match=r"document 2 \(1\) of the input: words overlap"):
        job([corpus], out).run(fake(), "f", resume=True)
    job([corpus], out, skip_bad=True).run(fake(), "f", resume=True)


def test_a_stream_skips_the_same_documents(
    corpus: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    whole, stream = (job([corpus], Path(out), skip_bad=True) for out in (tmp_path / "w.jsonl", "-"))
    whole.run(fake(), "f")
    capfdbinary.readouterr()
    stream.run(fake(), "f")
    assert list(map(str, stream.skipped)) == list(map(str, whole.skipped))
    assert capfdbinary.readouterr().out == (tmp_path / "w.jsonl").read_bytes()
