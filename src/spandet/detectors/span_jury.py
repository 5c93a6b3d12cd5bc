"""Span jury: spans are nominated cheaply, then judge each other (a method of our own).

A look at every span of the sentence nominates some. Each nominee is read from the words inside it
and at its ends, as in locate-and-label; then, for some rounds, nominees see each other, where they
are and what they are taken for so far, as the proposals of proposer-regressor do; and what is named
is the span itself, as in boundary-diffusion. Nothing moves: nearly every entity is nominated.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from spandet.config import Natural, Positive, Settings, Share, Weight
from spandet.detectors.base import Detector
from spandet.layers.label_losses import label_loss, smoothed_labels
from spandet.layers.proposals import EMBEDDING_STD, GatedUpdate, Proposals, RegressorLayer
from spandet.layers.span_head import SpanHead
from spandet.layers.span_scorer import ProposalScores, SpanScorer
from spandet.layers.span_view import SpanView
from spandet.layers.spatial_attention import Attention, AttentionStyle, SpatialAttention
from spandet.spans.flat import from_rows
from spandet.spans.slots import slot_counts, slot_mask
from spandet.tensors import GoldSpans, Losses, SpanPredictions, Stage, WordFeatures


class SpanJurySettings(Settings):
    """What can be chosen."""

    name: Literal["span-jury"] = "span-jury"
    nominees_per_word: Weight = 0.5
    """Nominees for each word of a sentence."""
    nominees_extra: Natural = 8
    """Nominees on top of these."""
    nomination_dim: Positive = 128
    """Size of the vectors that nominate."""
    dim: Positive = 192
    """Size of a nominee's vector."""
    rounds: Natural = 2
    """How often nominees look at each other; 0: each is judged by itself."""
    eval_rounds: Natural | None = None
    """Rounds in prediction, at most those that were learnt; None: all of them."""
    heads: Positive = 4
    """Heads of their attention."""
    attention: Attention = "dot+spatial"
    """What draws attention: likeness, place, or both."""
    use_category_embedding: bool = True
    """Show the others what a nominee is taken for so far."""
    dropout: Share = 0.1
    label_weight: Weight = 6.0
    """More than the other: most of what the encoder learns, it learns from labels."""
    none_weight: Weight = 1.0
    """Weight of nominees that are no entity."""
    smoothing: Share = 0.0
    """Boundary smoothing: what an entity's label loses to the four spans that miss it by a word."""
    auxiliary: bool = True
    """Name nominees after every round in training, not only after the last."""


class SpanJury(Detector):
    """Nominate, read, deliberate, name."""

    def __init__(
        self, settings: SpanJurySettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        del sentence_dim  # of no use here
        self.settings = settings
        own, dropout = settings.dim, settings.dropout
        self.nominate = SpanScorer(dim=dim, inner=settings.nomination_dim, dropout=dropout)
        self.read = SpanHead(dim=dim, out=own, dropout=dropout)
        self.first_labels = nn.Linear(own, labels)
        self.rounds = nn.ModuleList(_round(settings, labels) for _ in range(settings.rounds))

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Nominate entities, and name nominees; entities are among them, come what may."""
        del rngs  # nothing here is random
        settings, words = self.settings, words.with_padding()
        scores: ProposalScores = self.nominate(words)
        mask = self._mask(words)
        spans, _ = scores.with_gold_first(gold).best(mask.shape[1])
        states = self._deliberate(words, spans, mask, len(self.rounds))
        flat = from_rows(spans, mask)
        shown = [state.label_logits[mask] for state in states]
        label = label_loss(
            shown if settings.auxiliary else shown[-1:],
            smoothed_labels(flat, gold, shown[0].shape[1], settings.smoothing),
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
        """Every nominee, with what the last round takes it for."""
        del rngs, keep_all  # nothing here is random, and nothing is dropped
        words = words.with_padding()
        mask = self._mask(words)
        spans, scores = self.nominate(words).best(mask.shape[1])
        rounds = self.settings.eval_rounds
        states = self._deliberate(
            words, spans, mask, len(self.rounds) if rounds is None else rounds
        )
        places = states[0].soft_spans
        probs = [state.label_logits.softmax(dim=-1) for state in states]
        names = ["read", *(f"round {number}" for number in range(1, len(states)))]
        trace = [Stage("nominated", places, scores)]
        trace += [
            Stage(name, places, label_probs=own) for name, own in zip(names, probs, strict=True)
        ]
        return SpanPredictions(spans, probs[-1], mask, tuple(trace))

    def _mask(self, words: WordFeatures) -> Bool[Tensor, "batch span"]:
        """Room for the nominees of each sentence."""
        settings = self.settings
        counts = slot_counts(
            words.lengths, None, settings.nominees_per_word, settings.nominees_extra
        )
        return slot_mask(counts).to(words.mask.device)

    def _deliberate(
        self,
        words: WordFeatures,
        spans: Int[Tensor, "batch span 2"],
        mask: Bool[Tensor, "batch span"],
        rounds: int,
    ) -> list[Proposals]:
        """Nominees as they were read, and after each round."""
        read: Float[Tensor, "_ dim"] = SpanView(words).inner(self.read, from_rows(spans))
        queries = read.view(*spans.shape[:2], -1)
        places = spans.to(torch.float32)
        states = [Proposals(queries, places, self.first_labels(queries), mask)]
        for each in self.rounds[:rounds]:
            states.append(each(states[-1]))
        return states


def _round(settings: SpanJurySettings, labels: int) -> RegressorLayer:
    """Nominees look at each other, change, and are named anew."""
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
        move=False,
        relabel=True,
    )
