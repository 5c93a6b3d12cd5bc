"""What a proposal means: a label, and a distribution over spans (eqs. 21-22)."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor, nn

from spandet.detectors.proposer_regressor.span_pointer import SpanPointer, SpanScores
from spandet.layers.mlp import mlp
from spandet.layers.proposals import Proposals
from spandet.layers.spatial_attention import FLOOR
from spandet.tensors import WordFeatures, at_least_float32


@dataclass(frozen=True)
class Said:
    """What proposals say: labels, and how well every span suits them."""

    label_logits: Float[Tensor, "batch span label"]
    scores: SpanScores
    mask: Bool[Tensor, "batch span"]


class EntityHead(nn.Module):
    """Makes every proposal say its label and its span; the latter among the encoder's words."""

    def __init__(
        self, *, dim: int, labels: int, tied: bool, max_width: int | None, floor: float = FLOOR
    ) -> None:
        super().__init__()
        self.label_change = mlp(dim, labels)
        self.pointer = SpanPointer(dim=dim, tied=tied, max_width=max_width, floor=floor)

    def forward(self, state: Proposals, words: WordFeatures) -> Said:
        """Eqs. 21-22 before their softmax."""
        queries = state.queries
        logits = at_least_float32(state.label_logits + self.label_change(queries))  # eq. 21
        scores: SpanScores = self.pointer(queries, state.soft_spans, words.features, words.lengths)
        return Said(logits, scores, state.mask)
