"""Pruned vocabularies: kept pieces are split as before, others into smaller known pieces."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from spandet.errors import UsageError
from spandet.packing.word_pieces import pieces_to_keep, read_tokenizer, write_tokenizer
from support.tiny_bert import SPECIAL, save_tiny_bert

ALPHABET = "abcde"
LONGER = [a + b for a in ALPHABET for b in ALPHABET] + ["abc", "cab", "bead", "dead"]
CHARACTERS = [*ALPHABET, *(f"##{one}" for one in ALPHABET)]
WORDS = st.lists(st.text(ALPHABET + "x", min_size=1, max_size=8), min_size=1, max_size=6)


def tokenizer(folder: Path, *more: str) -> dict[str, Any]:
    pieces = [*CHARACTERS, *LONGER, *(f"##{piece}" for piece in LONGER), *more]
    return read_tokenizer(save_tiny_bert(folder, pieces))


def cut(values: dict[str, Any], words: list[str]) -> list[str]:
    one = Tokenizer.from_str(json.dumps(values))
    tokens: list[str] = one.encode(words, is_pretokenized=True).tokens
    return tokens


def smaller(values: dict[str, Any], kept: list[int], folder: Path) -> dict[str, Any]:
    write_tokenizer(values, kept, folder)
    return read_tokenizer(folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bert")


@pytest.fixture(scope="module")
def whole(place: Path) -> dict[str, Any]:
    return tokenizer(place)


@given(st.data())
@settings(max_examples=60)
def test_text_is_split_as_before_or_into_smaller_known_pieces(
    place: Path, whole: dict[str, Any], data: st.DataObject
) -> None:
    vocabulary = whole["model"]["vocab"]
    used = data.draw(st.sets(st.sampled_from(sorted(vocabulary.values()))))
    kept = pieces_to_keep(whole, used, size=0)
    fewer = smaller(whole, kept, place)
    words = data.draw(WORDS)
    before, after = cut(whole, words), cut(fewer, words)
    if {vocabulary[piece] for piece in before} <= set(kept):
        assert after == before
    assert after.count("[UNK]") == before.count("[UNK]")
    assert len(after) >= len(before)
    assert (after[0], after[-1]) == ("[CLS]", "[SEP]")


def test_pieces_are_renumbered_in_order(tmp_path: Path) -> None:
    whole = tokenizer(tmp_path)
    kept = pieces_to_keep(whole, {whole["model"]["vocab"]["##dead"]}, size=0)
    names = {number: piece for piece, number in whole["model"]["vocab"].items()}
    fewer = smaller(whole, kept, tmp_path)
    assert list(fewer["model"]["vocab"]) == [names[number] for number in kept]
    assert list(fewer["model"]["vocab"].values()) == list(range(len(kept)))
    assert list(fewer["model"]["vocab"]) == [*SPECIAL.values(), *CHARACTERS, "##dead"]
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["vocab_size"] == len(kept)


def test_a_larger_size_is_filled_up_with_the_first_pieces(tmp_path: Path) -> None:
    whole = tokenizer(tmp_path)
    base = len(SPECIAL) + len(CHARACTERS)
    names = {number: piece for piece, number in whole["model"]["vocab"].items()}
    kept = pieces_to_keep(whole, set(), size=base + 3)
    assert [names[number] for number in kept[base:]] == LONGER[:3]
    everything = pieces_to_keep(whole, set(), size=10**6)
    assert len(everything) == len(names) - 1
    assert "[unused0]" not in {names[number] for number in everything}


def test_a_character_that_is_no_piece_keeps_the_pieces_around_it(tmp_path: Path) -> None:
    whole = tokenizer(tmp_path, "zebra", "##az")
    fewer = smaller(whole, pieces_to_keep(whole, set(), size=0), tmp_path)
    assert cut(fewer, ["zebra", "baz", "zoo"])[1:-1] == ["zebra", "b", "##az", "[UNK]"]


def test_other_kinds_are_refused(tmp_path: Path) -> None:
    save_tiny_bert(tmp_path, string.ascii_lowercase)
    values = json.loads((tmp_path / "tokenizer.json").read_text())
    values["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(UsageError, match=r"tokenizer\.json is WordPiece with None, expected"):
        read_tokenizer(tmp_path)
