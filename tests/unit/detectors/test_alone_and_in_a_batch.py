"""A sentence alone and in a batch: the same losses, for every detector and every choice."""

from __future__ import annotations

import pytest
import torch

from spandet.detectors import Detector
from support.detector_variants import Variant, gold, rngs, variants, words
from support.sentence_toys import Item

SENTENCES: dict[int, list[Item]] = {
    5: [(0, 2, 1), (1, 2, 2)],
    9: [],
    1: [],
    14: [(0, 12, 3), (13, 14, 1), (3, 4, 2)],
    2: [(1, 2, 1)],
    0: [],
}
"""Length → entities."""
Parts = dict[str, tuple[float, float]]


def losses(made: Detector, *lengths: int, width: int = 0) -> Parts:
    items = gold(*(SENTENCES[length] for length in lengths))
    # Padding may be anything: here it looks like an entity.
    items.spans[~items.mask] = torch.tensor([0, min(2, width)])
    items.labels[~items.mask] = 3
    with torch.no_grad():
        found = made(words(*lengths, width=width), items, rngs(*lengths))
    return {name: (loss.total.item(), loss.count.item()) for name, loss in found.items()}


def summed(parts: list[Parts]) -> Parts:
    return {
        name: (sum(part[name][0] for part in parts), sum(part[name][1] for part in parts))
        for name in parts[0]
    }


BY_SENTENCE = [one for one in variants() if getattr(one.settings, "none_weight", 0) != "batch"]
"""All variants whose loss weights do not depend on the batch."""


@pytest.mark.parametrize("variant", BY_SENTENCE, ids=str)
def test_the_losses_of_a_batch_are_those_of_its_sentences(variant: Variant) -> None:
    made = variant.build()
    alone = {length: losses(made, length) for length in SENTENCES}
    for lengths in ((9, 5), tuple(SENTENCES)):
        batch = losses(made, *lengths, width=17)
        for name, wanted in summed([alone[length] for length in lengths]).items():
            assert batch[name] == pytest.approx(wanted, rel=2e-4, abs=1e-4), (name, lengths)
