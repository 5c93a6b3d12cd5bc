"""Gold labels of spans, and the cross-entropy of labels."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from spandet.spans.flat import FlatSpans
from spandet.tensors import GoldSpans, Loss

NoneWeight = float | Literal["balanced", "batch"]

_NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))


def span_labels(spans: FlatSpans, gold: GoldSpans) -> Int[Tensor, " span"]:
    """The label of the entity that each span equals, the first if there are several; 0 for none."""
    if not gold.labels.shape[1]:
        return torch.zeros_like(spans.sentence)
    equal = (spans.spans[:, None] == gold.spans[spans.sentence]).all(dim=-1)
    equal = equal & gold.mask[spans.sentence]
    label = gold.labels[spans.sentence, equal.int().argmax(dim=1)]
    return torch.where(equal.any(dim=1), label, 0)


def smoothed_labels(
    spans: FlatSpans, gold: GoldSpans, labels: int, smoothing: float
) -> Float[Tensor, "span label"]:
    """What each span should be taken for (boundary smoothing, Zhu and Li, ACL 2022).

    An entity's label loses the share `smoothing` to the four spans that miss it by a word.
    """

    def named(shift: tuple[int, int]) -> Tensor:
        moved = FlatSpans(spans.sentence, spans.spans + spans.spans.new_tensor(shift))
        return F.one_hot(span_labels(moved, gold), labels).float()

    exact = named((0, 0))
    if not smoothing:
        return exact
    near = torch.stack([named(shift) for shift in _NEIGHBOURS]).mean(dim=0)
    return exact.lerp(near, smoothing)


def label_loss(
    layers: Sequence[Float[Tensor, "item label"]],
    targets: Int[Tensor, " item"] | Float[Tensor, "item label"],
    sentence: Int[Tensor, " item"],
    nil: NoneWeight,
) -> Loss:
    """The term δ = c of the loss of section 4.2: cross-entropy, a mean over layers.

    Items that are no entity weigh `nil`; 1 in the paper.
    """
    labels = targets if targets.ndim == 1 else targets.argmax(dim=1)
    weights = label_weights(labels, sentence, nil)
    parts = [(weights * F.cross_entropy(own, targets, reduction="none")).sum() for own in layers]
    total = torch.stack(parts).sum() / len(layers)
    return Loss.from_sum(total, len(labels))


def label_weights(
    labels: Int[Tensor, " item"], sentence: Int[Tensor, " item"], nil: NoneWeight
) -> Float[Tensor, " item"]:
    """1 for entities. "balanced": all others of a sentence weigh as much as its entities.

    "batch": all others of the batch weigh as much as its entities (the released code), so that the
    loss of a sentence depends on what it is batched with. Where there is no entity, all weigh 1.
    """
    if not isinstance(nil, str):
        return torch.where(labels > 0, 1.0, nil)
    if nil == "batch":
        sentence = torch.zeros_like(sentence)
    batch = 1 + int(sentence.max()) if len(sentence) else 0
    entities = torch.bincount(sentence[labels > 0], minlength=batch)
    others = torch.bincount(sentence[labels == 0], minlength=batch)
    balance = torch.where(entities > 0, entities / others.clamp(min=1), 1.0)
    return torch.where(labels > 0, 1.0, balance[sentence])
