"""Selected text is similar to a corpus, has no duplicates, and no strings of excluded files."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from spandet import generate, read, write
from spandet.cli import app
from spandet.cli.select import size_in_bytes
from spandet.errors import UsageError
from spandet.selection import SelectionSettings, select
from spandet.selection.fingerprints import NearDuplicates, SharedStrings, sketch_of
from spandet.selection.likeness import Likeness, words_of
from spandet.text import Document

Words = st.lists(st.sampled_from("abcdef"), max_size=12)


def passages(domain: str, count: int, seed: int) -> list[Document]:
    """Generated paragraphs of one domain."""
    made = generate(3 * count, seed=seed, domain=domain)
    sentences = [" ".join(sentence.words) for document in made for sentence in document.sentences]
    texts = [" ".join(sentences[i : i + 3]) for i in range(0, 3 * count, 3)]
    return [Document(text, id=f"{domain}-{seed}-{i}") for i, text in enumerate(texts)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(passages("bio", 60, seed=1), tmp_path / "like.jsonl")
    pairs = zip(passages("bio", 40, 2), passages("news", 40, 3), strict=True)
    write([document for pair in pairs for document in pair], tmp_path / "text.jsonl")
    return tmp_path


def chosen(folder: Path, **settings: int) -> list[Document]:
    select(
        [read(folder / "text.jsonl")],
        [read(folder / "like.jsonl")],
        str(folder / "out.jsonl"),
        settings=SelectionSettings(**{"least_words": 5, **settings}),
    )
    return list(read(folder / "out.jsonl"))


def test_passages_similar_to_the_corpus_are_selected(folder: Path) -> None:
    size = sum(len(d.text.encode()) for d in passages("bio", 40, 2))
    kept = chosen(folder, most_bytes=size)
    assert sum((d.id or "").startswith("bio") for d in kept) > 0.95 * len(kept)
    assert len(kept) > 30
    everything = chosen(folder, most_bytes=10**9)
    best = {d.id for d in sorted(everything, key=lambda d: d.metadata["likeness"])[:10]}
    assert best <= {d.id for d in kept}


def test_the_size_is_not_exceeded_and_the_order_is_that_of_the_text(folder: Path) -> None:
    for most in (1, 500, 5_000):
        kept = chosen(folder, most_bytes=most)
        assert sum(len(d.text.encode()) for d in kept) <= most
        order = [d.id for d in read(folder / "text.jsonl")]
        assert [d.id for d in kept] == [one for one in order if one in {d.id for d in kept}]


@given(Words, st.lists(Words, max_size=4), st.lists(Words, max_size=4))
def test_the_score_is_the_plain_difference_of_cross_entropies(
    words: list[str], corpus: list[list[str]], sample: list[list[str]]
) -> None:
    known = {w for w, n in Counter(w for row in corpus + sample for w in row).items() if n > 1}

    def entropy(rows: list[list[str]]) -> float:
        kept = [[w if w in known else "" for w in row] for row in rows]
        unigrams = Counter(w for row in kept for w in row)
        bigrams = Counter(pair for row in kept for pair in pairwise(row))
        followed = Counter(first for row in kept for first in row[:-1])
        total = 0.0
        before = None
        for word in (w if w in known else "" for w in words):
            p = (unigrams[word] + 1) / (unigrams.total() + len(known) + 1)
            if before is not None and followed[before]:
                p = 0.6 * bigrams[before, word] / followed[before] + 0.4 * p
            total -= math.log(p)
            before = word
        return total / len(words)

    expected = entropy(corpus) - entropy(sample) if words else math.inf
    assert Likeness(corpus, sample).score(words) == pytest.approx(expected)


def test_near_duplicates_are_left_out() -> None:
    text = "the receptor of T cells binds to the promoter of the gene in activated cells " * 3
    words = words_of(text + "and nothing else was found")
    known = NearDuplicates()
    assert known.add(sketch_of(words))
    assert not known.add(sketch_of(words))
    assert not known.add(sketch_of([*words, "indeed"]))
    assert known.add(sketch_of([f"w{i}" for i in range(50)]))
    assert not known.add(sketch_of(words[:-1]))


def test_equal_passages_are_kept_once(folder: Path) -> None:
    twice = [*passages("bio", 20, 2), *passages("bio", 20, 2), *passages("news", 5, 3)]
    write(twice, folder / "text.jsonl")
    texts = [d.text for d in chosen(folder)]
    assert len(texts) == len(set(texts)) == 25


@given(Words, Words)
def test_shared_strings_are_those_of_a_plain_search(left: list[str], right: list[str]) -> None:
    runs = {tuple(left[i : i + 3]) for i in range(len(left) - 2)}
    expected = any(tuple(right[i : i + 3]) in runs for i in range(len(right) - 2))
    assert SharedStrings([left], 3).has_one_of(right) == expected


def test_no_long_string_of_other_files_is_kept(folder: Path) -> None:
    held_back = passages("bio", 40, 2)[7]
    words = held_back.text.split()
    write([Document("Before this. " + " ".join(words[3:40]))], folder / "dev.jsonl")
    made = select(
        [read(folder / "text.jsonl")],
        [read(folder / "like.jsonl")],
        str(folder / "out.jsonl"),
        without=[read(folder / "dev.jsonl")],
        settings=SelectionSettings(least_words=5),
    )
    ids = [d.id for d in read(folder / "out.jsonl")]
    assert made.shared >= 1
    assert held_back.id not in ids
    assert made.kept == len(ids)


def test_an_interrupted_run_is_continued(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spandet.selection.measure_spool._BLOCK_ROWS", 7)
    whole = chosen(folder, most_bytes=4000)
    (folder / "out.jsonl").rename(folder / "whole.jsonl")
    arguments = ([read(folder / "text.jsonl")], [read(folder / "like.jsonl")])
    settings = SelectionSettings(least_words=5, most_bytes=4000)

    def stop(documents: Iterable[Document], doing: str) -> Iterator[Document]:
        for number, document in enumerate(documents):
            if doing == "measuring" and number == 30:
                raise KeyboardInterrupt
            yield document

    output = str(folder / "out.jsonl")
    with pytest.raises(KeyboardInterrupt):
        select(*arguments, output, settings=settings, progress=stop)
    spool = folder / "out.jsonl.spool"
    spool.write_bytes(spool.read_bytes() + b"half a block")
    with pytest.raises(UsageError, match="continue it with --resume"):
        select(*arguments, output, settings=settings)
    with pytest.raises(UsageError, match="belongs to another run"):
        other = SelectionSettings(least_words=6)
        select(*arguments, output, settings=other, resume=True)
    measured: list[str] = []
    original = Likeness.score

    def counted(self: Likeness, words: list[str]) -> float:
        measured.append(words[0])
        return original(self, words)

    monkeypatch.setattr(Likeness, "score", counted)
    select(*arguments, output, settings=settings, resume=True)
    assert 50 <= len(measured) < 60  # 28 of 80 were measured before
    assert list(read(output)) == whole
    assert not spool.exists()


def test_the_command(folder: Path) -> None:
    names = [str(folder / name) for name in ("text.jsonl", "like.jsonl", "out.jsonl")]
    text, like, out = names
    done = CliRunner().invoke(app, ["select", text, "--like", like, "-o", out, "--most", "5kB"])
    assert done.exit_code == 0, done.output
    first = json.loads((folder / "out.jsonl").read_text().splitlines()[0])
    assert isinstance(first["metadata"]["likeness"], float)
    assert " of 80 passages" in done.stderr
    refused = CliRunner().invoke(app, ["select", text, "--like", like, "-o", text])
    assert isinstance(refused.exception, UsageError)


def test_sizes() -> None:
    sizes = ("100MB", "1.5 GB", "4000", "2k")
    assert [size_in_bytes(one) for one in sizes] == [10**8, 15 * 10**8, 4000, 2000]
    for bad in ("0", "many", "-3MB", "5TB"):
        with pytest.raises(UsageError, match="expected a size such as 100MB"):
            size_in_bytes(bad)


def test_an_empty_corpus_is_an_error_and_leaves_nothing(folder: Path) -> None:
    write([Document(" ")], folder / "like.jsonl")
    with pytest.raises(UsageError, match="--like has no words"):
        chosen(folder)
    assert not list(folder.glob("out*"))


def test_hashes_do_not_depend_on_the_process() -> None:
    assert sketch_of(["a", "b", "c", "d", "e"])[0] == 9918126514362351368
