"""The loss between proposals and entities as sets (section 3.4.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.detectors.proposer_regressor.head import HeadOutput
from spandet.detectors.proposer_regressor.settings import Reduction
from spandet.spans.assignment import assign_batch, nearest
from spandet.spans.choices import Matching, Rest
from spandet.tensors import GoldSpans, Loss


@dataclass(frozen=True)
class SetLoss:
    """Assigns an entity or none to each proposal, and computes the loss of this assignment."""

    matching: Matching
    rest: Rest
    reduction: Reduction
    none_weight: float

    @torch.no_grad()
    def targets(
        self, output: HeadOutput, gold: GoldSpans, copies: int = 1
    ) -> Int[Tensor, "batch span"]:
        """β of eq. 23: the entity of each proposal, -1 for none.

        Args:
            output: The head's output.
            gold: The entities; those wider than `max_width` are assigned to no proposal.
            copies: Proposals per entity; with more than one, each entity gets its cheapest ones.
        """
        labels = output.label_logits.log_softmax(dim=-1)
        totals = torch.zeros_like(labels[..., 0])
        totals[output.mask] = output.span_scores.where(output.mask).log_totals()
        count = output.mask.shape[1]
        spans = gold.spans[:, None].expand(-1, count, -1, -1)
        of_label = labels.gather(2, gold.labels[:, None].expand(-1, count, -1))
        costs = totals[..., None] - output.span_scores.at(spans) - of_label  # eq. 24, t ≠ ∅
        none_costs = -labels[..., 0]  # eq. 24, t = ∅
        reachable = _reachable(gold, output.span_scores.max_width)
        if copies > 1:
            return nearest(costs, output.mask, reachable, copies)
        return assign_batch(
            costs, none_costs, output.mask, reachable, matching=self.matching, rest=self.rest
        )

    def losses(
        self, output: HeadOutput, gold: GoldSpans, targets: Int[Tensor, "batch span"]
    ) -> dict[str, Loss]:
        """Eq. 25 in two parts: -log p^c of each proposal, -log p^n of those with an entity."""
        matched = targets >= 0
        row, proposal = matched.nonzero(as_tuple=True)
        entity = targets[row, proposal]
        labels = torch.zeros_like(targets).index_put((row, proposal), gold.labels[row, entity])
        own = output.label_logits.log_softmax(dim=-1).gather(2, labels[..., None]).squeeze(-1)
        weights = torch.where(matched, 1.0, self.none_weight)
        scores = output.span_scores.where(matched)
        missed = scores.log_totals() - scores.at(gold.spans[row, entity][:, None]).squeeze(1)
        pointed = torch.zeros_like(own).index_put((row, proposal), missed)
        return {
            "label": self._reduced(-own * weights * output.mask, output.mask),
            "span": self._reduced(pointed, output.mask),
        }

    def _reduced(
        self, losses: Float[Tensor, "batch span"], mask: Bool[Tensor, "batch span"]
    ) -> Loss:
        counts = mask.sum(dim=1)
        match self.reduction:
            case "proposals":
                return Loss.from_sum(losses.sum(), counts.sum())
            case "sentences":
                means = losses.sum(dim=1) / counts.clamp(min=1)
                return Loss.from_sum(means.sum(), (counts > 0).sum())
            case "sum":
                return Loss.from_sum(losses.sum(), (counts > 0).sum())


def _reachable(gold: GoldSpans, max_width: int | None) -> Bool[Tensor, "batch gold"]:
    if max_width is None:
        return gold.mask
    return gold.mask & (gold.spans[..., 1] - gold.spans[..., 0] <= max_width)
