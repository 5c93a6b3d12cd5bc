"""Prodigy's JSONL, after its public description."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity, Sentence, WordRow, WordSpan

TEXT = "Zoe ran\n\nhome."
TOKENS = [
    {"text": "Zoe", "start": 0, "end": 3, "id": 0, "ws": True},
    {"text": "ran", "start": 4, "end": 7, "id": 1, "ws": False},
    {"text": "\n\n", "start": 7, "end": 9, "id": 2, "ws": False},
    {"text": "home", "start": 9, "end": 13, "id": 3, "ws": False},
    {"text": ".", "start": 13, "end": 14, "id": 4, "ws": False},
]
SPAN = {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}
EXAMPLE = {
    "text": TEXT,
    "_input_hash": -17,
    "tokens": TOKENS,
    "spans": [SPAN],
    "meta": {"page": 3},
    "answer": "reject",
}


def document(folder: Path, **change: Any) -> Document:
    path = folder / "all.jsonl"
    path.write_text("\n" + json.dumps(EXAMPLE | change))
    (found,) = read(path)
    return found


def test_tokens_are_words_and_the_rest_is_metadata(tmp_path: Path) -> None:
    assert document(tmp_path) == Document(
        TEXT,
        (Entity(CharSpan(0, 3), "PER"),),
        None,
        {"_input_hash": -17, "meta": {"page": 3}, "answer": "reject"},
        (Sentence(("Zoe", "ran", "home", "."), (0, 4, 9, 13)),),
    )


def test_without_tokens_the_text_is_raw(tmp_path: Path) -> None:
    assert document(tmp_path, tokens=None).own_sentences is None


def test_spans_may_have_scores_and_wrong_token_numbers(tmp_path: Path) -> None:
    found = document(tmp_path, spans=[SPAN | {"token_end": 9, "score": 0.25}])
    assert found.entities == (Entity(CharSpan(0, 3), "PER", 0.25),)


def test_written_with_token_numbers_where_words_fit(tmp_path: Path) -> None:
    rows = [
        WordRow(("Zoe", "ran"), [Entity(WordSpan(0, 2), "X", 0.5)]),
        WordRow(("home",), [Entity(WordSpan(0, 1), "Y")]),
    ]
    whole = Document.from_rows(rows, id="9", metadata={"answer": "accept"})
    cut = Entity(CharSpan(0, 2), "CUT")
    path = tmp_path / "out.jsonl"
    write([replace(whole, entities=(*whole.entities, cut))], path, "prodigy")
    assert json.loads(path.read_text()) == {
        "id": 9,
        "text": "Zoe ran\nhome",
        "tokens": [
            {"text": "Zoe", "start": 0, "end": 3, "id": 0, "ws": True},
            {"text": "ran", "start": 4, "end": 7, "id": 1, "ws": False},
            {"text": "home", "start": 8, "end": 12, "id": 2, "ws": False},
        ],
        "spans": [
            {"start": 0, "end": 7, "label": "X", "score": 0.5, "token_start": 0, "token_end": 1},
            {"start": 8, "end": 12, "label": "Y", "token_start": 2, "token_end": 2},
            {"start": 0, "end": 2, "label": "CUT"},
        ],
        "answer": "accept",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spans": [SPAN, SPAN | {"end": 0}]}, "span 1: start 0 is not before end 0"),
        ({"spans": [{"start": 0, "end": 3}]}, "span 0: label is missing, expected a string"),
        ({"spans": [SPAN | {"score": "high"}]}, 'span 0: score is "high", expected a number'),
        (
            {"tokens": [TOKENS[0] | {"text": "Zoo"}]},
            'token 0: characters 0:3 are "Zoe", but its text is "Zoo"',
        ),
        (
            {"tokens": [TOKENS[1], TOKENS[0]]},
            "token 1: it starts at 0, before the end 7 of the one before",
        ),
        ({"tokens": ["Zoe"]}, 'tokens[0] is "Zoe", expected an object'),
        ({"text": 3}, "text is 3, expected a string"),
    ],
)
def test_invalid_records_are_errors_with_their_position(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        document(tmp_path, **change)
    assert str(caught.value).startswith(f"{tmp_path}/all.jsonl:2: ")
    assert message in str(caught.value)


def test_what_the_format_cannot_represent_is_refused(tmp_path: Path) -> None:
    pieces = [CharSpan(0, 1), CharSpan(2, 3)]
    split = Document("Zoe", (Entity.from_fragments(pieces, "PER"),))
    with pytest.raises(FormatError, match=r"document 0: the PER entity .* is discontinuous"):
        write([split], tmp_path / "out.jsonl", "prodigy")
    with pytest.raises(FormatError, match=r'the metadata "spans" has the name of a field'):
        write([Document("Zoe", metadata={"spans": 1})], tmp_path / "out.jsonl", "prodigy")
