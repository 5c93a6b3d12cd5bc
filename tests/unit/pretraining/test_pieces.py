from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from spandet.encoding.transformer import Transformer
from spandet.errors import UsageError
from spandet.pretraining.corpus import Cutter, PieceCorpus, read_pieces, write_pieces
from spandet.text import Document
from support.pretraining_toys import texts, tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Transformer:
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


def cutter(encoder: Transformer, *, held_out: float = 0.1) -> Cutter:
    backend = encoder.tokenizer.backend_tokenizer
    return Cutter(backend, encoder.pieces.special, len(encoder.tokenizer), held_out)


def pieces_of(
    documents: list[Document], encoder: Transformer, folder: Path, *, held_out: float = 0.1
) -> PieceCorpus:
    write_pieces([documents], cutter(encoder, held_out=held_out), folder / "pieces")
    return read_pieces(folder / "pieces")


def rows(ids: np.ndarray, separator: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    own: list[int] = []
    for piece in ids.tolist():
        if piece == separator:
            found.append(tuple(own))
            own = []
        else:
            own.append(piece)
    assert not own
    return found


def test_pieces_are_those_of_the_tokenizer(encoder: Transformer, tmp_path: Path) -> None:
    documents = texts(50)
    corpus = pieces_of(documents, encoder, tmp_path)
    (separator,) = encoder.pieces.special.suffix
    backend = encoder.tokenizer.backend_tokenizer
    wanted = [tuple(backend.encode(d.text, add_special_tokens=False).ids) for d in documents]
    train, held_out = rows(corpus.train.ids, separator), rows(corpus.held_out.ids, separator)

    assert corpus.train.ids.dtype == np.uint16
    assert sorted(train + held_out) == sorted(wanted)
    assert train == [row for row in wanted if row in set(train)]  # in order
    vocabulary = encoder.tokenizer.get_vocab()
    inner = {number for piece, number in vocabulary.items() if piece.startswith("##")}
    assert (corpus.train.starts == ~np.isin(corpus.train.ids, list(inner))).all()


def test_held_out_documents_are_never_trained_on(encoder: Transformer, tmp_path: Path) -> None:
    """Nor are copies of them; the choice depends on the text only."""
    documents = texts(400)
    corpus = pieces_of([*documents, *documents[::-1]], encoder, tmp_path / "a")
    other = pieces_of([documents[0], *documents[200:]], encoder, tmp_path / "b")
    (separator,) = encoder.pieces.special.suffix
    train, held_out = (set(rows(s.ids, separator)) for s in (corpus.train, corpus.held_out))

    assert not train & held_out
    assert 20 <= len(held_out) <= 60
    assert set(rows(other.held_out.ids, separator)) <= held_out
    assert set(rows(other.train.ids, separator)) <= train


def test_texts_are_cut_once(
    encoder: Transformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    cut = Cutter.cut

    def counted(self: Cutter, some: Iterator[str]) -> object:
        nonlocal calls
        calls += 1
        return cut(self, some)

    monkeypatch.setattr(Cutter, "cut", counted)
    documents, folder = texts(20), tmp_path / "pieces"
    for _ in range(2):
        write_pieces([documents], cutter(encoder), folder)
    assert calls == 1
    write_pieces([documents[:-1]], cutter(encoder), folder)
    write_pieces([documents[:-1]], cutter(encoder, held_out=0.3), folder)
    assert calls == 3


def test_special_pieces_in_a_text_are_text(encoder: Transformer, tmp_path: Path) -> None:
    corpus = pieces_of([Document("ba [SEP] \ud800 ba")], encoder, tmp_path, held_out=0)

    (separator,) = encoder.pieces.special.suffix
    assert corpus.train.ids.tolist().count(separator) == 1
    assert len(corpus.held_out.ids) == 0


@pytest.mark.parametrize(
    ("documents", "why"),
    [
        ([], "there is no text to learn from in documents in memory"),
        ([Document(" \n")], "there is no text to learn from"),
        ([Document("ba dei.")], r"all text .* is held out.*held_out=0"),
    ],
)
def test_without_text_there_is_no_cache(
    encoder: Transformer, tmp_path: Path, documents: list[Document], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        pieces_of(documents, encoder, tmp_path)
    assert list(tmp_path.iterdir()) == []
