"""Target distributions of spans, and the label loss."""

import pytest
import torch

from spandet.layers.label_losses import label_loss, smoothed_labels
from spandet.spans.flat import FlatSpans
from support.sentence_toys import Item, gold_spans


def targets(smoothing: float, *items: Item) -> dict[tuple[int, ...], list[float]]:
    pairs = [[a, b] for a in range(6) for b in range(a + 1, 7)]
    spans = FlatSpans(torch.zeros(len(pairs), dtype=torch.long), torch.tensor(pairs))
    rows = smoothed_labels(spans, gold_spans(list(items)), 4, smoothing).tolist()
    return {(a, b): row for (a, b), row in zip(pairs, rows, strict=True)}


def test_smoothing_gives_a_share_to_the_spans_one_word_off() -> None:
    got = targets(0.2, (1, 3, 2), (4, 5, 1))
    assert got[1, 3] == pytest.approx([0.2, 0, 0.8, 0])
    for near in ((0, 3), (2, 3), (1, 2), (1, 4)):
        assert got[near] == pytest.approx([0.95, 0, 0.05, 0])
    assert got[0, 2] == got[0, 6] == [1, 0, 0, 0]
    assert all(sum(row) == pytest.approx(1) for row in got.values())
    hard = targets(0.0, (1, 3, 2), (4, 5, 1))
    assert hard[1, 3] == [0, 0, 1, 0]
    assert sum(row[0] < 1 for row in hard.values()) == 2


def test_one_hot_targets_and_labels_give_the_same_loss() -> None:
    logits, labels = torch.randn(5, 4), torch.tensor([0, 3, 0, 1, 2])
    sentence = torch.tensor([0, 0, 1, 1, 1])
    one_hot = torch.nn.functional.one_hot(labels, 4).float()
    for none_weight in (0.3, "balanced"):
        by_label = label_loss([logits], labels, sentence, none_weight)
        by_share = label_loss([logits], one_hot, sentence, none_weight)
        torch.testing.assert_close(by_label.total, by_share.total)
        assert by_label.count == by_share.count
