"""Locate and Label: the worked examples of its specification, and laws."""

from typing import Any

import pytest
import torch

from spandet.config import Settings
from spandet.detectors.locate_and_label.detector import Adjusted, LocateAndLabel
from spandet.detectors.locate_and_label.seeds import Match, Sample
from spandet.detectors.locate_and_label.settings import PRESETS, LocateAndLabelSettings
from spandet.layers.span_view import SpanView
from spandet.seeding import generator
from spandet.spans.flat import FlatSpans
from spandet.tensors import GoldSpans, Losses, WordFeatures, total_loss

DIM, LABELS = 8, 4


def detector(**settings: Any) -> LocateAndLabel:
    torch.manual_seed(0)
    values = LocateAndLabelSettings.build(settings, where="detector")
    made = LocateAndLabel(values, dim=DIM, sentence_dim=DIM, labels=LABELS)
    with torch.no_grad():
        for parameter in made.parameters():  # large enough to change boundaries and for high scores
            parameter.normal_(std=0.5)
    return made.eval()


def words(*lengths: int, width: int = 0, sentence: bool = False) -> WordFeatures:
    width = max(width, *lengths)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    rows = [torch.randn(64, DIM, generator=generator("row", n))[:width] for n in lengths]
    features = torch.stack(rows) * mask[..., None]
    return WordFeatures(features, mask, features.sum(dim=1) if sentence else None)


def gold(*sentences: list[tuple[int, int, int]]) -> GoldSpans:
    most = max(len(items) for items in sentences)
    table = torch.tensor([items + [(0, 1, 0)] * (most - len(items)) for items in sentences])
    table = table.reshape(len(sentences), most, 3).long()
    return GoldSpans(table[..., :2], table[..., 2], table[..., 2] > 0)


def rngs(count: int) -> list[torch.Generator]:
    return [generator("rng", index) for index in range(count)]


def sampled(made: LocateAndLabel, length: int, *items: tuple[int, int, int]) -> dict[Any, Any]:
    sample = made._sample(words(length), gold(list(items)), rngs(1))
    targets = sample.match.spans - sample.seeds.spans
    rows = zip(sample.seeds.spans.tolist(), sample.positive.tolist(), targets.tolist(), strict=True)
    return {tuple(span): (positive, tuple(target)) for span, positive, target in rows}


def test_stage_one_targets_of_the_specification() -> None:
    seeds = sampled(detector(negative_extra=999), 8, (1, 5, 1))
    assert seeds[1, 4] == (True, (0, 1))
    assert seeds[0, 5] == (True, (1, 0))
    assert seeds[2, 5] == (True, (-1, 0))
    assert not seeds[2, 6][0]


def test_overlap_of_exactly_the_threshold_is_negative() -> None:
    made = detector(lengths=[10], negative_extra=999, rescue_gold=False, inject_gold=False)
    assert not sampled(made, 10, (2, 9, 1))[0, 10][0]


def test_gold_that_no_seed_equals_is_injected_once() -> None:
    with_gold = sampled(detector(lengths=[1], rescue_gold=False), 9, (2, 6, 1), (3, 4, 2))
    assert with_gold[2, 6] == (True, (0, 0))
    without = sampled(detector(lengths=[1], inject_gold=False), 9, (2, 6, 1))
    assert (2, 6) not in without


@pytest.mark.parametrize("name", ["paper", "released-code"])
def test_a_span_with_two_labels_is_injected_once_with_its_first(name: str) -> None:
    preset = {**PRESETS[name]["detector"], "lengths": [1]}
    truth = gold([(2, 6, 1), (3, 4, 2), (2, 6, 3), (4, 7, 3)], [(2, 6, 3), (2, 6, 1)])

    def injected(**changes: Any) -> list[tuple[int, list[int], int]]:
        sample = detector(**preset, **changes)._sample(words(9, 9), truth, rngs(2))
        longer = sample.seeds.ends - sample.seeds.starts > 1
        chosen = (sample.seeds.sentence, sample.seeds.spans, sample.match.labels)
        return list(zip(*(values[longer].tolist() for values in chosen), strict=True))

    assert injected() == [(0, [2, 6], 1), (0, [4, 7], 3), (1, [2, 6], 3)]
    del preset["inject_once"]
    assert len(injected()) == 5


def test_seeds_that_reach_over_the_end_are_clipped_or_left_out() -> None:
    clipped = sampled(detector(lengths=[1, 3], negative_extra=99), 6)
    assert (4, 6) in clipped
    assert len(clipped) == 11
    whole = sampled(detector(lengths=[1, 3], negative_extra=99, clip_seeds=False), 6)
    assert sorted(clipped.keys() - whole.keys()) == [(4, 6)]
    assert not sampled(detector(lengths=[3], negative_extra=99, clip_seeds=False), 2)


def test_an_entity_too_long_for_every_seed_still_has_a_positive_one() -> None:
    rescued = sampled(detector(lengths=[2], inject_gold=False), 9, (0, 8, 1))
    assert any(positive for positive, _ in rescued.values())
    lost = sampled(detector(lengths=[2], inject_gold=False, rescue_gold=False), 9, (0, 8, 1))
    assert not any(positive for positive, _ in lost.values())


def test_negatives_are_five_per_positive_and_two_more() -> None:
    made = detector(lengths=[1], **PRESETS["paper"]["detector"])
    seeds = sampled(made, 40, (3, 4, 1), (7, 8, 2))
    assert sum(positive for positive, _ in seeds.values()) == 2
    assert len(seeds) == 2 + 5 * 2 + 2
    assert len(sampled(made, 40)) == 2


@pytest.mark.parametrize(
    ("overlap", "positive", "weight"),
    [(0.8, True, 0.8), (0.6, False, 0.4), (0.75, False, 0.25), (0.0, False, 1.0)],
)
def test_soft_weights(overlap: float, positive: bool, weight: float) -> None:
    got = detector()._soft_weights(torch.tensor([overlap]), torch.tensor([positive]))
    assert got.item() == pytest.approx(weight)
    hard = detector(soft_exponent=0)._soft_weights(
        torch.tensor([overlap]), torch.tensor([positive])
    )
    assert hard.item() == 1


@pytest.mark.parametrize(("positive", "loss"), [(True, 0.00105), (False, 1.865)])
def test_focal_loss_of_the_filter(positive: bool, loss: float) -> None:
    made = detector()
    logits = torch.tensor([0.9]).logit()
    match = Match(torch.tensor([float(positive)]), torch.tensor([[0, 1]]), torch.tensor([1]))
    seeds = FlatSpans(torch.tensor([0]), torch.tensor([[0, 1]]))
    sample = Sample(seeds, match, torch.tensor([positive]), sentences=1)
    assert made._filter_loss(logits, sample).mean.item() == pytest.approx(loss, rel=1e-2)


def test_boundary_and_overlap_loss() -> None:
    made = detector(boundary_weight=1, overlap_weight=1)
    seeds = FlatSpans(torch.tensor([0]), torch.tensor([[1, 4]]))
    match = Match(torch.tensor([0.75]), torch.tensor([[1, 5]]), torch.tensor([1]))
    sample = Sample(seeds, match, torch.tensor([True]), sentences=1)
    yes = torch.tensor([True])
    losses = made._regressor_losses(torch.tensor([[0.5, -1.0]]), yes, sample)
    assert losses["boundary"].mean.item() == pytest.approx(0.125 + 1.5)
    losses = made._regressor_losses(torch.tensor([[0.0, 0.5]]), yes, sample)
    assert losses["overlap"].mean.item() == pytest.approx(0.125)


@pytest.mark.parametrize(("exponent", "share"), [(0, 1.0), (1, 0.75), (2, 0.75**2)])
def test_soft_offsets_follow_the_exponent(exponent: float, share: float) -> None:
    made = detector(boundary_weight=1, soft_offsets=True, soft_exponent=exponent)
    seeds = FlatSpans(torch.tensor([0]), torch.tensor([[1, 4]]))
    match = Match(torch.tensor([0.75]), torch.tensor([[1, 5]]), torch.tensor([1]))
    sample = Sample(seeds, match, torch.tensor([True]), sentences=1)
    losses = made._regressor_losses(torch.tensor([[0.5, -1.0]]), torch.tensor([True]), sample)
    assert losses["boundary"].mean.item() == pytest.approx(share * (0.125 + 1.5))


@pytest.mark.parametrize(("label_illegal", "counted"), [(True, 3), (False, 2)])
def test_discarded_spans_are_negatives_or_no_examples(label_illegal: bool, counted: int) -> None:
    """The released code masks them out of the label loss."""
    made = detector(illegal="discard", label_illegal=label_illegal)
    seeds = FlatSpans(torch.zeros(3, dtype=torch.long), torch.tensor([[0, 1], [1, 2], [2, 3]]))
    offsets = torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 9.0]])
    adjusted = made._adjusted(seeds, offsets, SpanView(words(3)))
    assert adjusted.legal.tolist() == [True, True, False]
    nothing = Match(torch.zeros(3), torch.zeros(3, 2, dtype=torch.long), seeds.sentence)
    sample = Sample(seeds, nothing, torch.zeros(3, dtype=torch.bool), sentences=1)
    loss = made._label_loss(torch.zeros(3, LABELS), adjusted, sample, gold([(5, 6, 1)]))
    assert loss.count.item() == counted
    assert loss.mean.item() == pytest.approx(torch.tensor(float(LABELS)).log().item())
    assert PRESETS["released-code"]["detector"]["label_illegal"] is False


def test_a_near_miss_is_a_light_negative_and_a_hit_on_any_entity_is_positive() -> None:
    made = detector()
    truth = gold([(0, 4, 2), (5, 6, 3)])
    adjusted = Adjusted(
        FlatSpans(torch.zeros(2, dtype=torch.long), torch.tensor([[0, 3], [5, 6]])),
        torch.tensor([True, True]),
    )
    seeds = FlatSpans(torch.zeros(2, dtype=torch.long), torch.tensor([[0, 3], [0, 3]]))
    match = Match(torch.tensor([0.75, 0.75]), torch.tensor([[0, 4]] * 2), torch.tensor([2, 2]))
    sample = Sample(seeds, match, torch.tensor([True, True]), sentences=1)
    logits = torch.zeros(2, LABELS)
    logits[1, 3] = 50  # high score for the entity that it was regressed to, which is not its seed's
    loss = made._label_loss(logits, adjusted, sample, truth)
    assert loss.total.item() == pytest.approx(
        0.25 * torch.tensor(float(LABELS)).log().item(), rel=1e-4
    )
    assert loss.count.item() == 2


@pytest.mark.parametrize(("probability", "kept"), [(0.17, True), (0.16, False)])
def test_the_filter_gates_at_one_sixth(probability: float, kept: bool) -> None:
    made = detector(lengths=[1])
    assert made.filter is not None
    torch.nn.init.zeros_(made.filter.out.weight)
    torch.nn.init.constant_(made.filter.out.bias, torch.tensor(probability).logit().item())
    assert made.detect(words(1), rngs(1)).mask.any().item() == kept


def parts(losses: Losses) -> dict[str, tuple[float, float]]:
    return {name: (loss.total.item(), loss.count.item()) for name, loss in losses.items()}


VARIANTS: list[dict[str, Any]] = [
    {},
    {"use_filter": False},
    {"use_regressor": False},
    {"use_filter": False, "use_regressor": False},
    {"soft_exponent": 0, "label_loss": "focal", "reduction": "sum"},
    {"pairing": "seed", "soft_offsets": True},
    {"offset_activation": "sigmoid_n", "illegal": "discard", "pairing": "positives"},
    {"offset_activation": "tanh_n", "sentence_feature": True, "eval_lengths": [1, 2]},
]


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_sentence_alone_is_the_same_as_in_a_padded_batch(settings: dict[str, Any]) -> None:
    made = detector(**settings)
    items: list[list[tuple[int, int, int]]] = [[(0, 2, 1), (1, 2, 2)], [], [(0, 12, 3)], []]
    lengths = (5, 1, 14, 0)
    together = made.detect(words(*lengths, width=17, sentence=True), rngs(4))
    sums: dict[str, tuple[float, float]] = {}
    for index, length in enumerate(lengths):
        alone = made.detect(
            words(length, width=max(length, 1), sentence=True), rngs(4)[index : index + 1]
        )
        real = together.mask[index]
        assert torch.equal(together.spans[index][real], alone.spans[0][alone.mask[0]])
        torch.testing.assert_close(
            together.label_probs[index][real], alone.label_probs[0][alone.mask[0]]
        )
        losses = made(
            words(length, width=max(length, 1), sentence=True),
            gold(items[index]),
            rngs(4)[index : index + 1],
        )
        for name, (total, count) in parts(losses).items():
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + total, before[1] + count)
    batch = parts(made(words(*lengths, width=17, sentence=True), gold(*items), rngs(4)))
    assert set(batch) == set(sums)
    for name, expected in sums.items():
        assert batch[name] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("settings", VARIANTS)
def test_predicted_spans_lie_in_their_sentence(settings: dict[str, Any]) -> None:
    lengths = torch.tensor([7, 3, 1])
    got = detector(**settings).detect(words(*lengths.tolist(), sentence=True), rngs(3))
    starts, ends = got.spans.unbind(dim=-1)
    fine = (starts >= 0) & (starts < ends) & (ends <= lengths[:, None])
    assert fine[got.mask].all()
    torch.testing.assert_close(
        got.label_probs[got.mask].sum(dim=-1), torch.ones(int(got.mask.sum()))
    )
    assert [stage.name for stage in got.trace] == ["seed", "adjusted"]


def test_no_gradient_passes_from_the_classifier_to_the_regressor() -> None:
    made = detector(boundary_weight=0, overlap_weight=0)
    total_loss(made(words(6), gold([(0, 2, 1)]), rngs(1))).backward()
    assert made.regressor is not None
    assert made.classifier.out.weight.grad is not None
    assert all(p.grad is None or not p.grad.any() for p in made.regressor.parameters())


def test_without_gold_there_is_a_loss_and_no_nan() -> None:
    losses = detector()(words(6, 0), gold([], []), rngs(2))
    assert losses["boundary"].count == 0
    assert torch.isfinite(total_loss(losses))
    assert isinstance(LocateAndLabelSettings(), Settings)
