"""End-to-End Entity Detection with Proposer and Regressor (Wen et al., 2023).

A pyramid of windows proposes one span per word, a regressor refines all of them together, and a
head points at the span that each of them means. Numbers of equations are the paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spandet.detectors.base import Detector
from spandet.detectors.proposer_regressor.entity_head import EntityHead, Said
from spandet.detectors.proposer_regressor.pyramid import FeaturePyramid, RecurrentBlock
from spandet.detectors.proposer_regressor.set_loss import SetLoss
from spandet.detectors.proposer_regressor.settings import ProposerRegressorSettings
from spandet.errors import ConfigError
from spandet.layers.cells import cells_of
from spandet.layers.mlp import mlp
from spandet.layers.proposals import (
    CellProposals,
    FeedForwardUpdate,
    FlatProposals,
    GatedUpdate,
    ProposalFusion,
    Proposals,
    RegressorLayer,
)
from spandet.layers.span_head import SpanHead
from spandet.layers.span_view import SpanView
from spandet.layers.spatial_attention import AttentionStyle, SpatialAttention
from spandet.spans.flat import FlatSpans, to_rows
from spandet.tensors import GoldSpans, Loss, Losses, SpanPredictions, Stage, WordFeatures, to_device


@dataclass(frozen=True)
class _Pointed:
    """Spans that proposals point at, in one list."""

    spans: FlatSpans
    origin: Int[Tensor, " item"]
    """Whose they are: a proposal of the sentence."""
    log_probs: Float[Tensor, " item"]
    """How sure it is of the span."""


class ProposerRegressor(Detector):
    """Propose, refine, point."""

    def __init__(
        self, settings: ProposerRegressorSettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        del sentence_dim
        if settings.heads > dim:
            raise ConfigError(f"[detector] heads: must be at most the word vector's size, {dim}")
        self.settings = settings
        dropout = settings.dropout
        self.pyramid = FeaturePyramid(
            dim=dim,
            kernels=settings.kernels,
            block=lambda: RecurrentBlock(
                dim=dim,
                cell=settings.cell,
                recurrent_dim=settings.recurrent_dim or 2 * dim,
                dropout=dropout,
            ),
            dropout=dropout,
            backward=settings.use_backward,
            pool=settings.pool,
            message=settings.message,
        )
        if settings.message_start == "convolution":
            self.pyramid.start_as_convolutions()
        self.propose: nn.Module = (
            ProposalFusion(dim=dim, query=settings.query, dropout=dropout)
            if settings.proposals == "words"
            else CellProposals(dim=dim, levels=len(settings.kernels) + 1)
        )
        self.first_labels = mlp(dim, labels)
        with torch.no_grad():
            cast("nn.Linear", self.first_labels[-1]).bias[0] += settings.none_prior
        self.layers = nn.ModuleList(_layer(settings, dim, labels) for _ in range(settings.layers))
        self.head = EntityHead(
            dim=dim,
            labels=labels,
            tied=settings.tied_pointer,
            max_width=settings.max_width or None,
            floor=settings.precision_floor,
        )
        self.loss = SetLoss(
            matching=settings.matching,
            rest=settings.rest,
            reduction=settings.reduction,
            none_weight=settings.none_weight,
        )
        self.span_labels = (
            SpanHead(dim=dim, out=labels, dropout=dropout, sentence_dim=dim)
            if settings.classify_spans
            else None
        )

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Match proposals and entities, and make each say what it was matched with (eq. 25)."""
        del rngs  # nothing here is random
        states = self._states(words, len(self.layers))
        said: Said = self.head(states[-1], words)
        targets = self.loss.targets(said, gold)
        losses = self.loss.losses(said, gold, targets)
        if self.span_labels is not None:
            losses["span_label"] = self._span_label_loss(states[-1], said, words, gold, targets)
        weight, copies = self.settings.layer_weight, self.settings.layer_copies
        for number, state in enumerate(states[:-1] if weight else ()):
            early: Said = self.head(state, words)
            parts = self.loss.losses(early, gold, self.loss.targets(early, gold, copies))
            for name, part in parts.items():
                losses[f"{name}_{number}"] = part.weighted(weight)
        return losses

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Algorithm 2: each proposal gives a span unless "no entity" is more probable."""
        del rngs  # nothing here is random
        settings = self.settings
        count = len(self.layers) if settings.eval_layers is None else settings.eval_layers
        states = self._states(words, min(count, len(self.layers)))
        said: Said = self.head(states[-1], words)
        promising = self._promising(said)
        chosen = said.mask if keep_all else said.mask & promising  # p(span) ≤ 1: exact
        found = self._pointed_at(said, chosen)
        sentence, origin = found.spans.sentence, found.origin
        own = said.label_logits[sentence, origin]
        logits = self._named(own, found.spans, states[-1], origin, words)
        joint = _joint(logits, settings.span_weight * found.log_probs)
        able = joint[:, 1:].amax(dim=1) > settings.min_odds * joint[:, 0]
        able = able & promising[sentence, origin]

        def rows(values: Tensor) -> Tensor:
            return to_rows(values, sentence, len(words.mask))[0]

        trace = tuple(
            Stage(
                f"layer {number}" if number else "proposed",
                rows(state.soft_spans[sentence, origin]),
                label_probs=rows(state.label_logits.softmax(dim=-1)[sentence, origin]),
            )
            for number, state in enumerate(states)
        )
        return SpanPredictions(rows(found.spans.spans), rows(joint), rows(able), trace)

    def _states(self, words: WordFeatures, rounds: int) -> list[Proposals]:
        """Proposals after the proposer and after each round of the regressor."""
        mask = words.mask
        flat = words.features[mask]
        if not len(flat):
            return [self._empty(words)] * (rounds + 1)
        cells = to_device(cells_of(words.lengths.tolist(), self.settings.kernels), mask.device)
        guesses: FlatProposals = self.propose(flat, self.pyramid(flat, cells), cells)
        if self.settings.proposals == "cells":
            mask, order = cells.mask, cells.order
            guesses = FlatProposals(guesses.queries[order], guesses.soft_spans[order])
        queries = _laid_out(guesses.queries, mask)
        logits = self.first_labels(queries)  # eq. 10
        state = Proposals(queries, _laid_out(guesses.soft_spans, mask), logits, mask)
        states = [state]
        for layer in self.layers[:rounds]:
            states.append(layer(states[-1]))
        return states

    def _empty(self, words: WordFeatures) -> Proposals:
        """Nothing to propose: no sentence has a word."""
        queries = words.features[:, :0]
        return Proposals(
            queries, queries[..., :2].float(), self.first_labels(queries), words.mask[:, :0]
        )

    def _promising(self, said: Said) -> Bool[Tensor, "batch span"]:
        """Whose likeliest label is sure enough against "no entity"?"""
        probs = said.label_logits.softmax(dim=-1)
        return probs[..., 1:].amax(dim=-1) > self.settings.min_odds * probs[..., 0]

    def _pointed_at(self, said: Said, chosen: Bool[Tensor, "batch span"]) -> _Pointed:
        """The likeliest spans of the chosen proposals."""
        sentence, origin = chosen.nonzero(as_tuple=True)
        spans, log_probs = said.scores.where(chosen).best(self.settings.spans_per_proposal)
        real = log_probs > -torch.inf  # a short sentence may have fewer spans
        copies = real.sum(dim=1)
        sentence, origin = sentence.repeat_interleave(copies), origin.repeat_interleave(copies)
        return _Pointed(FlatSpans(sentence, spans[real]), origin, log_probs[real])

    def _named(
        self,
        logits: Tensor,
        spans: FlatSpans,
        state: Proposals,
        origin: Tensor,
        words: WordFeatures,
    ) -> Float[Tensor, "span label"]:
        """Labels once more, now with a look at the words of the span."""
        if self.span_labels is None:
            return logits
        view = SpanView(words)
        queries = state.queries[spans.sentence, origin]
        return logits + view.inner(self.span_labels, spans, queries)

    def _span_label_loss(
        self,
        state: Proposals,
        said: Said,
        words: WordFeatures,
        gold: GoldSpans,
        targets: Int[Tensor, "batch span"],
    ) -> Loss:
        """Name entities where they are, and what is pointed at in error "no entity"."""
        with torch.no_grad():
            emitted = self._pointed_at(said, said.mask & self._promising(said))
            sentence, origin = emitted.spans.sentence, emitted.origin
            right, proposal = (targets >= 0).nonzero(as_tuple=True)
            index = targets[right, proposal]
            own = FlatSpans(
                torch.cat([right, sentence]),
                torch.cat([gold.spans[right, index], emitted.spans.spans]),
            )
            same = (gold.spans[own.sentence] == own.spans[:, None]).all(dim=-1)
            there = F.pad((same & gold.mask[own.sentence]) * gold.labels[own.sentence], (0, 1))
            wanted = torch.cat([index, targets[sentence, origin]])[:, None] % there.shape[1]
            mine = there.gather(1, wanted).squeeze(1)  # of two labels on one span, its own
            labels = torch.where(mine > 0, mine, there.amax(dim=1))
        origin = torch.cat([proposal, origin])
        logits = self._named(said.label_logits[own.sentence, origin], own, state, origin, words)
        losses = F.cross_entropy(logits, labels, reduction="sum")
        return Loss.from_sum(losses, len(labels))


def _layer(settings: ProposerRegressorSettings, dim: int, labels: int) -> RegressorLayer:
    update: nn.Module
    if settings.update == "gate":
        update = GatedUpdate(dim, norm=settings.update_norm)
    else:
        hidden = settings.ffn_dim if settings.update == "ffn" else 0
        update = FeedForwardUpdate(dim, hidden=hidden, dropout=settings.dropout)
    return RegressorLayer(
        attention=SpatialAttention(
            dim=dim,
            heads=settings.heads,
            dropout=settings.dropout,
            style=AttentionStyle(
                kind=settings.attention,
                window=settings.window,
                global_heads=settings.global_heads,
                sentence_key=settings.sentence_key,
                scale_heads=settings.scale_heads,
                floor=settings.precision_floor,
            ),
        ),
        update=update,
        dim=dim,
        labels=labels,
        category_std=settings.category_std if settings.use_category_embedding else None,
        regress=settings.use_location_iteration,
        relabel=settings.use_logits_iteration,
    )


def _joint(
    label_logits: Float[Tensor, "span label"], span_log_probs: Float[Tensor, " span"]
) -> Float[Tensor, "span label"]:
    """How probable "this label, on this span" is for each label, against "no entity"."""
    labels = label_logits.log_softmax(dim=-1)
    return torch.cat([labels[:, :1], labels[:, 1:] + span_log_probs[:, None]], dim=1).softmax(dim=1)


def _laid_out(items: Float[Tensor, "item dim"], mask: Bool[Tensor, "batch span"]) -> Tensor:
    """A flat list as padded rows."""
    rows = items.new_zeros(*mask.shape, items.shape[1])
    return rows.masked_scatter(mask[..., None], items)
