"""Preparation: NumPy arrays without torch, the same from the encoder and from saved files."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spandet.encoding import Encoder, EncoderSettings, Example
from spandet.encoding.pieces import PIECES, PieceMaker
from spandet.encoding.preparation import VOCABULARY, Preparation
from spandet.errors import UsageError
from spandet.tensors import to_tensors
from support.tiny_bert import save_tiny_bert

EXAMPLES = [
    Example(("the", "cells", "[SEP]"), ("DT", "NNS", "X"), left=("grew",), right=("the", "cells")),
    Example(()),
    Example(("the", "\u200b"), ("DT", "X"), left=("the",) * 9),
]
PARTS: dict[str, dict[str, Any]] = {
    "hashed": {},
    "characters": {"min_count": 1},
    "word_vectors": {"path": "{folder}/vectors.txt"},
    "tags": {"min_count": 1},
}
KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "words": PARTS,
    "context": {"transformer": {"name": "{folder}", "context": 4, "separators": True}, **PARTS},
    "passages": {"transformer": {"name": "{folder}", "passage": 8}, "fusion": {"kind": "none"}},
    "neighbours": {"transformer": {"name": "{folder}", "neighbour_sentences": 1}},
}


def encoder_of(kind: str, folder: Path) -> Encoder:
    save_tiny_bert(folder, ["the", "cell", "##s", "grew"])
    (folder / "vectors.txt").write_text("the 1 2\ncells 3 4\n")
    values = {
        part: {k: v.format(folder=folder) if isinstance(v, str) else v for k, v in own.items()}
        for part, own in KINDS[kind].items()
    }
    settings = EncoderSettings.build(values, where="encoder")
    return Encoder.build(settings, settings.vocabulary_of(EXAMPLES))


@pytest.mark.parametrize("kind", KINDS)
def test_preparation_from_files_equals_that_of_the_encoder(kind: str, tmp_path: Path) -> None:
    encoder = encoder_of(kind, tmp_path)
    (tmp_path / VOCABULARY).write_text(encoder.vocabulary.to_json())
    if encoder.transformer is not None:
        encoder.transformer.pieces.save(tmp_path / PIECES)
    loaded, own = Preparation.from_files(encoder.settings, tmp_path), encoder.preparation
    assert loaded.context_words == own.context_words
    assert loaded.needs_tags == own.needs_tags
    cut = loaded.with_pieces(EXAMPLES)
    assert [one.pieces for one in cut] == [one.pieces for one in own.with_pieces(EXAMPLES)]
    assert loaded.sizes(cut) == own.sizes(EXAMPLES)
    assert loaded.together(cut) == own.together(EXAMPLES)
    for examples in (EXAMPLES, EXAMPLES[1:2], []):
        arrays, expected = loaded.prepare(examples), own.prepare(examples)
        assert flat(arrays) == flat(expected)
        tensors = encoder.prepare(examples)
        assert flat(to_tensors(vars(arrays))) == flat({**vars(tensors), "cached": None})


def flat(value: object) -> object:
    """A value with its arrays and tensors as lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: flat(item) for key, item in value.items() if item is not None}
    return flat(vars(value)) if hasattr(value, "__dict__") else value


def test_arrays_are_numpy(tmp_path: Path) -> None:
    arrays = encoder_of("context", tmp_path).preparation.prepare(EXAMPLES)
    assert isinstance(arrays.mask, np.ndarray)
    assert isinstance(arrays.parts["transformer"].ids, np.ndarray)
    assert isinstance(arrays.parts["characters"].sequences.take, np.ndarray)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"special": {}, "tokenizer": {}}'])
def test_a_damaged_file_of_pieces_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / PIECES).write_text(text)
    with pytest.raises(UsageError, match=r"pieces\.json is damaged"):
        PieceMaker.load(tmp_path / PIECES)


def test_preparation_and_settings_need_no_torch() -> None:
    code = (
        "import sys, spandet.encoding.preparation, spandet.inference.model_settings as m\n"
        "values = {'encoder': {'characters': {}}, 'detector': {'name': 'span-jury'}}\n"
        "m.ModelSettings.resolve(values)\n"
        "print([name for name in ('torch', 'transformers', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
