"""Loss and scores of slots: boundaries that the pointers chose, and gold labels."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from spandet.detectors.boundary_diffusion.boundary_pointers import Pointers
from spandet.tensors import GoldSpans, Loss

PointerLoss = Literal["nll", "bce", "likelihood"]


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
    return Loss.from_sum(total, len(slot) if slots is None else slots)


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
