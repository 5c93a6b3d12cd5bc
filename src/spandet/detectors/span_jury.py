"""Span jury: select candidate spans cheaply, then classify them jointly (our own method).

A biaffine layer scores every span of the sentence; those with the highest scores are the nominees.
Each nominee gets a vector from the words inside it and at its boundaries, as in locate-and-label.
In each round the nominees attend to each other, with their positions and current labels, as in
proposer-regressor, and their labels are updated. Boundaries do not change: nearly every entity is
a nominee.
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from spandet.detectors.base import Detector
from spandet.detectors.span_jury_settings import NOMINEES, SpanJurySettings
from spandet.layers.choices import EMBEDDING_STD
from spandet.layers.label_losses import label_loss, smoothed_labels
from spandet.layers.regressor import (
    AttentionStyle,
    GatedUpdate,
    Proposals,
    RegressorLayer,
    SpatialAttention,
)
from spandet.layers.span_head import SpanHead
from spandet.layers.span_scorer import ProposalScores, SpanScorer
from spandet.layers.span_view import SpanView
from spandet.spans.flat import from_rows
from spandet.tensors import GoldSpans, Losses, SpanPredictions, Stage, WordFeatures


class SpanJury(Detector):
    """Nominate spans, encode them, and update their labels in rounds of attention."""

    def __init__(
        self, settings: SpanJurySettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        del sentence_dim  # not used
        self.settings = settings
        own, dropout = settings.dim, settings.dropout
        self.nominate = SpanScorer(dim=dim, inner=settings.nomination_dim, dropout=dropout)
        self.read = SpanHead(dim=dim, out=own, dropout=dropout)
        self.first_labels = nn.Linear(own, labels)
        self.rounds = nn.ModuleList(_round(settings, labels) for _ in range(settings.rounds))

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Losses of nomination and of labels; in training all entities are nominees."""
        del rngs  # nothing here is random
        settings, words = self.settings, words.with_padding()
        scores: ProposalScores = self.nominate(words)
        mask = self._mask(words)
        spans, _ = scores.with_gold_first(gold).best(mask.shape[1])
        states = self._rounds(words, spans, mask, len(self.rounds))
        flat = from_rows(spans, mask)
        logits = [state.label_logits[mask] for state in states]
        label = label_loss(
            logits if settings.auxiliary else logits[-1:],
            smoothed_labels(flat, gold, logits[0].shape[1], settings.smoothing),
            flat.sentence,
            settings.none_weight,
        )
        return {
            "nomination": scores.loss(gold),
            "label": label.weighted(settings.label_weight),
        }

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """All nominees, with the label probabilities of the last round."""
        del rngs, keep_all  # nothing here is random, and nothing is dropped
        words = words.with_padding()
        return self._detected(words, self._mask(words))

    def detect_in_graph(self, words: WordFeatures, inputs: Mapping[str, Tensor]) -> SpanPredictions:
        """The same, with the mask of the nominees as input."""
        return self._detected(words, inputs[NOMINEES])

    def _detected(self, words: WordFeatures, mask: Bool[Tensor, "batch span"]) -> SpanPredictions:
        spans, scores = self.nominate(words).best(mask.shape[1])
        rounds = self.settings.eval_rounds
        states = self._rounds(words, spans, mask, len(self.rounds) if rounds is None else rounds)
        places = states[0].soft_spans
        probs = [state.label_logits.softmax(dim=-1) for state in states]
        names = ["read", *(f"round {number}" for number in range(1, len(states)))]
        trace = [Stage("nominated", places, scores)]
        trace += [
            Stage(name, places, label_probs=own) for name, own in zip(names, probs, strict=True)
        ]
        return SpanPredictions(spans, probs[-1], mask, tuple(trace))

    def _mask(self, words: WordFeatures) -> Bool[Tensor, "batch span"]:
        """Mask of the nominees of each sentence."""
        inputs = self.settings.graph_inputs(words.lengths.tolist())
        return torch.from_numpy(inputs[NOMINEES]).to(words.mask.device)

    def _rounds(
        self,
        words: WordFeatures,
        spans: Int[Tensor, "batch span 2"],
        mask: Bool[Tensor, "batch span"],
        rounds: int,
    ) -> list[Proposals]:
        """The nominees before the first round, and after each round."""
        encoded: Float[Tensor, "_ dim"] = SpanView(words).inner(self.read, from_rows(spans))
        queries = encoded.view(*spans.shape[:2], -1)
        places = spans.to(torch.float32)
        states = [Proposals(queries, places, self.first_labels(queries), mask)]
        for layer in self.rounds[:rounds]:
            states.append(layer(states[-1]))
        return states


def _round(settings: SpanJurySettings, labels: int) -> RegressorLayer:
    """A layer of attention between nominees that updates their vectors and labels."""
    style = AttentionStyle(
        kind=settings.attention, window=16, global_heads=0, sentence_key=False, scale_heads=False
    )
    return RegressorLayer(
        attention=SpatialAttention(
            dim=settings.dim, heads=settings.heads, dropout=settings.dropout, style=style
        ),
        update=GatedUpdate(settings.dim, norm=True),
        dim=settings.dim,
        labels=labels,
        category_std=EMBEDDING_STD if settings.use_category_embedding else None,
        regress=False,
        relabel=True,
    )
