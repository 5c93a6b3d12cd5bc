"""The detector with preset `paper` equals the transcription of the paper."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from papers import proposer_regressor_paper as paper
from papers import proposer_regressor_parts as parts
from papers.proposer_regressor_parts import Array
from papers.proposer_regressor_weights import array, bigru, linear, model_of
from spandet.detectors.proposer_regressor.cells import cell_widths
from spandet.detectors.proposer_regressor.detector import ProposerRegressor
from spandet.detectors.proposer_regressor.head import HeadOutput, SpanScores
from spandet.encoding.characters import Characters
from spandet.encoding.fusion import Fusion
from spandet.encoding.part_settings import CharacterSettings, FusionSettings
from spandet.encoding.transformer import pool
from spandet.inference.decoding import decode
from spandet.inference.engine import to_numpy
from spandet.inference.model_settings import ModelSettings
from spandet.layers.sequences import padded
from spandet.spans.assignment import assign
from spandet.spans.choices import Matching, Rest
from spandet.tensors import WordFeatures
from support.sentence_toys import Item, gold_spans, word_features

DIM, HEADS, LABELS = 6, 2, 4
CLOSE = 1e-9
ONE_PAST = np.array([0.0, 1.0])
"""Ends of ours are one past the last word."""
CORPUS: dict[int, list[Item]] = {
    5: [(0, 3, 1), (1, 2, 2), (2, 5, 3), (2, 5, 1)],  # nested, crossing, two labels on a span
    1: [(0, 1, 3)],
    4: [],
    2: [(0, 1, 1), (1, 2, 2), (0, 2, 3)],  # more entities than proposals
    3: [(0, 3, 2)],
}
"""Number of words → entities: start, end (one past the last word), label."""
ABLATIONS: list[dict[str, Any]] = [
    {},
    {"use_backward": False},
    {"attention": "dot"},
    {"use_category_embedding": False},
    {"use_location_iteration": False},
    {"use_logits_iteration": False},
    {"kernels": []},
    {"kernels": [2, 3]},
    {"layers": 1, "heads": 3},
]


def settings_of(**options: Any) -> ModelSettings:
    chosen = {"name": "proposer-regressor", "preset": "paper", "heads": HEADS, **options}
    return ModelSettings.resolve({"encoder": {"characters": {}}, "detector": chosen})


@cache
def detector(seed: int = 0, **options: Any) -> ProposerRegressor:
    torch.manual_seed(seed)
    values: Any = settings_of(**options).detector
    made = ProposerRegressor(values, dim=DIM, sentence_dim=0, labels=LABELS).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)
        cast("Tensor", made.head.label_change[2].bias)[0] += 0.6  # some are no entities
    return made


def words() -> WordFeatures:
    made = word_features(*CORPUS, dim=DIM)
    return WordFeatures(made.features.double(), made.mask)


def sentences(given_: WordFeatures) -> list[list[Array]]:
    rows = zip(given_.features, given_.lengths.tolist(), strict=True)
    return [[word.detach().numpy() for word in row[:length]] for row, length in rows]


def entities_of(sentence: list[Array]) -> list[paper.Entity]:
    return [(start, end - 1, label) for start, end, label in CORPUS[len(sentence)]]


# The fast code against the paper


def close(got: Tensor, wanted: list[Array]) -> None:
    np.testing.assert_allclose(got.detach().numpy(), np.array(wanted), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("options", ABLATIONS, ids=str)
def test_every_state_equals_the_transcription(options: dict[str, Any]) -> None:
    """Eqs. 5 to 20: queries, locations and category logarithms, stage by stage."""
    made, given_ = detector(**frozen(options)), words()
    model = model_of(made)
    fast = made._states(given_, len(made.layers))
    for row, sentence in enumerate(sentences(given_)):
        for state, wanted in zip(fast, paper.states(model, sentence), strict=True):
            own = slice(len(sentence))
            close(state.queries[row, own], [p.q for p in wanted])
            close(state.soft_spans[row, own], [p.n + ONE_PAST for p in wanted])
            close(state.label_logits[row, own], [p.c for p in wanted])


def frozen(options: dict[str, Any]) -> dict[str, Any]:
    """For a cache."""
    return {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}


def output_of(made: ProposerRegressor, given_: WordFeatures) -> HeadOutput:
    output: HeadOutput = made.head(made._states(given_, len(made.layers))[-1], given_)
    return output


def span_probs(scores: SpanScores, length: int) -> Tensor:
    """Probabilities of all spans of a sentence, in the paper's order, for each proposal."""
    every = [(s, e + 1) for s in range(length) for e in range(s, length)]
    spans = torch.tensor(every).expand(length, -1, -1)
    return (scores.at(spans) - scores.log_totals()[:, None]).exp()


@pytest.mark.parametrize("options", ABLATIONS[:3], ids=str)
def test_distributions_targets_and_loss_equal_the_transcription(options: dict[str, Any]) -> None:
    """Eqs. 21 to 25 and algorithm 1."""
    made, given_ = detector(**frozen(options)), words()
    output, gold = output_of(made, given_), gold_spans(*CORPUS.values())
    targets = made.loss.targets(output, gold)
    total = 0.0
    for row, sentence in enumerate(sentences(given_)):
        wanted = paper.outputs(model_of(made), sentence)
        here = torch.zeros_like(output.mask)
        here[row, : len(sentence)] = True
        close(output.label_logits[here].softmax(dim=-1), [own.p_c for own in wanted])
        spans = span_probs(output.span_scores.where(here), len(sentence))
        close(spans, [np.array(list(own.p_n.values())) for own in wanted])
        entities = entities_of(sentence)
        beta = paper.assignment(wanted, entities)
        found = [None if j < 0 else entities[j] for j in targets[here].tolist()]
        assert found == beta
        total += paper.loss(wanted, beta)
    losses = made(given_, gold, [])
    assert losses.keys() == {"label", "span"}
    got = sum(loss.total.item() for loss in losses.values())
    assert got == pytest.approx(total, rel=0, abs=1e-8)
    assert {loss.count.item() for loss in losses.values()} == {len(CORPUS)}


SPANS = [(0, 0), (0, 1), (1, 1)]


def random_output(rng: np.random.Generator) -> parts.Distributions:
    """Some labels and spans are much likelier than others."""
    p_n = rng.dirichlet([0.2] * len(SPANS)) + 1e-6
    return parts.Distributions(
        rng.dirichlet([0.5] * LABELS) + 1e-6, dict(zip(SPANS, p_n.tolist(), strict=True))
    )


def test_matching_is_algorithm_1() -> None:
    """With the preset's two options; with any other, some of these sentences would differ."""
    rng = np.random.default_rng(0)
    others: dict[tuple[Matching, Rest], int] = {("relative", "greedy"): 0, ("raw", "none"): 0}
    for _ in range(80):
        count, number = int(rng.integers(1, 5)), int(rng.integers(0, 4))
        every = [random_output(rng) for _ in range(count)]
        items = [(*span, int(rng.integers(1, LABELS))) for span in SPANS[:number]]
        costs = [[paper.matching_cost(own, item) for item in items] for own in every]
        table = np.array(costs).reshape(count, number)
        none_costs = np.array([paper.matching_cost(own, None) for own in every])
        wanted = [-1 if own is None else items.index(own) for own in paper.assignment(every, items)]
        assert assign(table, none_costs, matching="raw", rest="greedy").tolist() == wanted
        for matching, rest in others:
            found = assign(table, none_costs, matching=matching, rest=rest).tolist()
            others[matching, rest] += found != wanted
    assert min(others.values()) > 5
    chosen: Any = settings_of().detector
    assert (chosen.matching, chosen.rest) == ("raw", "greedy")


def loss_of(made: ProposerRegressor, sentence: list[Array]) -> float:
    every = paper.outputs(model_of(made), sentence)
    return paper.loss(every, paper.assignment(every, entities_of(sentence)))


def slope(made: ProposerRegressor, sentence: Tensor, place: Tensor, index: int) -> float:
    """The derivative of the paper's loss by one number, from finite differences."""
    step, values = 1e-6, place.detach().view(-1)
    before, found = values[index].item(), []
    for value in (before + step, before - step):
        values[index] = value
        found.append(loss_of(made, [word.detach().numpy() for word in sentence]))
    values[index] = before
    return (found[0] - found[1]) / (2 * step)


@pytest.mark.parametrize("length", [5, 4, 1])
def test_gradients_equal_finite_differences_of_the_transcription(length: int) -> None:
    """Of words and of some weights of every part, against finite differences of eq. 25."""
    made = detector(seed=3)
    features = words().features[list(CORPUS).index(length), :length].clone().requires_grad_()
    mask = torch.ones(1, length, dtype=torch.bool)
    losses = made(WordFeatures(features[None], mask), gold_spans(CORPUS[length]), [])
    total = torch.stack([loss.total for loss in losses.values()]).sum()
    places = [features, *made.parameters()]
    grads = torch.autograd.grad(total, places, allow_unused=True)
    rng = np.random.default_rng(length)
    for place, grad in list(zip(places, grads, strict=True))[:: 9 - length]:
        index = int(rng.integers(place.numel()))
        wanted = slope(made, features, place, index)
        got = 0.0 if grad is None else grad.view(-1)[index].item()
        assert got == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def found_by(made: ProposerRegressor, given_: WordFeatures) -> list[set[paper.Entity]]:
    """The predicted entities of each sentence, with the preset's decoding."""
    found = decode(to_numpy(made.detect(given_, [])), settings_of().decoding)
    rows: list[set[paper.Entity]] = [set() for _ in given_.mask]
    items = zip(found.spans.tolist(), found.labels.tolist(), strict=True)
    for row, ((start, end), label) in zip(found.sentence.tolist(), items, strict=True):
        assert (start, end - 1, label) not in rows[row]  # a set: nothing comes twice
        rows[row].add((start, end - 1, label))
    return rows


def test_prediction_is_algorithm_2() -> None:
    """What decoding gives with the preset, in sentences of a batch; and with nothing to tune."""
    decoding, given_ = settings_of().decoding, words()
    assert (decoding.threshold, decoding.min_odds) == (0.0, 1.0)
    emitted = silent = 0
    for seed in range(6):
        made = detector(seed)
        for sentence, got in zip(sentences(given_), found_by(made, given_), strict=True):
            every = paper.outputs(model_of(made), sentence)
            wanted = paper.prediction(every)
            assert got == wanted
            emitted += len(wanted)
            silent += len(every) - len(wanted)
    assert emitted > 9
    assert silent > 9


@st.composite
def annotated(draw: st.DrawFn) -> tuple[int, list[Item]]:
    """A length, and entities anywhere: nested, crossing, with two labels, or none."""
    length = draw(st.integers(1, 5))
    starts, labels = st.integers(0, length - 1), st.integers(1, LABELS - 1)
    entity = starts.flatmap(lambda s: st.tuples(st.just(s), st.integers(s + 1, length), labels))
    return length, draw(st.lists(entity, max_size=4, unique=True))


@given(annotated(), st.integers(0, 9))
@settings(max_examples=20)
def test_loss_and_prediction_of_any_sentence_equal_the_transcription(
    sentence: tuple[int, list[Item]], seed: int
) -> None:
    (length, items), made = sentence, detector(seed)
    torch.manual_seed(seed)
    given_ = WordFeatures(
        torch.randn(1, length, DIM, dtype=torch.float64), torch.ones(1, length, dtype=torch.bool)
    )
    every = paper.outputs(model_of(made), sentences(given_)[0])
    wanted = paper.loss(every, paper.assignment(every, [(s, e - 1, t) for s, e, t in items]))
    losses = made(given_, gold_spans(items), [])
    assert sum(loss.mean.item() for loss in losses.values()) == pytest.approx(wanted, abs=1e-9)
    assert found_by(made, given_)[0] == paper.prediction(every)


# 3.1: the sentence encoder


def test_characters_are_read_as_in_the_paper() -> None:
    """Eq. 2, where a recipe reads characters: a BiGRU, the mean, and no sign for the end."""
    chosen = settings_of().encoder.characters
    assert chosen is not None
    torch.manual_seed(1)
    small = chosen.model_copy(update={"embedding_dim": 3, "dim": 4})
    part = Characters(small, ("a", "b", "c")).double().eval()
    spellings = ["abca", "c", "ba", "a?"]
    got = part(part.prepare(spellings))
    table = array(part.embedding.weight)
    rows = {letter: table[number] for number, letter in enumerate("abc", start=2)}
    wanted = [
        paper.character_embedding(bigru(part.net), [rows.get(x, table[0]) for x in spelling])
        for spelling in spellings
    ]
    close(got, wanted)


def test_pieces_become_words_as_in_the_paper() -> None:
    """Eq. 3."""
    pieces = torch.randn(5, 3, dtype=torch.float64)
    got = pool(pieces, torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 2, 3]), "mean")
    groups = [array(pieces[0:2]), array(pieces[2:3]), array(pieces[3:5])]
    close(got, [paper.piece_embedding(list(group)) for group in groups])


def test_parts_are_fused_as_in_the_paper() -> None:
    """Eqs. 1 and 4; ours stand in another order, so columns of the first weights do, too."""
    torch.manual_seed(2)
    sizes = {"bert": 3, "char": 2, "word": 4, "pos": 2}  # as ours stand
    chosen = FusionSettings(kind="bigru", recurrent_dim=22, dim=5)
    fusion = Fusion(chosen, transformer_dim=3, other_dim=8).double().eval()
    lengths = [3, 1]
    vectors = {name: torch.randn(4, size, dtype=torch.float64) for name, size in sizes.items()}
    bert, *others = vectors.values()
    got = fusion(bert, others, padded(lengths))
    assert fusion.net is not None
    assert fusion.project is not None
    order = np.concatenate([np.arange(3, 5), np.arange(3), np.arange(5, 11)])  # char, bert, …
    for gru in (*fusion.net.forwards, *fusion.net.backwards):
        assert isinstance(gru, nn.GRU)
        weight = gru.state_dict()["weight_ih_l0"]
        weight.copy_(weight[:, torch.from_numpy(order)])
    tokens = [
        paper.token_embedding(
            *(array(vectors[name][i]) for name in ("char", "bert", "word", "pos"))
        )
        for i in range(4)
    ]
    net, out = bigru(fusion.net), linear(fusion.project)
    wanted = [
        h for own in (tokens[:3], tokens[3:]) for h in paper.sentence_representation(net, out, own)
    ]
    close(got, wanted)


@pytest.mark.parametrize("kernels", [(), (2,), (2, 2), (2, 3), (2, 3, 2)])
def test_cell_widths_equal_eq_5(kernels: tuple[int, ...]) -> None:
    """Eq. 5."""
    wanted = [paper.vision(kernels, level) for level in range(len(kernels) + 1)]
    assert list(cell_widths(kernels)) == wanted


def test_the_settings_of_characters_are_only_filled_in() -> None:
    """A preset does not switch a part on, and a recipe's own values stay."""
    chosen = {"name": "proposer-regressor", "preset": "paper"}
    without = ModelSettings.resolve({"encoder": {"hashed": {}}, "detector": chosen})
    assert without.encoder.characters is None
    own = {"encoder": {"characters": {"end_sign": True, "dim": 8}}, "detector": chosen}
    assert ModelSettings.resolve(own).encoder.characters == CharacterSettings(
        cell="gru", dim=8, dropout=0.0
    )
