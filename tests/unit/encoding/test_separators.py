"""Separators between a sentence and its context."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from spandet.encoding import Example
from spandet.encoding.part_settings import TransformerSettings
from spandet.encoding.pieces import PieceMaker, Special
from spandet.errors import ConfigError

CLS, SEP, MARK = 1, 2, 3
LETTERS = {letter: number for number, letter in enumerate("abcdefgh", start=10)}


def maker(*, context: int, limit: int = 20, separator: int | None = MARK) -> PieceMaker:
    backend = Tokenizer(models.WordLevel({**LETTERS, "?": 4}, unk_token="?"))  # noqa: S106
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = Special(prefix=(CLS,), suffix=(SEP,), unknown=4, padding=0, separator=separator)
    return PieceMaker(backend, special, limit=limit, context=context, overlap=2, shared=False)


def example(left: str, words: str, right: str) -> Example:
    return Example(tuple(words), left=tuple(left), right=tuple(right))


def row(made: PieceMaker, one: Example) -> str:
    """The pieces of the only row as letters; | is a separator."""
    batch = made.arrays([one])
    letters = {number: letter for letter, number in LETTERS.items()}
    letters |= {CLS: "<", SEP: ">", MARK: "|"}
    (ids,) = batch.ids.tolist()
    own = [letters[ids[place]] for place in batch.places.tolist()]
    assert own == list(one.words)  # `places` are those of the words' own pieces
    assert made.sizes([one]) == [len(ids)]
    return "".join(letters[piece] for piece in ids)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("ab", "ef", "<ab|cd|ef>"),
        ("ab", "", "<ab|cd>"),
        ("", "ef", "<cd|ef>"),
        ("", "", "<cd>"),
    ],
)
def test_a_separator_is_where_context_is(left: str, right: str, expected: str) -> None:
    one = example(left, "cd", right)
    assert row(maker(context=20), one) == expected
    assert row(maker(context=20, separator=None), one) == expected.replace("|", "")


def test_separators_count_as_context() -> None:
    one = example("abab", "cd", "efef")
    assert row(maker(context=6), one) == "<ab|cd|ef>"
    assert row(maker(context=20, limit=10), one) == "<ab|cd|ef>"
    assert row(maker(context=0), one) == "<cd>"


def test_a_sentence_over_the_limit_has_neither_context_nor_separators() -> None:
    one = example("ab", "cdefgh", "ab")
    batch = maker(context=20, limit=6).arrays([one])
    assert MARK not in batch.ids.flatten().tolist()
    places = batch.ids.flatten()[batch.places].tolist()
    assert places == [LETTERS[letter] for letter in one.words]


@pytest.mark.parametrize(("written", "count"), [("true", 1), ("false", 0), ("2", 2)])
def test_neighbour_sentences_of_earlier_versions_are_read(written: str, count: int) -> None:
    text = f'{{"name": "minilm", "neighbour_sentences": {written}}}'
    assert TransformerSettings.model_validate_json(text).neighbour_sentences == count
    values = {
        "name": "minilm",
        "neighbour_sentences": {"true": True, "false": False}.get(written, 2),
    }
    read = TransformerSettings.build(values, where="encoder.transformer").neighbour_sentences
    assert (read, type(read)) == (count, int)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"neighbour_sentences": -1}, "neighbour_sentences: .*greater than or equal to 0, got -1"),
        ({"neighbour_sentences": 2, "context": 4}, "context and passage must be 0"),
        ({"separators": True, "passage": 4}, "with separators, passage must be 0"),
    ],
)
def test_contexts_that_exclude_each_other(values: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        TransformerSettings.build({"name": "minilm", **values}, where="encoder.transformer")
