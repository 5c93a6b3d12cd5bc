"""The set loss: worked examples, small probabilities, and independence of the batch."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from spandet.detectors.proposer_regressor.head import EntityHead, HeadOutput, SpanScores
from spandet.detectors.proposer_regressor.set_loss import SetLoss
from spandet.layers.regressor import Proposals
from support.sentence_toys import Item, gold_spans, word_features

DIM, LABELS = 6, 4


def set_loss(**options: Any) -> SetLoss:
    plain = {"matching": "relative", "rest": "none", "reduction": "proposals", "none_weight": 1.0}
    return SetLoss(**{**plain, **options})


def output(logits: Tensor, scores: Tensor, length: int, max_width: int | None = None) -> HeadOutput:
    """Proposals that score a span by its first word only."""
    count = len(logits)
    return HeadOutput(
        logits[None],
        SpanScores(
            scores[None],
            torch.zeros_like(scores)[None],
            torch.zeros(1, count),
            torch.zeros(1, count, 2),
            torch.full((1, count), length),
            max_width,
        ),
        torch.ones(1, count, dtype=torch.bool),
    )


def by_hand() -> HeadOutput:
    """Two words, so three spans: (0, 1), (0, 2) and (1, 2), scored 0, 0 and log 2."""
    logits = torch.tensor([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]]).log()
    scores = torch.tensor([[0.0, 2.0], [0.0, 2.0]])
    scores[:, 1] = scores[:, 1].log()
    return output(logits, scores, 2)


def test_the_sum_of_label_and_span_by_hand() -> None:
    """P(span) is ¼ for (0, 2); the second proposal predicts "no entity"."""
    loss, gold = set_loss(), gold_spans([(0, 2, 1)])
    targets = loss.targets(by_hand(), gold)
    # Costs: log 4 + log 4 against log 2 for the first, log 10 + log 4 against log 1.25.
    assert targets.tolist() == [[0, -1]]
    parts = loss.losses(by_hand(), gold, targets)
    log = torch.log(torch.tensor([4.0, 1.25, 4.0]))
    torch.testing.assert_close(parts["label"].mean, (log[0] + log[1]) / 2)
    torch.testing.assert_close(parts["span"].mean, log[2] / 2)
    light = set_loss(none_weight=0.5).losses(by_hand(), gold, targets)
    torch.testing.assert_close(light["label"].mean, (log[0] + log[1] / 2) / 2)


def test_without_entities_all_targets_are_none() -> None:
    loss, gold = set_loss(rest="greedy"), gold_spans([])
    targets = loss.targets(by_hand(), gold)
    assert targets.tolist() == [[-1, -1]]
    parts = loss.losses(by_hand(), gold, targets)
    torch.testing.assert_close(parts["label"].total, torch.tensor([2.0, 1.25]).log().sum())
    assert parts["span"].total == 0
    assert parts["span"].count == 2


def test_more_entities_than_proposals_are_not_all_assigned() -> None:
    entities: list[Item] = [(0, 1, 1), (1, 2, 1), (0, 2, 2), (0, 1, 2)]
    targets = set_loss(rest="greedy").targets(by_hand(), gold_spans(entities))
    assert (targets >= 0).all()
    assert len(set(targets[0].tolist())) == 2


def test_very_small_probabilities_have_a_gradient() -> None:
    logits = torch.tensor([[300.0, 0.0, 0.0]], requires_grad=True)
    scores = torch.tensor([[-300.0, 300.0]], requires_grad=True)
    gold = gold_spans([(0, 1, 1)])
    improbable = output(logits, scores, 2)
    assert logits.softmax(dim=-1)[0, 1] == 0
    loss = set_loss()
    parts = loss.losses(improbable, gold, loss.targets(improbable, gold))
    (parts["label"].mean + parts["span"].mean).backward()
    assert logits.grad is not None
    assert scores.grad is not None
    assert logits.grad[0, 1] == pytest.approx(-1)
    assert scores.grad[0, 0] == pytest.approx(-1)


@pytest.mark.parametrize("copies", [1, 2])
def test_an_entity_wider_than_max_width_is_assigned_to_no_proposal(copies: int) -> None:
    narrow = replace(by_hand(), span_scores=replace(by_hand().span_scores, max_width=1))
    gold = gold_spans([(0, 2, 1), (1, 2, 2)])
    loss = set_loss(rest="greedy")
    targets = loss.targets(narrow, gold, copies)
    assert not (targets == 0).any()
    assert (targets == 1).any()
    assert torch.isfinite(loss.losses(narrow, gold, targets)["span"].total)


def toy_batch(*lengths: int) -> HeadOutput:
    torch.manual_seed(3)
    head = EntityHead(dim=DIM, labels=LABELS, tied=False, max_width=3)
    words = word_features(*lengths, dim=DIM)
    places = torch.arange(words.mask.shape[1])[:, None] + torch.tensor([0.0, 1.0])
    logits = words.features[..., :LABELS]
    state = Proposals(words.features, places.expand(len(lengths), -1, -1), logits, words.mask)
    result: HeadOutput = head(state, words)
    return result


ENTITIES: dict[int, list[Item]] = {5: [(0, 2, 1), (1, 2, 3)], 3: [], 0: [], 4: [(0, 4, 2)]}


@pytest.mark.parametrize("reduction", ["proposals", "sentences", "sum"])
@pytest.mark.parametrize("rest", ["greedy", "none"])
@pytest.mark.parametrize("copies", [1, 3])
def test_a_batch_is_the_sum_of_its_sentences(reduction: str, rest: str, copies: int) -> None:
    loss = set_loss(reduction=reduction, rest=rest)

    def sums(*lengths: int) -> Tensor:
        own = toy_batch(*lengths)
        gold = gold_spans(*(ENTITIES[length] for length in lengths))
        parts = loss.losses(own, gold, loss.targets(own, gold, copies))
        values = [parts[name] for name in ("label", "span")]
        return torch.stack([torch.stack([part.total, part.count]) for part in values])

    alone = torch.stack([sums(length) for length in ENTITIES]).sum(dim=0)
    torch.testing.assert_close(sums(*ENTITIES), alone)
    assert alone[0, 1] == {"proposals": 12, "sentences": 3, "sum": 3}[reduction]


def test_reductions_differ_by_what_they_divide() -> None:
    own, gold = toy_batch(5, 3), gold_spans(ENTITIES[5], [])
    targets = set_loss().targets(own, gold)

    def label(reduction: str) -> Tensor:
        return set_loss(reduction=reduction).losses(own, gold, targets)["label"].mean

    first = set_loss().losses(toy_batch(5), gold_spans(ENTITIES[5]), targets[:1])["label"].total
    second = set_loss().losses(toy_batch(3), gold_spans([]), targets[1:, :3])["label"].total
    torch.testing.assert_close(label("proposals"), (first + second) / 8)
    torch.testing.assert_close(label("sentences"), (first / 5 + second / 3) / 2)
    torch.testing.assert_close(label("sum"), (first + second) / 2)
