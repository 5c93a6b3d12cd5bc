"""How wrong slots are: about boundaries, and about labels."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from spandet.layers.boundary_pointers import Pointers
from spandet.spans.flat import FlatSpans
from spandet.tensors import GoldSpans, Loss

PointerLoss = Literal["nll", "bce", "likelihood"]
NilWeight = float | Literal["balanced", "batch"]

_NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))


def boundary_loss(
    layers: Sequence[Pointers],
    targets: Int[Tensor, "batch span"],
    gold: GoldSpans,
    kind: PointerLoss,
    *,
    slots: Int[Tensor, ""] | None = None,
) -> Loss:
    """The terms δ = l, r of the loss of section 4.2, for the slots that have an entity to find.

    Args:
        layers: What the pointers say after each layer; the loss is a mean over these.
        targets: The entity of each slot; -1 for none.
        gold: The entities.
        kind: How a pointer is judged.
        slots: What the sum is divided by, if not by the number of slots with an entity.
    """
    sentence, slot = (targets >= 0).nonzero(as_tuple=True)
    spans = gold.spans[sentence, targets[sentence, slot]]
    parts = [
        _pointer_loss(logits[sentence, slot], right, kind)
        for layer in layers
        for logits, right in (
            (layer.first_logits, spans[:, 0]),
            (layer.last_logits, spans[:, 1] - 1),
        )
    ]
    total = torch.stack(parts).sum() / len(layers)
    return Loss.over(total, len(slot) if slots is None else slots)


def _pointer_loss(
    logits: Float[Tensor, "span word"], right: Int[Tensor, " span"], kind: PointerLoss
) -> Float[Tensor, ""]:
    """-log P of the right word.

    nll: P is a softmax over words. likelihood: it is a sigmoid, as printed, and P = 1 everywhere is
    best. bce: the words that are no boundary count too.
    """
    if kind == "nll":
        return F.cross_entropy(logits, right, reduction="sum")
    if kind == "likelihood":
        return -F.logsigmoid(logits.gather(1, right[:, None])).sum()
    target = F.one_hot(right, logits.shape[1]).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, target, reduction="sum")


def slot_labels(targets: Int[Tensor, "batch span"], gold: GoldSpans) -> Int[Tensor, "batch span"]:
    """The label of the entity that each slot has to find; 0 for none."""
    if not gold.labels.shape[1]:
        return torch.zeros_like(targets)
    return torch.where(targets >= 0, gold.labels.gather(1, targets.clamp(min=0)), 0)


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
    nil: NilWeight,
) -> Loss:
    """The term δ = c of the loss of section 4.2: cross-entropy, a mean over layers.

    Items that are no entity weigh `nil`; 1 in the paper.
    """
    labels = targets if targets.ndim == 1 else targets.argmax(dim=1)
    weights = label_weights(labels, sentence, nil)
    parts = [(weights * F.cross_entropy(own, targets, reduction="none")).sum() for own in layers]
    total = torch.stack(parts).sum() / len(layers)
    return Loss.over(total, len(labels))


def label_weights(
    labels: Int[Tensor, " item"], sentence: Int[Tensor, " item"], nil: NilWeight
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


def with_pointers(
    label_probs: Float[Tensor, "batch span label"], pointer_probs: Float[Tensor, "batch span 2"]
) -> Float[Tensor, "batch span label"]:
    """Label probabilities in which the best label has a third of the sum q of section 4.3.

    q is the probability of the label, of the first and of the last word together; the paper's
    filter q > φ is then a threshold of φ / 3. The other labels share the rest as before. Slots that
    are taken for no entity stay as they are.
    """
    best, label = label_probs.max(dim=-1, keepdim=True)
    score = (best + pointer_probs.sum(dim=-1, keepdim=True)) / 3
    shared = label_probs * (1 - score) / (1 - best).clamp(min=torch.finfo(best.dtype).tiny)
    scored = shared.scatter(-1, label, score)
    scored[..., 0] += 1 - scored.sum(dim=-1)  # where there were no others to share
    return torch.where(label > 0, scored, label_probs)


def chosen_probs(
    pointers: Pointers, spans: Int[Tensor, "batch span 2"], kind: PointerLoss
) -> Float[Tensor, "batch span 2"]:
    """P^l and P^r (section 4.2) of the boundaries that were chosen."""
    first, last = pointers.probs(exclusive=kind == "nll")
    places = (spans[..., :1], spans[..., 1:] - 1)
    return torch.cat([first.gather(-1, places[0]), last.gather(-1, places[1])], dim=-1)
