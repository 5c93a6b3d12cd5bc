"""The denoiser: masks of its attention, pointers, losses and proposals."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from spandet.detectors.boundary_diffusion.denoiser import Denoiser
from spandet.detectors.boundary_diffusion.pointers import Pointers, boundary_loss, with_pointers
from spandet.detectors.boundary_diffusion.settings import DenoiserShape
from spandet.detectors.boundary_diffusion.span_encoder import sinusoids
from spandet.layers.label_losses import label_loss, label_weights
from spandet.layers.span_scorer import ProposalScores, SpanScorer
from spandet.seeding import generator
from spandet.tensors import GoldSpans, WordFeatures

DIM = 8
SHAPE = DenoiserShape(
    dim=DIM,
    layers=2,
    heads=2,
    hidden=16,
    dropout=0.0,
    self_attention=True,
    cross_attention=True,
    pooling="mean+ends",
    pointer="bilinear",
    reach=3,
    time="mlp",
    time_first=True,
    slot_codes=False,
)


def built(**changes: Any) -> Denoiser:
    torch.manual_seed(0)
    made = Denoiser(replace(SHAPE, **changes), words_dim=DIM)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)
    return made.eval()


def sentence(real: int, width: int) -> WordFeatures:
    mask = torch.arange(width)[None] < real
    features = torch.randn(1, 64, DIM, generator=generator("words"))[:, :width]
    return WordFeatures(features * mask[..., None], mask)


SPANS = torch.tensor([[[0, 2], [1, 4], [4, 5], [0, 5]]])
LEVELS = torch.tensor([[300]])
REAL = torch.ones(1, 4, dtype=torch.bool)


def hidden_of(made: Denoiser, words: WordFeatures, spans: torch.Tensor, **options: Any) -> Any:
    options = {"levels": LEVELS, "mask": REAL} | options
    (layer,) = made(made.read(words), spans, options["levels"], options["mask"])
    return layer


VARIANTS: list[dict[str, Any]] = [
    {},
    {"self_attention": False},
    {"cross_attention": False},
    {"self_attention": False, "cross_attention": False},
    {"pooling": "max"},
    {"pooling": "mean"},
    {"pooling": "ends", "pointer": "additive", "reach": 0, "slot_codes": True},
    {"time": "raw", "time_first": False},
    {"time": "alternating", "time_first": False, "pointer": "mlp", "reach": 0},
    {"pointer": "perceptron"},
    {"time": "none"},
]


@pytest.mark.parametrize("changes", VARIANTS)
def test_padding_changes_nothing(changes: dict[str, Any]) -> None:
    made = built(**changes)
    bare = hidden_of(made, sentence(5, 5), SPANS)
    spans = torch.cat([SPANS, torch.tensor([[[0, 1], [2, 9]]])], dim=1)
    mask = torch.tensor([[True] * 4 + [False] * 2])
    padded = hidden_of(made, sentence(5, 9), spans, mask=mask)
    torch.testing.assert_close(padded.slots[:, :4], bare.slots)
    for name in ("first_logits", "last_logits"):
        got, wanted = getattr(padded.pointers, name), getattr(bare.pointers, name)
        torch.testing.assert_close(got[:, :4, :5], wanted)
        assert (got[:, :, 5:].exp() == 0).all()


@pytest.mark.parametrize("changes", VARIANTS)
def test_slots_of_different_draws_do_not_attend_to_each_other(changes: dict[str, Any]) -> None:
    made, words = built(**changes), sentence(5, 6)
    other = SPANS.flip(1)
    levels, mask = torch.tensor([[300, 20]]), REAL.repeat(1, 2)
    both = hidden_of(made, words, torch.cat([SPANS, other], dim=1), levels=levels, mask=mask)
    for number, spans in enumerate((SPANS, other)):
        own = hidden_of(made, words, spans, levels=levels[:, number : number + 1])
        torch.testing.assert_close(both.slots[:, 4 * number : 4 * number + 4], own.slots)


def moves(made: Denoiser, slot: int) -> bool:
    """Whether changing the last slot's span changes another slot."""
    words = sentence(5, 5)
    changed = SPANS.clone()
    changed[0, 3] = torch.tensor([3, 4])
    before, after = (hidden_of(made, words, spans).slots[0, slot] for spans in (SPANS, changed))
    return not torch.allclose(before, after)


def test_slots_depend_on_each_other_through_self_attention_only() -> None:
    assert moves(built(), 0)
    assert not moves(built(self_attention=False), 0)


def test_the_order_of_slots_matters_only_with_slot_codes() -> None:
    order = torch.tensor([2, 0, 3, 1])
    for codes in (False, True):
        made, words = built(slot_codes=codes), sentence(5, 5)
        straight = hidden_of(made, words, SPANS).slots
        shuffled = hidden_of(made, words, SPANS[:, order]).slots
        assert torch.allclose(shuffled, straight[:, order], atol=1e-5) != codes


def test_slots_depend_on_the_noise_level_unless_time_is_none() -> None:
    for time, depends in (("mlp", True), ("raw", True), ("alternating", True), ("none", False)):
        made, words = built(time=time), sentence(5, 5)
        low, high = (
            hidden_of(made, words, SPANS, levels=torch.tensor([[level]])).slots
            for level in (5, 900)
        )
        assert torch.allclose(low, high) != depends


def test_sinusoids_are_sines_then_cosines() -> None:
    got = sinusoids(torch.tensor([0, 3]), 4)
    assert got[0].tolist() == [0, 0, 1, 1]
    angles = 3 * torch.tensor([1.0, 1e-4])
    torch.testing.assert_close(got[1], torch.cat([angles.sin(), angles.cos()]))
    assert sinusoids(torch.tensor([1]), 5).shape == (1, 5)


def test_the_best_pair_of_boundaries_equals_brute_force() -> None:
    first, last = (torch.randn(3, 6, 7, generator=generator(name)) for name in ("first", "last"))
    got = Pointers(first, last).ordered()
    for row in range(3):
        for slot in range(6):
            scores = {
                (i, j + 1): (first[row, slot, i] + last[row, slot, j]).item()
                for i in range(7)
                for j in range(i, 7)
            }
            assert tuple(got[row, slot].tolist()) == max(scores, key=scores.__getitem__)


def test_independent_pointers_may_be_inverted() -> None:
    first, last = torch.tensor([[[0.0, 1, 5]]]), torch.tensor([[[4.0, 1, 2]]])
    assert Pointers(first, last).independent().tolist() == [[[2, 1]]]
    assert Pointers(first, last).ordered().tolist() == [[[2, 3]]]


def one_entity() -> GoldSpans:
    return GoldSpans(torch.tensor([[[1, 3]]]), torch.tensor([[2]]), torch.tensor([[True]]))


def test_boundary_loss_by_hand() -> None:
    pointers = Pointers(torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
    targets = torch.tensor([[0, -1]])
    uniform = boundary_loss([pointers], targets, one_entity(), "nll")
    assert uniform.total.item() == pytest.approx(2 * torch.tensor(4.0).log().item())
    each = boundary_loss([pointers, pointers], targets, one_entity(), "bce")
    assert each.total.item() == pytest.approx(8 * torch.tensor(2.0).log().item())
    assert uniform.count == each.count == 1
    high = pointers.first_logits.clone()
    high[0, 0, 1] = 50
    right = Pointers(high, high.roll(1, dims=-1))
    assert boundary_loss([right], targets, one_entity(), "nll").total.item() < 1e-6
    none = boundary_loss([pointers], torch.full((1, 2), -1), one_entity(), "nll")
    assert (none.total.item(), none.count.item()) == (0, 0)


def test_label_weights_balance_within_a_sentence() -> None:
    labels = torch.tensor([1, 0, 0, 0, 2, 1, 0, 0, 0])
    sentence_of = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2])
    balanced = label_weights(labels, sentence_of, "balanced")
    assert balanced.tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 1, 1, 2, 1, 1])
    assert label_weights(labels, sentence_of, 0.5).tolist()[:2] == [1, 0.5]
    loss = label_loss([torch.zeros(9, 4)] * 2, labels, sentence_of, "balanced")
    assert loss.mean.item() == pytest.approx(8 / 9 * torch.tensor(4.0).log().item())


@pytest.mark.parametrize("pointer_probs", [(0.9, 0.8), (1.0, 1.0), (0.2, 0.9)])
def test_the_papers_score_is_a_third_of_the_sum(pointer_probs: tuple[float, float]) -> None:
    probs = torch.tensor([[[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.0, 1.0, 0.0]]])
    got = with_pointers(probs, torch.tensor([[pointer_probs] * 3]))
    assert got[0, 0, 1].item() == pytest.approx((0.7 + sum(pointer_probs)) / 3)
    assert got[0, 2, 1].item() == pytest.approx((1 + sum(pointer_probs)) / 3)
    assert got[0, 1].tolist() == pytest.approx([0.6, 0.3, 0.1])
    torch.testing.assert_close(got.sum(dim=-1), torch.ones(1, 3))
    assert (got >= 0).all()


def test_proposals_are_the_best_spans_and_repeat_in_short_sentences() -> None:
    torch.manual_seed(0)
    scorer = SpanScorer(dim=DIM, inner=4, dropout=0.0)
    words = WordFeatures(
        torch.randn(2, 4, DIM), torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    )
    scores: ProposalScores = scorer(words)
    assert torch.isfinite(scores.logits).sum(dim=(1, 2)).tolist() == [10, 3]
    spans, probs = scores.best(12)
    assert len({tuple(span) for span in spans[0, :10].tolist()}) == 10
    assert torch.equal(spans[1, :3], spans[1, 3:6])
    assert (probs[:, :3].diff(dim=1) <= 0).all()
    starts, ends = spans.unbind(dim=-1)
    assert ((starts < ends) & (ends <= words.lengths[:, None])).all()
    first, last = spans[0, 0, 0], spans[0, 0, 1] - 1
    assert scores.logits[0].max() == scores.logits[0, first, last]


def test_the_proposal_loss_is_over_all_spans_and_averaged_over_words() -> None:
    logits = torch.full((1, 3, 3), -torch.inf).masked_fill(torch.ones(3, 3).triu().bool(), 0)
    loss = ProposalScores(logits).loss(one_entity())
    assert loss.total.item() == pytest.approx(6 * torch.tensor(2.0).log().item())
    assert loss.count == 3
