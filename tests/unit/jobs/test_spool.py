"""Spools: after any damage, the output is correct or there is an error and no output."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spandet import write
from spandet.errors import SpandetError, UsageError
from spandet.formats.locking import one_writer
from spandet.inference import batching
from spandet.inference.recognizer import Recognizer
from spandet.jobs import Inputs, Job, JobOptions
from spandet.text import Document, Sentence
from support.predicting_toys import Fake, fake, job, six_windows


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return six_windows(tmp_path, monkeypatch)


def stopped(one: Job, *, after: int = 2) -> Job:
    """The job, interrupted after some windows."""
    with pytest.raises(KeyboardInterrupt):
        one.run(fake(dies_after=after), "f")
    return one


def test_a_second_run_is_refused_and_touches_nothing(inputs: list[str], tmp_path: Path) -> None:
    one = stopped(job(inputs, tmp_path / "out.jsonl"))
    spooled = one.spool_path.read_bytes()
    with one_writer(tmp_path / "out.jsonl"):
        for act in (
            partial(one.check, resume=False, overwrite=True),
            partial(one.check, resume=True, overwrite=False),
            partial(one.run, fake(), "f"),
            partial(one.run, fake(), "f", resume=True),
        ):
            with pytest.raises(UsageError, match=rf"being written by process {os.getpid()}"):
                act()
    assert one.spool_path.read_bytes() == spooled
    assert not (tmp_path / "out.jsonl").exists()


def test_the_lock_is_held_from_the_check_to_the_end(inputs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"

    class Trying(Fake):
        def predict(self, *arguments: Any, **options: Any) -> Iterator[Document]:
            with pytest.raises(UsageError, match="is being written"), one_writer(out):
                pass
            return super().predict(*arguments, **options)

    one = job(inputs, out)
    with one.locked():
        one.check(resume=False, overwrite=False)
        one.run(cast("Recognizer", Trying()), "f")
        with pytest.raises(UsageError, match="is being written"), one_writer(out):
            pass
    with one_writer(out):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "out.jsonl"]


class SpoolChanging(Fake):
    """Calls a function that changes the spool before the last window."""

    def __init__(self, spool: Path, change: Callable[[Path], object]) -> None:
        super().__init__()
        self.spool, self.change = spool, change

    def predict(self, *arguments: Any, **options: Any) -> Iterator[Document]:
        if self.calls == 5:
            self.change(self.spool)
        return super().predict(*arguments, **options)


def _replaced(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-100])


@pytest.mark.parametrize("change", [Path.unlink, _replaced])
def test_a_spool_that_disappears_is_written_on(
    inputs: list[str], tmp_path: Path, change: Callable[[Path], object]
) -> None:
    whole, one = (job(inputs, tmp_path / name) for name in ("whole.jsonl", "one.jsonl"))
    whole.run(fake(), "f")
    one.run(cast("Recognizer", SpoolChanging(one.spool_path, change)), "f")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert one.spool_path.exists() == (change is _replaced)  # another's file is left alone


@pytest.mark.parametrize(
    "change",
    [
        lambda path: os.truncate(path, path.stat().st_size - 10),
        lambda path: os.truncate(path, 0),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        lambda path: path.write_bytes(path.read_bytes().replace(b"x", b"y", 1)),
    ],
    ids=["shrinks", "is emptied", "grows", "is changed"],
)
def test_a_spool_that_is_changed_gives_no_output(
    inputs: list[str], tmp_path: Path, change: Callable[[Path], object]
) -> None:
    one = job(inputs, tmp_path / "out.jsonl")
    with pytest.raises(UsageError, match=r"out\.jsonl\.spool is damaged.*--overwrite"):
        one.run(cast("Recognizer", SpoolChanging(one.spool_path, change)), "f")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_spool_of_an_older_version_is_named(inputs: list[str], tmp_path: Path) -> None:
    one = job(inputs, tmp_path / "out.jsonl")
    one.spool_path.write_text('{"spool": 1, "spandet": "0.1"}\n{"done": 0}\n')
    with pytest.raises(UsageError, match=r"of another version of spandet .*--overwrite"):
        one.run(fake(), "f", resume=True)


def test_a_file_that_is_no_spool_is_left_alone(inputs: list[str], tmp_path: Path) -> None:
    one = job(inputs, tmp_path / "out.jsonl")
    one.spool_path.write_text("my notes")
    with pytest.raises(UsageError, match="is not the spool of a prediction"):
        one.run(fake(), "f", resume=True)
    assert one.spool_path.read_text() == "my notes"


@pytest.mark.parametrize("place", ["the part that is done", "the part that is not"])
def test_a_changed_folder_is_noticed(inputs: list[str], tmp_path: Path, place: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in inputs:
        shutil.move(name, folder)
    named = Inputs.of([str(folder)], "jsonl")
    one = stopped(Job(named, str(tmp_path / "o.jsonl"), None, JobOptions()))
    (folder / ".hidden").write_text("of an editor")
    file = folder / ("a.jsonl" if place == "the part that is done" else "b.jsonl")
    before = file.read_bytes()
    file.write_bytes(before.replace(b'"2"', b'"9"'))
    with pytest.raises(UsageError, match=r"folder has changed since"):
        one.run(fake(), "f", resume=True)
    file.write_bytes(before)
    one.run(fake(), "f", resume=True)


def test_a_text_beside_annotations_belongs_to_the_input(tmp_path: Path) -> None:
    text, annotations = tmp_path / "a.txt", tmp_path / "a.ann"
    text.write_text("Halburn.")
    annotations.write_text("")
    named = Inputs.of([str(annotations)], "brat")
    with pytest.raises(UsageError, match=r"a\.txt is the input"):
        Job(named, str(text), "jsonl", JobOptions()).check(resume=False, overwrite=False)
    before = named.digests()
    text.write_text("Tibburn.")
    assert Inputs.of([str(annotations)], "brat").digests() != before


def on_stdin(documents: list[Document], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Inputs:
    write(documents, tmp_path / "stdin.jsonl")
    data = (tmp_path / "stdin.jsonl").read_bytes()
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdin", stream)
    return Inputs.of(["-"], "jsonl")


CORPUS = [Document("a b", (), str(n), {"n": 1}, (Sentence(("a", "b"), (0, 2)),)) for n in range(3)]


@pytest.mark.parametrize(
    "changed",
    [
        Document("a b", (), "0", {"n": 2}, CORPUS[0].own_sentences),
        Document("a b", (), "0", {"n": 1}, (Sentence(("a b",), (0,)),)),
        Document("a b", (), "9", {"n": 1}, CORPUS[0].own_sentences),
        None,
    ],
    ids=["metadata", "words", "id", "nothing"],
)
def test_documents_on_standard_input_are_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: Document | None
) -> None:
    """Standard input has no checksum, so each document that is skipped is compared."""
    monkeypatch.setattr(batching, "_WINDOW_SENTENCES", 1)
    out = str(tmp_path / "out.jsonl")
    stopped(Job(on_stdin(CORPUS, monkeypatch, tmp_path), out, None, JobOptions()))
    given = [CORPUS[0] if changed is None else changed, *CORPUS[1:]]
    again = Job(on_stdin(given, monkeypatch, tmp_path), out, None, JobOptions())
    if changed is None:
        again.run(fake(), "f", resume=True)
        assert len(Path(out).read_bytes().splitlines()) == 3
    else:
        with pytest.raises(UsageError, match="document 1 of the input has changed since"):
            again.run(fake(), "f", resume=True)


class Damage:
    """A job on five windows, two of them with a bad document, interrupted after four."""

    def __init__(self, folder: Path) -> None:
        self.source, self.out = str(folder / "in.jsonl"), folder / "out.jsonl"
        texts = ["one", "two BAD", "three é", "four", "five", "six BAD", "seven", "eight", "nine"]
        sentence = Sentence(("x",), (0,))
        corpus = [Document(f"x {t}", (), str(n), {}, (sentence,)) for n, t in enumerate(texts)]
        write(corpus, self.source)
        whole = self.job
        whole.run(fake(), "f")
        self.wanted, self.listed = self.out.read_bytes(), list(map(str, whole.skipped))
        self.out.unlink()
        one = self.job
        with pytest.raises(KeyboardInterrupt):
            one.run(fake(dies_after=10), "f")
        self.spooled = one.spool_path.read_bytes()

    @property
    def job(self) -> Job:
        return job([self.source], self.out, skip_bad=True)

    def check(self, spooled: bytes) -> bool:
        """Resume from this spool; returns whether it was accepted."""
        one = self.job
        self.out.unlink(missing_ok=True)
        one.spool_path.write_bytes(spooled)
        refused = ""
        try:
            one.run(fake(), "f", resume=True)
        except SpandetError as error:
            refused = str(error)
        if refused:
            assert "\n" not in refused
            assert not self.out.exists()
            return False
        assert self.out.read_bytes() == self.wanted
        assert list(map(str, one.skipped)) == self.listed
        assert not one.spool_path.exists()
        return True


@pytest.fixture(scope="module")
def damage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damage]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "_WINDOW_SENTENCES", 2)
        patch.setattr(os, "fsync", lambda _: None)  # 200 files; a loss of power is not tested
        yield Damage(tmp_path_factory.mktemp("damage"))


def test_a_spool_cut_at_any_byte_is_accepted(damage: Damage) -> None:
    assert damage.spooled.count(b'{"done": ') == 4
    for end in range(0, len(damage.spooled) + 1, 17):
        assert damage.check(damage.spooled[:end])


def test_a_changed_byte_before_the_last_mark_is_refused(damage: Damage) -> None:
    for place in range(0, damage.spooled.rindex(b'\n{"done": '), 13):
        data = bytearray(damage.spooled)
        data[place] ^= 1
        assert not damage.check(bytes(data)), place


@settings(max_examples=150, deadline=None)
@given(
    start=st.integers(0, 10_000),
    length=st.integers(0, 400),
    inserted=st.binary(max_size=4)
    | st.sampled_from([b"\n", b"\n\n", b'{"done": 9}\n', b'{"text": "more", "entities": []}\n'])
    | st.tuples(st.integers(0, 10_000), st.integers(0, 400)),
)
@example(start=0, length=10_000, inserted=b"\n")
@example(start=0, length=10_000, inserted=b"[" * 100_000 + b"\n")
@example(start=10_000, length=0, inserted=(0, 10_000))
def test_damage_is_refused_or_harmless(
    damage: Damage, start: int, length: int, inserted: bytes | tuple[int, int]
) -> None:
    """Some bytes are replaced by random bytes or by bytes from elsewhere in the file."""
    data = damage.spooled
    if isinstance(inserted, tuple):
        inserted = data[inserted[0] % len(data) :][: inserted[1]]
    start %= len(data) + 1
    damage.check(data[:start] + inserted + data[start + length :])
