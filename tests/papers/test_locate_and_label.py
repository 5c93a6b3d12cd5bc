"""Locate and Label with the preset `paper` equals the transcription to nine digits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from papers import locate_and_label_paper as paper
from papers.locate_and_label_paper import Array, Entity, Mlp, Model, Proposal, Span
from spandet.detectors.locate_and_label.detector import LocateAndLabel
from spandet.detectors.locate_and_label.settings import LocateAndLabelSettings
from spandet.inference.decoding import DecodingSettings, decode
from spandet.inference.engine import to_numpy
from spandet.inference.model_settings import ModelSettings
from spandet.layers.span_head import SpanHead
from spandet.seeding import generator
from spandet.tensors import GoldSpans, SpanPredictions, WordFeatures, total_loss
from support.sentence_toys import gold_spans, word_features

DIM, LABELS, LENGTHS = 6, 4, (1, 2, 3, 5, 7)
SENTENCES: list[tuple[int, list[Entity]]] = [
    (1, []),
    (1, [(0, 0, 1)]),
    (5, []),
    (7, [(0, 6, 1), (1, 4, 2), (2, 2, 3)]),  # nested
    (8, [(0, 4, 1), (3, 7, 2)]),  # crossing
    (9, [(3, 3, 2), (3, 3, 1), (2, 7, 1), (2, 7, 2)]),  # two labels on a span
    (12, [(0, 9, 3), (10, 11, 1)]),  # longer than every seed; seven of ten words are exactly α1
    (10, [(2, 7, 1)]),  # six words, which no seed has
]
"""Words and entities, whose last word is included as in the paper."""
ABLATIONS: list[dict[str, Any]] = [
    {},
    {"use_filter": False},
    {"use_regressor": False},
    {"use_filter": False, "use_regressor": False},
    {"soft_exponent": 0.0},
]


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def preset(**changes: Any) -> tuple[LocateAndLabelSettings, DecodingSettings]:
    detector = {"name": "locate-and-label", "preset": "paper", "lengths": LENGTHS, **changes}
    chosen = ModelSettings.resolve({"encoder": {"hashed": {}}, "detector": detector})
    assert isinstance(chosen.detector, LocateAndLabelSettings)
    return chosen.detector, chosen.decoding


def fast_model(**changes: Any) -> LocateAndLabel:
    made = LocateAndLabel(preset(**changes)[0], dim=DIM, sentence_dim=DIM, labels=LABELS)
    with torch.no_grad():  # large enough to move boundaries out of sentences
        for number, parameter in enumerate(made.parameters()):
            parameter.normal_(std=0.6, generator=generator("weights", number))
    return made.eval()


def plain_settings(**changes: Any) -> paper.Settings:
    return paper.Settings(lengths=LENGTHS, eta=changes.get("soft_exponent", 1.0))


def plain_model(made: LocateAndLabel) -> Model:
    """The same weights, in the paper's order: [h^p; left word; right word]."""

    def mlp(head: SpanHead) -> Mlp:
        first = (head.inside, head.left, head.right)
        arrays = (torch.cat([layer.weight.T for layer in first]), head.inside.bias)
        both = (*arrays, head.out.weight.T, head.out.bias)
        return Mlp(*(array.detach().numpy() for array in both))

    return Model(
        mlp(made.filter) if made.filter else None,
        mlp(made.regressor) if made.regressor else None,
        mlp(made.classifier),
    )


def batch_of(sentences: list[tuple[int, list[Entity]]]) -> tuple[WordFeatures, GoldSpans]:
    words = word_features(*(n for n, _ in sentences), dim=DIM, width=14)
    gold = gold_spans(*([(st, ed + 1, y) for st, ed, y in own] for _, own in sentences))
    return words, gold


def rngs(count: int) -> list[torch.Generator]:
    return [generator("draw", number) for number in range(count)]


def random_sentences(seed: int) -> list[tuple[int, list[Entity]]]:
    dice = random.Random(seed)
    found: list[tuple[int, list[Entity]]] = []
    for _ in range(4):
        n = dice.randint(1, 11)
        pairs = [sorted((dice.randrange(n), dice.randrange(n))) for _ in range(dice.randint(0, 4))]
        found.append((n, [(st, ed, dice.randint(1, LABELS - 1)) for st, ed in pairs]))
    return found


CORPORA = [SENTENCES, *map(random_sentences, range(4))]


def inclusive(spans: torch.Tensor | np.ndarray) -> list[Span]:
    return [(start, end - 1) for start, end in spans.tolist()]


def sampled(
    made: LocateAndLabel, words: WordFeatures, gold: GoldSpans
) -> list[list[tuple[Span, bool, Entity | None]]]:
    """Of each sentence the seeds that are trained on, whether positive, and their entities."""
    sample = made._sample(words, gold, rngs(len(words.mask)))
    rows: list[list[tuple[Span, bool, Entity | None]]] = [[] for _ in words.mask]
    matched = zip(inclusive(sample.match.spans), sample.match.labels.tolist(), strict=True)
    entities = [(*span, label) if label else None for span, label in matched]
    for sentence, seed, positive, entity in zip(
        sample.seeds.sentence.tolist(),
        inclusive(sample.seeds.spans),
        sample.positive.tolist(),
        entities,
        strict=True,
    ):
        rows[sentence].append((seed, positive, entity))
    return rows


@pytest.mark.parametrize("corpus", CORPORA)
def test_seeds_and_what_they_are_paired_with(corpus: list[tuple[int, list[Entity]]]) -> None:
    alpha_1 = plain_settings().alpha_1
    rows = sampled(fast_model(), *batch_of(corpus))
    for (n, entities), row in zip(corpus, rows, strict=True):
        seeds = paper.seed_spans(n, LENGTHS)
        injected = [entity[:2] for entity in paper.injected_entities(seeds, entities)]
        pairs = {b: paper.paired_entity(b, entities) for b in [*seeds, *injected]}
        positive = {b for b, entity in pairs.items() if paper.is_positive(b, entity, alpha_1)}
        drawn = [seed for seed, *_ in row]
        assert len(drawn) == len(set(drawn))
        assert {seed for seed, is_positive, _ in row if is_positive} == positive
        assert all(pairs[seed] == entity for seed, _, entity in row)
        wanted = paper.number_of_negatives(len(positive), len(pairs) - len(positive))
        assert len(drawn) == len(positive) + wanted


@pytest.mark.parametrize("changes", ABLATIONS[:4])
def test_states_of_all_seeds(changes: dict[str, Any]) -> None:
    made, settings = fast_model(**changes), plain_settings()
    words, _ = batch_of(SENTENCES)
    model = plain_model(made)
    got = made.detect(words, rngs(len(SENTENCES)), keep_all=True)
    located, regressed = got.trace
    assert located.scores is not None
    for row, (n, _) in enumerate(SENTENCES):
        h = words.features[row, :n].numpy()
        for place, b in enumerate(paper.seed_spans(n, LENGTHS)):
            p_filter = paper.filter_probability(model.filter, h, b) if model.filter else 1.0
            assert located.scores[row, place].item() == pytest.approx(p_filter, abs=1e-12)
            assert got.mask[row, place].item() == (p_filter > settings.filter_threshold)
            t = paper.offsets(model.regressor, h, b)
            moved = [b[0] + t[0], b[1] + 1 + t[1]]
            assert regressed.spans[row, place].tolist() == pytest.approx(moved, abs=1e-9)
            span = paper.adjusted_span(b, t, n)
            assert inclusive(got.spans[row, place : place + 1]) == [span]
            p = paper.category_probabilities(model.classifier, h, span)
            assert got.label_probs[row, place].tolist() == pytest.approx(p.tolist(), abs=1e-12)


@pytest.mark.parametrize("changes", ABLATIONS)
@pytest.mark.parametrize("corpus", CORPORA[:2])
def test_losses(changes: dict[str, Any], corpus: list[tuple[int, list[Entity]]]) -> None:
    made, settings = fast_model(**changes), plain_settings(**changes)
    words, gold = batch_of(corpus)
    losses = made(words, gold, rngs(len(corpus)))
    got = {name: loss.mean.item() for name, loss in losses.items()}
    parts = np.array(
        [
            paper.sentence_losses(
                plain_model(made), h, [(b, entity) for b, _, entity in row], settings
            )
            for h, row in zip(_vectors(words), sampled(made, words, gold), strict=True)
        ]
    )
    filtered, regressed, classified = parts.mean(
        axis=0
    )  # a sum per sentence; a batch is their mean
    regression = got.get("boundary", 0.0) + got.get("overlap", 0.0)
    assert got.get("filter", 0.0) == pytest.approx(settings.lambda_1 * filtered, rel=1e-9)
    assert regression == pytest.approx(settings.lambda_2 * regressed, rel=1e-9)
    assert got["label"] == pytest.approx(settings.lambda_3 * classified, rel=1e-9)
    total = paper.total_loss(filtered, regressed, classified, settings)
    assert total_loss(losses).item() == pytest.approx(total, rel=1e-9)


def _vectors(words: WordFeatures) -> list[Array]:
    pairs = zip(words.features, words.lengths.tolist(), strict=True)
    return [features[:n].detach().numpy() for features, n in pairs]


@pytest.mark.parametrize("number", [3, 5, 6])
def test_gradients_agree_with_finite_differences(number: int) -> None:
    made, settings, step = fast_model(), plain_settings(), 1e-6
    words, gold = batch_of([SENTENCES[number]])
    (row,) = sampled(made, words, gold)
    examples = [(b, entity) for b, _, entity in row]
    words = replace(words, features=words.features.requires_grad_())
    total_loss(made(words, gold, rngs(1))).backward()
    gradient = words.features.grad
    assert gradient is not None
    (h,) = _vectors(words)
    model = plain_model(made)

    def loss(changed: Array) -> float:
        return paper.total_loss(
            *paper.sentence_losses(model, changed, examples, settings), settings
        )

    dice = random.Random(number)
    for _ in range(6):
        i, j = dice.randrange(len(h)), dice.randrange(DIM)
        change = np.zeros_like(h)
        change[i, j] = step
        slope = (loss(h + change) - loss(h - change)) / (2 * step)
        assert gradient[0, i, j].item() == pytest.approx(slope, rel=1e-5, abs=1e-5)


def _decoded(predictions: SpanPredictions, decoding: DecodingSettings) -> list[dict[Entity, float]]:
    found = decode(to_numpy(predictions), decoding)
    rows: list[dict[Entity, float]] = [{} for _ in predictions.mask]
    for sentence, span, label, score in zip(
        found.sentence.tolist(),
        inclusive(found.spans),
        found.labels.tolist(),
        found.scores.tolist(),
        strict=True,
    ):
        assert (*span, label) not in rows[sentence]
        rows[sentence][*span, label] = score
    return rows


@pytest.mark.parametrize("u", [0.9, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_soft_nms_of_random_proposals(seed: int, u: float) -> None:
    """Few different spans, so that many proposals agree; some have two labels."""
    dice = random.Random(seed)
    spans = [sorted((dice.randrange(5), dice.randrange(5))) for _ in range(14)]
    probs = torch.randn(1, 14, LABELS, generator=generator("probs", seed)).mul(2).softmax(dim=-1)
    table = torch.tensor([[[st, ed + 1] for st, ed in spans]])
    predictions = SpanPredictions(table, probs, torch.ones(1, 14, dtype=torch.bool))
    proposals: list[Proposal] = [
        (st, ed, int(p.argmax()), float(p.max()))
        for (st, ed), p in zip(spans, probs[0].numpy(), strict=True)
    ]
    decoding = preset()[1].model_copy(update={"nms_decay": u})
    wanted = paper.entities_of(proposals, replace(plain_settings(), u=u))
    assert _decoded(predictions, decoding) == [pytest.approx(wanted, rel=1e-9)]


@pytest.mark.parametrize("changes", ABLATIONS[:4])
def test_entities_of_sentences(changes: dict[str, Any]) -> None:
    made, settings = fast_model(**changes), replace(plain_settings(), delta=0.3)
    words, _ = batch_of(SENTENCES)
    decoding = preset()[1].model_copy(update={"threshold": 0.3})
    got = _decoded(made.detect(words, rngs(len(SENTENCES))), decoding)
    model = plain_model(made)
    wanted = [
        paper.entities_of(paper.proposals(model, h, settings), settings) for h in _vectors(words)
    ]
    assert got == [pytest.approx(entities, rel=1e-9) for entities in wanted]
    assert sum(map(len, got)) > 5


def test_the_preset_has_the_numbers_of_table_6() -> None:
    detector, decoding = preset()
    table = plain_settings()
    assert (detector.focal, detector.soft_exponent) == (table.gamma, table.eta)
    assert (detector.seed_overlap, detector.label_overlap) == (table.alpha_1, table.alpha_2)
    assert (detector.filter_weight, detector.label_weight) == (table.lambda_1, table.lambda_3)
    assert detector.boundary_weight == detector.overlap_weight == table.lambda_2
    assert detector.filter_threshold == table.filter_threshold
    assert (decoding.nms_decay, decoding.nms_overlap) == (table.u, table.k)
    assert decoding.threshold == table.delta


def test_worked_examples() -> None:
    assert paper.seed_spans(6, (1, 3))[-4:] == [(0, 2), (1, 3), (2, 4), (3, 5)]
    assert paper.iou((0, 2), (1, 3)) == 0.5
    assert not paper.is_positive((0, 9), (2, 8, 1), 0.7)
    assert paper.target_offsets((2, 4), (1, 4, 1)) == (-1, 0)
    assert paper.adjusted_span((1, 3), (-0.4, 1.6), 6) == (1, 5)
    assert paper.adjusted_span((1, 3), (-0.4, 1.6), 5) == (1, 4)
    assert paper.adjusted_span((1, 3), (2.7, -0.6), 9) == (1, 3)
    assert paper.overlap_loss((1, 3), (0.0, 0.5), (1, 4)) == pytest.approx(0.125)
    assert paper.overlap_loss((0, 1), (0.0, 0.0), (3, 4)) == pytest.approx(1.2)
    assert paper.boundary_loss((0, 0), (0.5, -2.0)) == pytest.approx(1.625)
    assert paper.soft_weight(0.6, positive=False, eta=1) == pytest.approx(0.4)
    assert paper.filter_loss(0.9, 1, positive=True, gamma=2) == pytest.approx(0.00105, rel=1e-2)
    assert paper.filter_loss(0.9, 1, positive=False, gamma=2) == pytest.approx(1.865, rel=1e-3)
    spans: list[Proposal] = [(0, 4, 1, 0.9), (0, 3, 1, 0.85), (8, 8, 1, 0.8)]
    assert [round(s[3], 4) for s in paper.soft_nms(spans, paper.Settings())] == [0.9, 0.8, 0.765]


def test_why_equation_15_is_not_computed_as_printed() -> None:
    with pytest.raises(ZeroDivisionError):
        paper.printed_overlap_loss((3, 3), (3, 3))
    assert paper.overlap_loss((3, 3), (0.0, 0.0), (3, 3)) == 0
