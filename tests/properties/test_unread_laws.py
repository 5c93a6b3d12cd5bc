"""Annotation that a reader does not support is refused wherever it is in a file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.errors import FormatError
from spandet.formats import read

PREFIXES = "BIESMLU"
WORD = st.text("abcdefg", min_size=1, max_size=4)
POS = st.sampled_from(["NN", "VB", ".", "-LRB-", "PRP$"])
CHUNK = st.sampled_from(["O", "B-NP", "I-NP", "B-VP", "I-ADJP", "B-SBAR", "B-NC"])
TAG = st.builds("{}-{}".format, st.sampled_from(PREFIXES), st.sampled_from(["PER", "DNA", "x.y"]))
COLUMN_FORMATS = ["conll", "conll-iob1", "conll-bioes", "conll-bmes", "germeval", "conll2012"]


@st.composite
def layers(draw: st.DrawFn, length: int) -> list[str]:
    """A layer with an entity tag in it."""
    cells = draw(st.lists(TAG | st.just("O"), min_size=length, max_size=length))
    cells[draw(st.integers(0, length - 1))] = draw(TAG)
    return cells


@st.composite
def columns_and_layer(draw: st.DrawFn, name: str) -> tuple[list[Sequence[str]], int, list[str]]:
    """The columns of a sentence, a further layer, and its place among them."""
    length = draw(st.integers(1, 5))

    def column(cell: st.SearchStrategy[str]) -> list[str]:
        return draw(st.lists(cell, min_size=length, max_size=length))

    words, outside = column(WORD), ["O"] * length
    numbers = [str(number + 1) for number in range(length)]
    if name == "germeval":
        columns = [numbers, words, outside, outside]
    elif name == "conll2012":
        dashes = ["-"] * length
        stars = ["*"] * length
        columns = [["a"] * length, ["0"] * length, numbers, words, column(POS), stars]
        columns += [dashes, dashes, dashes, dashes, stars, dashes]
    else:
        between = draw(st.sampled_from([[], [POS], [POS, CHUNK], [WORD, POS, CHUNK]]))
        columns = [words, *map(column, between), outside]
    first = 11 if name == "conll2012" else 1  # an earlier position would shift the other columns
    place = draw(st.integers(first, len(columns) - (name != "conll2012")))
    return [*columns], place, draw(layers(length))


def as_text(name: str, columns: Sequence[Sequence[str]]) -> str:
    lines = "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))
    return f"#begin document (a)\n{lines}\n#end document\n" if name == "conll2012" else lines


@pytest.mark.parametrize("name", COLUMN_FORMATS)
@given(data=st.data())
@settings(max_examples=40)
def test_a_further_layer_of_tags_is_refused_and_other_columns_are_not(
    name: str, data: st.DataObject
) -> None:
    columns, place, layer = data.draw(columns_and_layer(name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(as_text(name, columns))
        assert len(list(read(path, name))) == 1
        columns.insert(place, layer)
        path.write_text(as_text(name, columns))
        with pytest.raises(FormatError, match=r"file:\d+: (column|found 5 columns)"):
            list(read(path, name))


@pytest.mark.parametrize("name", ["jsonl", "tokens-jsonl", "doccano", "prodigy"])
@given(data=st.data())
@settings(max_examples=40)
def test_a_field_with_a_layer_of_tags_is_refused_whatever_its_name(
    name: str, data: st.DataObject
) -> None:
    words = data.draw(st.lists(WORD, min_size=1, max_size=5))
    key = data.draw(st.sampled_from(["ner_tags", "tags", "ner", "layer2", "labels2", "x"]))
    text = {"tokens": words} if name == "tokens-jsonl" else {"text": " ".join(words)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(json.dumps(text | {"x": ["O"] * len(words)}))
        assert len(list(read(path, name))) == 1
        path.write_text(json.dumps(text | {key: data.draw(layers(len(words)))}))
        with pytest.raises(FormatError, match=f"file:1: {key} has a tag for each word"):
            list(read(path, name))
