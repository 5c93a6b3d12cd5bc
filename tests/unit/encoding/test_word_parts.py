"""Parts of the encoder for single words: characters, vectors, tags, hashed features; settings."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spandet.encoding import Encoder, EncoderSettings, Example, Vocabulary
from spandet.encoding.characters import Characters
from spandet.encoding.fusion import Fusion
from spandet.encoding.hashed import Hashed
from spandet.encoding.inputs import hashes_of, shape_of, spellings
from spandet.encoding.part_settings import (
    CharacterSettings,
    FusionSettings,
    HashedSettings,
    TagSettings,
)
from spandet.encoding.tags import Tags
from spandet.encoding.word_vectors import WordVectors
from spandet.errors import ConfigError, FormatError, UsageError

EXAMPLES = [
    Example(("the", "The", "cell"), ("DT", "DT", "NN"), left=("context", "words")),
    Example(("a", "cell"), ("DT", "XX")),
]


def everything(path: str = "unused", **fields: Any) -> EncoderSettings:
    values = {
        "characters": {},
        "tags": {},
        "word_vectors": {"path": path, "dropout": 0.0, **fields},
        "fusion": {"kind": "none"},
    }
    return EncoderSettings.build(values, where="encoder")


def test_the_vocabulary_is_sorted_and_from_the_sentences_alone() -> None:
    vocabulary = everything().vocabulary_of(EXAMPLES)
    assert vocabulary == everything().vocabulary_of(EXAMPLES[::-1])
    assert vocabulary.words == ("The", "a", "cell", "the")
    assert vocabulary.tags == ("DT",)  # the others were seen once
    assert vocabulary.characters == ("c", "e", "h", "l")


def test_parts_that_are_off_need_no_vocabulary() -> None:
    assert EncoderSettings(hashed=HashedSettings()).vocabulary_of(EXAMPLES) == Vocabulary()


NAMES = st.lists(st.text(max_size=3) | st.just("\ud800"), max_size=4).map(tuple)


@given(NAMES, NAMES, NAMES, st.integers(0, 300))
def test_a_vocabulary_survives_as_text(a: Any, b: Any, c: Any, dim: int) -> None:
    vocabulary = Vocabulary(a, b, c, dim)
    text = vocabulary.to_json()
    assert text.isascii()
    assert Vocabulary.from_json(text) == vocabulary


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"characters": 1}', "{"])
def test_other_json_is_not_a_vocabulary(text: str) -> None:
    with pytest.raises(FormatError, match="not a vocabulary"):
        Vocabulary.from_json(text)


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_unknown_characters_and_ends_count(pooling: Any) -> None:
    part = Characters(CharacterSettings(pooling=pooling), ("a", "b")).eval()
    one, other, known, empty, longer = part(part.prepare(["aé", "aö", "ab", "", "aéa"]))
    assert torch.equal(one, other)
    for different in (known, empty, longer):
        assert not torch.allclose(one, different)


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_the_end_of_word_symbol_is_optional(pooling: Any) -> None:
    part = Characters(CharacterSettings(pooling=pooling, end_sign=False), ("a", "b")).eval()
    prepared = part.prepare(["ab", "", "b"])
    assert prepared.sequences.lengths.tolist() == [2, 1, 1]  # an empty word must have something
    assert prepared.ids.tolist() == [2, 3, 1, 3]
    assert torch.isfinite(part(prepared)).all()


def test_very_long_words_are_shortened_to_both_ends() -> None:
    part = Characters(CharacterSettings(), ("a", "b", "c")).eval()
    words = ["b" + "a" * 500 + "c", "b" + "a" * 9000 + "c", "c" + "a" * 500 + "c", "a" * 501 + "b"]
    prepared = part.prepare(words)
    assert prepared.sequences.lengths.tolist() == [65] * 4
    one, same, start, end = part(prepared)
    assert torch.equal(one, same)
    assert not torch.allclose(one, start)
    assert not torch.allclose(one, end)


def test_unknown_and_missing_tags_are_one() -> None:
    part = Tags(TagSettings(), ("DT", "NN")).eval()
    batch = [Example(("a", "b"), ("NN", "VB")), Example(("c",)), Example(())]
    assert part.prepare(batch).tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("word", "shape"),
    [("IL-2", "XX-d"), ("CD-45", "XX-dd"), ("kappa", "xx"), ("NFkB", "XXxX"), ("é", "x"), ("", "")],
)
def test_shapes(word: str, shape: str) -> None:
    assert shape_of(word) == shape


def test_hashes_are_the_same_everywhere() -> None:
    assert hashes_of("IL-2") == HASHES
    assert hashes_of("il-2")[0] == HASHES[0]
    assert hashes_of("CD-4")[3] == HASHES[3]
    assert hashes_of("\ud800")


HASHES = (3462028990, 2568565537, 1849468633, 665286903)


@pytest.mark.parametrize("join", ["sum", "concat"])
def test_hashed_words_by_hand(join: Any) -> None:
    part = Hashed(HashedSettings(dim=8, rows=7, join=join)).eval()
    word = "IL-2"
    rows = [part.table.weight[one % 7 + 7 * number] for number, one in enumerate(hashes_of(word))]
    wanted = torch.stack(rows).sum(0) if join == "sum" else torch.cat(rows)
    torch.testing.assert_close(part(part.prepare([word]))[0], wanted)


def test_words_are_looked_up_in_other_cases_in_order() -> None:
    assert list(spellings("NFkB")) == ["NFkB", "nfkb", "Nfkb", "NFKB"]


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 0\nCell 0 1\nCELL 5 5\nunseen 3 3\na 1 1\nA 9 9\n")
    return str(path)


def word_vectors(encoder: Encoder) -> WordVectors:
    part = encoder.parts["word_vectors"]
    assert isinstance(part, WordVectors)
    return part.eval()


def looked_up(encoder: Encoder, *words: str) -> list[list[float]]:
    part = word_vectors(encoder)
    return part(part.prepare(words)).tolist()  # type: ignore[no-any-return]


def test_frozen_vectors_keep_words_that_training_never_saw(vectors: str) -> None:
    settings = everything(vectors)
    encoder = Encoder.build(settings, settings.vocabulary_of(EXAMPLES))
    assert not word_vectors(encoder).table.weight.requires_grad
    assert looked_up(encoder, "the", "THE", "cell", "Unseen") == [[1, 0], [1, 0], [0, 1], [3, 3]]
    torch.testing.assert_close(looked_up(encoder, "absent"), [[19 / 6, 19 / 6]])


def test_trained_vectors_are_those_of_training_words(vectors: str) -> None:
    settings = everything(vectors, frozen=False, vocabulary="train")
    encoder = Encoder.build(settings, settings.vocabulary_of(EXAMPLES))
    assert word_vectors(encoder).table.weight.requires_grad
    assert encoder.vocabulary.words == ("A", "CELL", "Cell", "a", "the")
    mean = [16 / 5, 3.2]
    torch.testing.assert_close(looked_up(encoder, "unseen", "cell"), [mean, [0.0, 1.0]])


def test_vectors_without_a_training_word_are_an_error(vectors: str) -> None:
    settings = everything(vectors)
    with pytest.raises(ConfigError, match=r"word_vectors\] path: .* no word of the training data"):
        Encoder.build(settings, Vocabulary(words=("der", "die")))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "needs at least one part: transformer, hashed, characters, word_vectors, tags"),
        ({"hashed": {"dims": 3}}, r"\[encoder.hashed\] has no setting dims; did you mean dim"),
        ({"hashed": {"join": "concat", "dim": 6}}, 'join = "concat" needs a dim that 4 divides'),
        ({"characters": {"dim": 5}}, r"\[encoder.characters\] dim: .* multiple of 2, got 5"),
        ({"word_vectors": {}}, r"\[encoder.word_vectors\] path: Field required"),
        ({"word_vectors": {"path": "x", "frozen": False}}, 'needs vocabulary = "train"'),
    ],
)
def test_invalid_settings_are_errors(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EncoderSettings.build(values, where="encoder")


def test_an_invalid_fusion_is_an_error() -> None:
    with pytest.raises(ConfigError, match="both directions need the same size, got 7"):
        Fusion(FusionSettings(), transformer_dim=7, other_dim=0)
    with pytest.raises(ConfigError, match="bypass: needs a transformer, another part and a rec"):
        Fusion(FusionSettings(bypass=True), transformer_dim=8, other_dim=0)


def test_the_small_encoder_is_small() -> None:
    settings = EncoderSettings.small()
    assert EncoderSettings.build(settings.model_dump(), where="encoder") == settings
    encoder = Encoder.build(settings, settings.vocabulary_of(EXAMPLES))
    assert (encoder.dim, encoder.sentence_dim, encoder.context_words) == (128, 0, 0)
    assert not encoder.needs_tags
    assert list(encoder.pretrained_parameters()) == []
    assert encoder.sizes(EXAMPLES) == [3, 2]
    assert sum(p.numel() for p in encoder.parameters()) < 2_000_000


def test_all_tensors_of_a_batch_are_copied_to_a_device() -> None:
    settings = EncoderSettings.small()
    encoder = Encoder.build(settings, settings.vocabulary_of(EXAMPLES))
    copied = encoder.prepare(EXAMPLES).to("meta")
    assert copied.sequences is not None
    hashed, characters = copied.parts["hashed"], copied.parts["characters"]
    for tensor in (copied.mask, hashed, characters.ids, copied.sequences.take):
        assert tensor.is_meta


def test_a_folder_without_an_encoder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*vocabulary\.json: No such file"):
        Encoder.from_files(EncoderSettings.small(), tmp_path)
    (tmp_path / "vocabulary.json").write_text("{}")
    with pytest.raises(FormatError, match=r"vocabulary\.json: not a vocabulary"):
        Encoder.from_files(EncoderSettings.small(), tmp_path)
