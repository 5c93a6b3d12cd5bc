"""A loss between two sets: what proposals say, and the entities that there are (eqs. 23-25)."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.detectors.proposer_regressor.entity_head import Said
from spandet.spans.assignment import Matching, Rest, assign_batch, nearest
from spandet.tensors import GoldSpans, Loss

Reduction = Literal["proposals", "sentences", "sum"]


@dataclass(frozen=True)
class SetLoss:
    """Gives every proposal an entity or none, and asks it to say just that."""

    matching: Matching
    rest: Rest
    reduction: Reduction
    none_weight: float

    @torch.no_grad()
    def targets(self, said: Said, gold: GoldSpans, copies: int = 1) -> Int[Tensor, "batch span"]:
        """Eq. 23 by algorithm 1: the entity of each proposal, -1 for none.

        Args:
            said: What the proposals say.
            gold: The entities; one that is wider than the pointer reaches is nobody's.
            copies: Proposals per entity; with more than one, each entity takes the nearest ones.
        """
        labels = said.label_logits.log_softmax(dim=-1)
        totals = torch.zeros_like(labels[..., 0])
        totals[said.mask] = said.scores.where(said.mask).log_totals()
        count = said.mask.shape[1]
        spans = gold.spans[:, None].expand(-1, count, -1, -1)
        of_label = labels.gather(2, gold.labels[:, None].expand(-1, count, -1))
        costs = totals[..., None] - said.scores.at(spans) - of_label  # eq. 24
        reachable = _reachable(gold, said.scores.max_width)
        if copies > 1:
            return nearest(costs, said.mask, reachable, copies)
        none_costs = -labels[..., 0]
        return assign_batch(
            costs, none_costs, said.mask, reachable, matching=self.matching, rest=self.rest
        )

    def losses(
        self, said: Said, gold: GoldSpans, targets: Int[Tensor, "batch span"]
    ) -> dict[str, Loss]:
        """Eqs. 24-25 in log space: the label of each proposal, the span of each that has one."""
        matched = targets >= 0
        row, proposal = matched.nonzero(as_tuple=True)
        entity = targets[row, proposal]
        labels = torch.zeros_like(targets).index_put((row, proposal), gold.labels[row, entity])
        own = said.label_logits.log_softmax(dim=-1).gather(2, labels[..., None]).squeeze(-1)
        weights = torch.where(matched, 1.0, self.none_weight)
        scores = said.scores.where(matched)
        missed = scores.log_totals() - scores.at(gold.spans[row, entity][:, None]).squeeze(1)
        pointed = torch.zeros_like(own).index_put((row, proposal), missed)
        return {
            "label": self._reduced(-own * weights * said.mask, said.mask),
            "span": self._reduced(pointed, said.mask),
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
