"""Gold labels of spans, and the cross-entropy of label logits."""

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
    """The label of the entity on exactly each span, the first of several; 0 for no entity."""
    if not gold.labels.shape[1]:
        return torch.zeros_like(spans.sentence)
    equal = (spans.spans[:, None] == gold.spans[spans.sentence]).all(dim=-1)
    equal = equal & gold.mask[spans.sentence]
    label = gold.labels[spans.sentence, equal.int().argmax(dim=1)]
    return torch.where(equal.any(dim=1), label, 0)


def smoothed_labels(
    spans: FlatSpans, gold: GoldSpans, labels: int, smoothing: float
) -> Float[Tensor, "span label"]:
    """Target distribution of each span (boundary smoothing, Zhu and Li, ACL 2022).

    A share `smoothing` of an entity's label goes to the four spans with one boundary one word off.
    """

    def targets(shift: tuple[int, int]) -> Tensor:
        shifted = FlatSpans(spans.sentence, spans.spans + spans.spans.new_tensor(shift))
        return F.one_hot(span_labels(shifted, gold), labels).float()

    exact = targets((0, 0))
    if not smoothing:
        return exact
    near = torch.stack([targets(shift) for shift in _NEIGHBOURS]).mean(dim=0)
    return exact.lerp(near, smoothing)


def label_loss(
    layers: Sequence[Float[Tensor, "item label"]],
    targets: Int[Tensor, " item"] | Float[Tensor, "item label"],
    sentence: Int[Tensor, " item"],
    none_weight: NoneWeight,
) -> Loss:
    """Cross-entropy, averaged over layers (DiffusionNER, section 4.2, training objective: δ = c).

    Items that are no entity have the weight `none_weight`; 1 in the paper.
    """
    labels = targets if targets.ndim == 1 else targets.argmax(dim=1)
    weights = label_weights(labels, sentence, none_weight)
    sums = [(weights * F.cross_entropy(one, targets, reduction="none")).sum() for one in layers]
    total = torch.stack(sums).sum() / len(layers)
    return Loss.from_sum(total, len(labels))


def label_weights(
    labels: Int[Tensor, " item"], sentence: Int[Tensor, " item"], none_weight: NoneWeight
) -> Float[Tensor, " item"]:
    """Loss weight of each item: 1 for entities, `none_weight` for the others.

    "balanced": all others of a sentence together weigh as much as its entities. "batch": all others
    of the batch weigh as much as its entities (the released code), so that the loss of a sentence
    depends on the rest of its batch. Without entities all weigh 1.
    """
    if not isinstance(none_weight, str):
        return torch.where(labels > 0, 1.0, none_weight)
    if none_weight == "batch":
        sentence = torch.zeros_like(sentence)
    batch = 1 + int(sentence.max()) if len(sentence) else 0
    entities = torch.bincount(sentence[labels > 0], minlength=batch)
    others = torch.bincount(sentence[labels == 0], minlength=batch)
    balance = torch.where(entities > 0, entities / others.clamp(min=1), 1.0)
    return torch.where(labels > 0, 1.0, balance[sentence])
