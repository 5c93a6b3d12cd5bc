from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.errors import UsageError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan
from spandet.training.data import TrainingSentences, learnable, load, with_tags
from support.strategies import raw_documents, worded_documents
from support.training_toys import ToyRecognizer, documents


def sentence(words: str, *entities: tuple[int, int]) -> WordRow:
    return WordRow(words.split(), [Entity(WordSpan(a, b), "thing") for a, b in entities])


def test_a_split_has_the_name_and_digest_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    write(documents(5), path)

    from_path, from_corpus, from_memory = load(path), load(read(path)), load(documents(5))

    assert from_path == from_corpus
    assert from_path.name == "train.jsonl"
    assert from_path.file_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert from_memory.file_sha256 is None
    assert from_memory.content == from_path.content
    assert (from_path.sentences, from_path.labels) == (5, {"thing", "pair"})


def test_several_files_are_one_split(tmp_path: Path) -> None:
    paths = [tmp_path / "train.jsonl", tmp_path / "dev.jsonl"]
    write(documents(4), paths[0])
    write(documents(3, start=4), paths[1])

    split = load(paths)

    assert split == load([read(path) for path in paths])
    assert split.documents == load(documents(7)).documents
    assert split.content == load(documents(7)).content
    assert split.content != load(paths[::-1]).content
    assert split.name == "train.jsonl + dev.jsonl"
    together = b"".join(path.read_bytes() for path in paths)
    assert split.file_sha256 == hashlib.sha256(together).hexdigest()
    assert load(paths, limit=5).documents == tuple(documents(5))
    assert load(paths[:1]) == load(paths[0])


def test_a_list_has_files_or_documents(tmp_path: Path) -> None:
    write(documents(1), tmp_path / "a.jsonl")
    with pytest.raises(UsageError, match="a list of data has files and documents"):
        load(cast("Any", [tmp_path / "a.jsonl", *documents(1)]))


def test_different_data_have_different_digests() -> None:
    plain = Document.from_rows([sentence("a b c", (0, 1))])
    others = [
        Document.from_rows([sentence("a b d", (0, 1))]),
        Document.from_rows([sentence("a b c", (0, 2))]),
        Document.from_rows([sentence("a b", (0, 1)), sentence("c")]),
        Document.from_rows([sentence("a b c", (0, 1)), sentence("")]),
    ]
    digests = {load([document]).content for document in [plain, *others]}

    assert len(digests) == 5


@given(st.lists(worded_documents(), max_size=4), st.integers(0, 9))
def test_limit_keeps_the_first_sentences(found: list[Document], limit: int) -> None:
    rows = [row for document in found for row in document.rows()]
    cut = [row for document in load(found, limit=limit).documents for row in document.rows()]

    assert cut == rows[:limit]


@given(st.lists(raw_documents() | worded_documents(), max_size=3))
def test_learnable_entities_can_be_expressed_in_words(found: list[Document]) -> None:
    split = load(found)
    try:
        clean = learnable(split)
    except UsageError:
        return
    for before, after in zip(split.documents, clean.documents, strict=True):
        kept = [entity for row in after.rows() for entity in row.entities]
        assert len(kept) == len(after.entities)
        assert not any(entity.fragments for entity in kept)
        assert set(after.entities) <= set(before.entities)


def test_entities_that_cannot_be_learnt_are_counted() -> None:
    text = "Anti-gene therapy works. It does."
    spans = [CharSpan(0, 9), CharSpan(2, 9), CharSpan(18, 27)]  # fine, cuts a word, two sentences
    pieces = (CharSpan(0, 9), CharSpan(18, 23))
    entities = [Entity(span, "thing") for span in spans]
    entities.append(Entity.from_fragments(pieces, "thing"))
    own = Document.from_rows([sentence("Anti-gene therapy works."), sentence("It does.")])
    document = Document(text, tuple(entities), own_sentences=own.sentences)

    clean = learnable(load([document]))

    assert clean.documents[0].entities == (entities[0],)
    assert clean.left_out == (
        "2 of 4 entities cut words or leave their sentence and cannot be learnt",
        "1 of 4 entities have gaps and cannot be learnt",
    )


def test_with_fragments_discontinuous_entities_can_be_learnt() -> None:
    text = "left and right arm"
    fine = Entity.from_fragments([CharSpan(0, 4), CharSpan(15, 18)], "thing")
    cuts = Entity.from_fragments([CharSpan(0, 3), CharSpan(15, 18)], "thing")
    clean = learnable(load([Document(text, (fine, cuts))]), fragments=True)

    assert clean.documents[0].entities == (fine,)
    assert clean.left_out == (
        "1 of 2 entities cut words or leave their sentence and cannot be learnt",
    )
    with pytest.raises(UsageError, match="2 of 2 entities have gaps and cannot be learnt"):
        learnable(load([Document(text, (fine, cuts))]))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], r"the training data \(documents in memory\) have no sentences"),
        ([Document("")], r"have no sentences"),
        ([Document.from_rows([sentence("a b c")])], r"have no entity$"),
        (
            [Document("abc", (Entity(CharSpan(0, 1), "thing"),))],
            r"have no entity that can be learnt: 1 of 1 entities cut words",
        ),
    ],
)
def test_data_without_learnable_entities_are_refused(found: list[Document], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        learnable(load(found))


def test_sentences_without_tags_get_them_from_a_tagger() -> None:
    own = WordRow(("a", "b"), [], ("DT", "NN"))
    document = Document.from_rows([own, sentence("c d e", (0, 1)), sentence("")])
    split = load([document])

    tagged = with_tags(split, lambda words: [word.upper() for word in words])

    found = [one.tags for one in tagged.documents[0].sentences]
    assert found == [("DT", "NN"), ("C", "D", "E"), ()]
    assert tagged.documents[0].entities == document.entities
    assert tagged.content == load(tagged.documents).content != split.content


def test_sentences_without_words_are_not_trained_on() -> None:
    document = Document.from_rows([sentence("a b", (0, 1)), sentence(""), sentence("c", (0, 1))])
    found = TrainingSentences.of(ToyRecognizer(["thing"]), [document])

    assert [row.words for row in found.rows] == [("a", "b"), ("c",)]
    assert [example.words for example in found.examples] == [("a", "b"), ("c",)]
    assert found.sizes == [2, 1]
