"""Laws of the encoder: alone = in a batch, pooling = brute force, no word is lost."""

import string
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from spandet.encoding import Encoder, EncoderSettings, Example, examples_of
from spandet.encoding.examples import windows_of
from spandet.encoding.fusion import Fusion
from spandet.encoding.part_settings import FusionSettings, Pooling
from spandet.encoding.transformer import pool
from spandet.errors import ConfigError
from spandet.layers.choices import Cell
from spandet.layers.recurrent import BiRNN
from spandet.layers.sequences import packed, padded
from spandet.text import Document, WordRow

LIMIT = 24  # pieces that the tiny BERT can read at once, special ones included
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ODD = ["\u200b", "\u00ad", "é", "漢字", "[SEP]", "🙂", "\ud800", "x" * 90, "IL-2", "ab", "Ab"]
WORDS = st.sampled_from([*ODD, *string.ascii_lowercase]) | st.text(
    string.ascii_letters, min_size=1, max_size=4
)
RAGGED = st.lists(st.integers(0, 6), min_size=1, max_size=6)
NONE = {"kind": "none"}
PARTS: dict[str, dict[str, Any]] = {
    "characters": {"dim": 6, "embedding_dim": 4},
    "tags": {"dim": 3},
    "hashed": {"dim": 8, "rows": 50},
}
COMBINATIONS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "transformer alone": (["transformer"], NONE),
    "transformer, lstm": (["transformer"], {}),
    "transformer, projected": (["transformer", "tags"], {"kind": "none", "dim": 5}),
    "everything, lstm": (["transformer", *PARTS, "word_vectors"], {"layers": 2}),
    "everything, gru": (["transformer", *PARTS, "word_vectors"], {"kind": "bigru", "dim": 10}),
    "bypass": (["transformer", "characters"], {"bypass": True, "recurrent_dim": 6}),
    "characters alone": (["characters"], {}),
    "tags alone": (["tags"], NONE),
    "hashed alone": (["hashed"], NONE),
    "word vectors alone": (["word_vectors"], {"kind": "bigru", "dim": 4}),
    "characters and hashed": (["characters", "hashed"], {"dim": 12, "layers": 2}),
}


Row = tuple[tuple[str, ...], ...]
"""The fields of an example. (Type-checked classes use random numbers, which strategies may not.)"""


@st.composite
def rows(draw: st.DrawFn, *, most: int = 12) -> Row:
    words = draw(st.lists(WORDS, max_size=most))
    tags = [draw(st.sampled_from(["NN", "VB", "??"])) for _ in words]
    context = st.lists(WORDS, max_size=8).map(tuple)
    return tuple(words), tuple(tags), draw(context), draw(context)


BATCHES = st.lists(rows(), min_size=1, max_size=4)


TRAINING = [
    Example(("the", "Ab", "abc", "of"), ("NN", "NN", "VB", "VB")),
    Example(("the", "ab", "x"), ("NN", "VB", "NN")),
]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random BERT that knows every ASCII letter."""
    folder = tmp_path_factory.mktemp("bert")
    letters = [*string.ascii_lowercase, *string.digits, "-"]
    pieces = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), "ab", "the"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, **dict(zip(_NAMES, SPECIAL, strict=True))
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=LIMIT,
        initializer_range=0.5,
    )
    torch.manual_seed(1)
    BertModel(config).save_pretrained(folder)  # type: ignore[no-untyped-call]
    (folder / "vectors.txt").write_text("the 1 0 0\nab 0 1 0\nabc 0 0 1\nother 1 1 1\n")
    return folder


_NAMES = ["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"]


def build(bert: Path, parts: list[str], fusion: dict[str, Any], **transformer: Any) -> Encoder:
    available = {
        **PARTS,
        "transformer": {"name": str(bert), "overlap": 5, **transformer},
        "word_vectors": {"path": str(bert / "vectors.txt")},
    }
    values = {part: available[part] for part in parts}
    chosen = EncoderSettings.build({**values, "fusion": fusion}, where="encoder")
    torch.manual_seed(2)
    return Encoder.build(chosen, chosen.vocabulary_of(TRAINING)).eval()


def _plain(bert: Path) -> Any:
    return BertModel.from_pretrained(bert).eval()  # type: ignore[no-untyped-call]


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module", params=COMBINATIONS)
def encoder(request: pytest.FixtureRequest, bert: Path) -> Encoder:
    parts, fusion = COMBINATIONS[request.param]
    return build(bert, parts, fusion, context=7)


@torch.no_grad()
@settings(max_examples=8)
@given(BATCHES)
def test_a_sentence_alone_and_in_a_batch_has_the_same_vectors(
    encoder: Encoder, drawn: list[Row]
) -> None:
    batch = [Example(*row) for row in drawn]
    together = encoder(encoder.prepare(batch))
    assert together.lengths.tolist() == [len(example.words) for example in batch]
    assert together.features.shape[2] == encoder.dim
    assert not together.features[~together.mask].any()
    assert (together.sentence is not None) == (encoder.sentence_dim > 0)
    for number, example in enumerate(batch):
        alone = encoder(encoder.prepare([example]))
        close(together.features[number, : len(example.words)], alone.features[0])
        if together.sentence is not None and alone.sentence is not None:
            close(together.sentence[number], alone.sentence[0])


@torch.no_grad()
@pytest.mark.parametrize("count", [1, 3])
def test_sentences_without_words_have_no_vectors(encoder: Encoder, count: int) -> None:
    words = encoder(encoder.prepare([Example(())] * count))
    assert words.features.shape == (count, 0, encoder.dim)
    if words.sentence is not None:
        assert words.sentence.isfinite().all()


def test_every_parameter_learns(encoder: Encoder) -> None:
    tagged = [replace(example, left=("ab",)) for example in TRAINING]
    encoder(encoder.prepare(tagged)).features.square().sum().backward()
    learning = [n for n, p in encoder.named_parameters() if p.requires_grad and p.grad is None]
    encoder.zero_grad()
    assert learning == []


def test_saved_files_and_weights_give_the_same_vectors(encoder: Encoder, tmp_path: Path) -> None:
    encoder.save_files(tmp_path)
    loaded = Encoder.from_files(encoder.settings, tmp_path)
    loaded.load_state_dict(encoder.state_dict())
    batch = [*TRAINING, Example(("other", "é", "Zz"), left=("ab",), right=("x", "y"))]
    with torch.no_grad():
        again = loaded.eval()(loaded.prepare(batch))
        assert torch.equal(again.features, encoder(encoder.prepare(batch)).features)
    assert loaded.vocabulary == encoder.vocabulary
    assert (loaded.dim, loaded.sentence_dim) == (encoder.dim, encoder.sentence_dim)


@torch.no_grad()
@settings(max_examples=8)
@given(BATCHES)
def test_pieces_that_are_known_change_nothing(encoder: Encoder, drawn: list[Row]) -> None:
    bare = [Example(*row) for row in drawn]
    known = encoder.with_pieces(bare)
    assert list(known) == bare
    assert encoder.sizes(known) == encoder.sizes(bare)
    wanted = encoder(encoder.prepare(bare)).features
    for batch in (known, [bare[0], *known[1:]]):  # also beside one whose pieces are not known
        assert torch.equal(encoder(encoder.prepare(batch)).features, wanted)


@torch.no_grad()
@settings(max_examples=20)
@given(BATCHES)
def test_cached_outputs_give_the_same_vectors(bert: Path, drawn: list[Row]) -> None:
    encoder = _cached_encoder(bert)
    batch = [Example(*row) for row in drawn]
    prepared = encoder.prepare(batch)
    said = encoder.transformer_words(prepared).split(prepared.cached_rows)
    # Sentences are in another order, and the transformer gets no input.
    backwards = encoder.prepare(batch[::-1])
    others = {name: own for name, own in backwards.parts.items() if name != "transformer"}
    mixed = replace(backwards, parts=others, cached=torch.cat(said[::-1]))
    fresh, cached = encoder(prepared), encoder(mixed)
    close(cached.features.flip(0), fresh.features)
    close(cached.sentence.flip(0), fresh.sentence)


@cache
def _cached_encoder(bert: Path) -> Encoder:
    return build(bert, ["transformer", "tags"], {}, context=7)


def test_cached_outputs_have_no_dropout(bert: Path) -> None:
    encoder = build(bert, ["transformer"], NONE).train()
    prepared = encoder.prepare(TRAINING)
    assert torch.equal(encoder.transformer_words(prepared), encoder.transformer_words(prepared))
    assert not torch.equal(encoder(prepared).features, encoder(prepared).features)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6), st.sampled_from(["mean", "max", "first"])
)
def test_pooling_equals_pooling_word_by_word(counts: list[int], pooling: Pooling) -> None:
    vectors = torch.randn(sum(counts), 3, generator=torch.Generator().manual_seed(sum(counts)))
    sizes = torch.tensor(counts)
    words = torch.arange(len(counts)).repeat_interleave(sizes)
    got = pool(vectors, words, sizes.cumsum(0) - sizes, pooling)
    for row, own in zip(got, vectors.split(counts), strict=True):
        wanted = {"mean": own.mean(0), "max": own.max(0).values, "first": own[0]}
        close(row, wanted[pooling])


@torch.no_grad()
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("pooling", ["mean", "max", "first"])
def test_word_vectors_are_those_of_a_plain_transformer(
    bert: Path, layers: int, pooling: str
) -> None:
    encoder = build(bert, ["transformer"], NONE, layers=layers, pooling=pooling)
    plain = _plain(bert)
    words = ["the", "abc", "q", "abab"]
    tokenizer = PreTrainedTokenizerFast.from_pretrained(bert)
    tokens = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    states = plain(**tokens, output_hidden_states=True).hidden_states
    mean = torch.stack(states[-layers:]).mean(0)[0]
    got = encoder(encoder.prepare([Example(tuple(words))]))
    for number in range(len(words)):
        own = mean[[word == number for word in tokens.word_ids()]]
        wanted = {"mean": own.mean(0), "max": own.max(0).values, "first": own[0]}
        close(got.features[0, number], wanted[pooling])
    assert got.sentence is not None
    close(got.sentence[0], mean[0])


SIZES = st.integers(0, 12)


@given(SIZES, SIZES, SIZES, st.integers(12, 20), st.integers(0, 15))
def test_context_is_as_even_as_it_can_be(
    before: int, own: int, after: int, capacity: int, context: int
) -> None:
    (window,) = windows_of(before, own, after, capacity=capacity, context=context, overlap=3)
    room = min(context, capacity - own)
    choices = [
        (left, right)
        for left in range(before + 1)
        for right in range(after + 1)
        if left + right <= room
    ]
    best = max(choices, key=lambda c: (sum(c), -abs(c[0] - c[1]), c[1] - c[0]))
    assert (before - window.start, window.end - before - own) == best
    assert (window.kept_start, window.kept_end) == (before, before + own)


@given(st.integers(0, 5), st.integers(2, 60), st.integers(1, 14), st.integers(0, 16))
def test_each_piece_comes_from_the_window_with_most_context(
    before: int, own: int, capacity: int, overlap: int
) -> None:
    windows = windows_of(before, own, 4, capacity=capacity, context=0, overlap=overlap)
    kept = [p for window in windows for p in range(window.kept_start, window.kept_end)]
    assert kept == list(range(before, before + own))
    for window in windows:
        assert window.end - window.start <= capacity
        for piece in range(window.kept_start, window.kept_end):
            depths = [min(piece - w.start, w.end - 1 - piece) for w in windows]
            assert depths[windows.index(window)] == max(depths) >= 0
    if len(windows) > 1:
        shared = min(overlap, capacity // 2)
        assert all(a.end - b.start >= shared for a, b in pairwise(windows))


@settings(max_examples=40)
@given(rows(most=6), st.integers(0, 9))
def test_rows_contain_the_nearest_context(bert: Path, drawn: Row, context: int) -> None:
    example = Example(*drawn)
    encoder = _with_context(bert, context)
    assert encoder.context_words == context
    batch = encoder.prepare([example])
    (size,) = encoder.sizes([example])
    assert batch.pieces is not None
    assert size == batch.pieces.mask.sum()
    if len(batch.pieces.ids) > 1:
        return
    left, own, right = (_pieces(encoder, words) for words in _sides(example))
    row = batch.pieces.ids[0].tolist()
    (window,) = windows_of(
        len(left), len(own), len(right), capacity=LIMIT - 2, context=context, overlap=5
    )
    assert row == [2, *[*left, *own, *right][window.start : window.end], 3]
    assert batch.pieces.ids.flatten()[batch.pieces.places].tolist() == own


@cache
def _with_context(bert: Path, context: int) -> Encoder:
    return build(bert, ["transformer"], NONE, context=context)


def _sides(example: Example) -> list[tuple[str, ...]]:
    return [example.left, example.words, example.right]


def _pieces(encoder: Encoder, words: tuple[str, ...]) -> list[int]:
    assert encoder.transformer is not None
    known = encoder.transformer.pieces.pieces_of(words)
    return [piece for word in words for piece in known[word]]


@torch.no_grad()
def test_only_context_within_the_budget_is_encoded(bert: Path) -> None:
    base = Example(("the", "ab"), left=("q",) * 9, right=("r",) * 9)
    far = replace(base, left=("z", *base.left[1:]), right=(*base.right[:-1], "z"))
    near = replace(base, left=(*base.left[:-1], "z"))
    for context, sees_far, sees_near in [(0, False, False), (6, False, True), (18, True, True)]:
        encoder = build(bert, ["transformer"], NONE, context=context)
        vectors = encoder(encoder.prepare([base, far, near])).features
        assert torch.equal(vectors[0], vectors[1]) != sees_far
        assert torch.equal(vectors[0], vectors[2]) != sees_near


def test_neighbour_sentences_are_encoded_as_far_as_they_fit(bert: Path) -> None:
    encoder = build(bert, ["transformer"], NONE, neighbour_sentences=1)
    assert encoder.context_words == LIMIT - 2
    rows_ = [WordRow(["the", "ab"]), WordRow(["q"]), WordRow(["r", "z"] * LIMIT), WordRow(["ab"])]
    first, second, *_ = examples_of(
        Document.from_rows(rows_), context_words=encoder.context_words, neighbour_sentences=1
    )
    assert first.right == ("q",)
    batch = encoder.prepare([first, second]).pieces
    assert batch is not None
    shown = [row[mask].tolist()[1:-1] for row, mask in zip(batch.ids, batch.mask, strict=True)]
    assert shown[0] == _pieces(encoder, ("the", "ab", "q"))
    assert shown[1] == _pieces(encoder, ("the", "ab", "q", *["r", "z"] * LIMIT))[: LIMIT - 2]


def test_separators_are_those_of_the_tokenizer(bert: Path) -> None:
    encoder = build(bert, ["transformer"], NONE, neighbour_sentences=2, separators=True)
    batch = encoder.prepare([Example(("the", "ab"), left=("q",), right=("r", "z"))]).pieces
    assert batch is not None
    cls, sep = SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")
    sides = [_pieces(encoder, words) for words in (("q",), ("the", "ab"), ("r", "z"))]
    assert batch.ids.tolist() == [[cls, *sides[0], sep, *sides[1], sep, *sides[2], sep]]


@torch.no_grad()
@pytest.mark.parametrize("count", [LIMIT - 3, LIMIT - 2, LIMIT - 1, 60, 1500])
def test_a_sentence_of_any_length_is_encoded_completely(bert: Path, count: int) -> None:
    encoder = build(bert, ["transformer"], NONE, context=4)
    words = tuple(string.ascii_lowercase[number**2 % 26] for number in range(count))
    example = Example(words, left=("the",) * 9, right=("the",) * 9)
    got = encoder(encoder.prepare([example]))
    assert got.lengths.tolist() == [count]
    plain = _plain(bert)
    windows = windows_of(9, count, 9, capacity=LIMIT - 2, context=4, overlap=5)
    everything = _pieces(encoder, (*example.left, *words, *example.right))
    rows_ = torch.tensor([[2, *everything[window.start : window.end], 3] for window in windows])
    states = plain(rows_).last_hidden_state[:, 1:-1]
    kept = [
        row[window.kept_start - window.start : window.kept_end - window.start]
        for row, window in zip(states, windows, strict=True)
    ]
    close(got.features[0], torch.cat(kept))
    assert encoder.sizes([example]) == [sum(w.end - w.start + 2 for w in windows)]


@pytest.mark.parametrize("layout", [padded, packed])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
@settings(max_examples=30)
@given(lengths=RAGGED)
def test_recurrent_networks_equal_those_of_torch(
    layout: Any, cell: Cell, lengths: list[int]
) -> None:
    torch.manual_seed(0)
    net = BiRNN(cell=cell, input_dim=3, dim=8)
    theirs = {"lstm": nn.LSTM, "gru": nn.GRU}[cell](3, 4, bidirectional=True)
    for half, suffix in [(net.forwards[0], ""), (net.backwards[0], "_reverse")]:
        for name, parameter in half.named_parameters():
            getattr(theirs, name + suffix).data.copy_(parameter.data)
    items = torch.randn(sum(lengths), 3)
    got = net(items, layout(lengths)).split(lengths)
    for own, sequence in zip(got, items.split(lengths), strict=True):
        if len(sequence):
            close(own, theirs(sequence)[0])


def test_fusion_none_concatenates_and_projects_linearly() -> None:
    one, two = torch.randn(4, 3), torch.randn(4, 2)
    identity = Fusion(FusionSettings(kind="none"), transformer_dim=3, other_dim=2)
    assert torch.equal(identity(one, [two], None), torch.cat([one, two], dim=1))
    mapped = Fusion(FusionSettings(kind="none", dim=5), transformer_dim=3, other_dim=2)
    assert mapped.project is not None
    close(mapped(one, [two], None), mapped.project(torch.cat([one, two], dim=1)))


@torch.no_grad()
@given(st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=6))
def test_a_passage_encoded_at_once_equals_its_sentences_encoded_alone(
    bert: Path, sentences: list[list[str]]
) -> None:
    encoder = _with_passages(bert)
    document = Document.from_rows([WordRow(words) for words in sentences])
    examples = examples_of(document, context_words=0, passage_words=encoder.passage_words)
    together = encoder(encoder.prepare(examples))
    for number, example in enumerate(examples):
        alone = encoder(encoder.prepare([example]))
        close(together.features[number, : len(example.words)], alone.features[0])
        assert together.sentence is not None
        assert alone.sentence is not None
        close(together.sentence[number], alone.sentence[0])


@torch.no_grad()
def test_a_passage_is_one_row(bert: Path) -> None:
    encoder, plain = _with_passages(bert), _plain(bert)
    words = [["the", "ab"], ["x", "y", "z"], ["q"], ["a"] * 9, ["the"]]
    document = Document.from_rows([WordRow(own) for own in words])
    examples = examples_of(document, context_words=0, passage_words=encoder.passage_words)
    assert encoder.together(examples) == [[0, 1, 2], [3, 4]]
    batch = encoder.prepare(examples)
    assert batch.pieces is not None
    assert len(batch.pieces.ids) == 2
    features = encoder(batch).features
    whole = tuple(word for own in words[:3] for word in own)
    states = plain(torch.tensor([[2, *_pieces(encoder, whole), 3]])).last_hidden_state[0, 1:-1]
    close(torch.cat([features[0, :2], features[1, :3], features[2, :1]]), states)


@cache
def _with_passages(bert: Path) -> Encoder:
    return build(bert, ["transformer"], NONE, passage=10)


def test_two_kinds_of_context_are_refused(bert: Path) -> None:
    with pytest.raises(ConfigError, match="one of them must be 0"):
        build(bert, ["transformer"], NONE, passage=10, context=4)
    for other in ("passage", "context"):
        with pytest.raises(
            ConfigError, match="with neighbour_sentences, context and passage must be 0"
        ):
            build(bert, ["transformer"], NONE, neighbour_sentences=True, **{other: 4})
