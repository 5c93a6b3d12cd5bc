"""End-to-End Entity Detection with Proposer and Regressor (Wen et al., 2023).

The code follows the paper's figure 2 from left to right; numbers of sections and equations are the
paper's. tests/papers/proposer_regressor_paper.py has each equation as a plain function, and
docs/methods/proposer-regressor.md lists where each of them is computed.

    words → feature pyramid → proposals → regressor layers → head → entities

| symbol | here | meaning |
|---|---|---|
| h_i | `words.features` | vector of word i, from the sentence encoder |
| L, T, d | `words.lengths`, `labels - 1`, `dim` | number of words, of labels, size of vectors |
| h_{i,l} | `self.pyramid(...)[l][i]` | feature of cell i of level l: a window of words |
| k_l, v_l | `kernels`, `Level.width` | kernel of a convolution, number of words of a cell |
| N_j | `Cells.covering` | cells that contain word j |
| q_i | `Proposals.queries` | query vector of proposal i |
| n_i | `Proposals.soft_spans` | its location: start and end; here half-open, end + 1 |
| c_i | `Proposals.label_logits` | its category logarithms; label 0 is None (∅) |
| h'_i, q'_i | `queries`, `Attended.values` | query with category embedding, output of attention |
| μ, Θ | `Gaussian.centre`, `.precision` | centre and precision matrix of a Gaussian |
| o_{i,m} | `attended` | output of attention head m |
| p^c_i, p^n_i | softmax of `HeadOutput` | probabilities of labels, and of all spans |
| g_i, r_i | `SpanScores` | pointer scores of all spans, and with the Gaussian |
| β | `targets` | entity of each proposal; -1 is None |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spandet.detectors.base import Detector
from spandet.detectors.proposer_regressor.cells import cells_of
from spandet.detectors.proposer_regressor.head import EntityHead, HeadOutput
from spandet.detectors.proposer_regressor.pyramid import (
    CellProposals,
    FeaturePyramid,
    FlatProposals,
    ProposalFusion,
    RecurrentBlock,
)
from spandet.detectors.proposer_regressor.set_loss import SetLoss
from spandet.detectors.proposer_regressor.settings import ProposerRegressorSettings
from spandet.errors import ConfigError
from spandet.layers.regressor import (
    AttentionStyle,
    FeedForwardUpdate,
    GatedUpdate,
    Proposals,
    RegressorLayer,
    SpatialAttention,
    mlp,
)
from spandet.layers.span_head import SpanHead
from spandet.layers.span_view import SpanView
from spandet.spans.flat import FlatSpans, to_rows
from spandet.tensors import GoldSpans, Loss, Losses, SpanPredictions, Stage, WordFeatures, to_device


@dataclass(frozen=True)
class _Candidates:
    """Spans that proposals predict, in one flat list."""

    spans: FlatSpans
    origin: Int[Tensor, " item"]
    """Index of the proposal in its sentence."""
    log_probs: Float[Tensor, " item"]
    """Log probability of the span, log p^n."""


class ProposerRegressor(Detector):
    """One proposal per word, refined by regressor layers; the head predicts labels and spans."""

    def __init__(
        self, settings: ProposerRegressorSettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        del sentence_dim
        if settings.heads > dim:
            raise ConfigError(f"[detector] heads: must be at most the word vector's size, {dim}")
        self.settings = settings
        self.pyramid = _pyramid(settings, dim)
        self.propose: nn.Module = (
            ProposalFusion(dim=dim, query=settings.query, dropout=settings.dropout)
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
            SpanHead(dim=dim, out=labels, dropout=settings.dropout, sentence_dim=dim)
            if settings.classify_spans
            else None
        )

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Match proposals with entities and compute the losses of this assignment."""
        del rngs  # nothing here is random
        states = self._states(words, len(self.layers))
        output: HeadOutput = self.head(states[-1], words)
        targets = self.loss.targets(output, gold)
        losses = self.loss.losses(output, gold, targets)
        if self.span_labels is not None:
            losses["span_label"] = self._span_label_loss(states[-1], output, words, gold, targets)
        weight, copies = self.settings.layer_weight, self.settings.layer_copies
        for number, state in enumerate(states[:-1] if weight else ()):
            early: HeadOutput = self.head(state, words)
            parts = self.loss.losses(early, gold, self.loss.targets(early, gold, copies))
            for name, part in parts.items():
                losses[f"{name}_{number}"] = part.weighted(weight)
        return losses

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Algorithm 2: a span of each proposal, unless "no entity" is more probable.

        With the defaults it is several spans, classified by their words, and a wider threshold.
        """
        del rngs  # nothing here is random
        settings = self.settings
        count = len(self.layers) if settings.eval_layers is None else settings.eval_layers
        states = self._states(words, min(count, len(self.layers)))
        output: HeadOutput = self.head(states[-1], words)
        likely = self._likely(output)
        chosen = output.mask if keep_all else output.mask & likely  # exact, because p^n ≤ 1
        found = self._candidates(output, chosen)
        sentence, origin = found.spans.sentence, found.origin
        own = output.label_logits[sentence, origin]
        logits = self._span_label_logits(own, found.spans, states[-1], origin, words)
        joint = _joint(logits, settings.span_weight * found.log_probs)
        kept = joint[:, 1:].amax(dim=1) > settings.min_odds * joint[:, 0]
        kept = kept & likely[sentence, origin]

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
        return SpanPredictions(rows(found.spans.spans), rows(joint), rows(kept), trace)

    # Sections 3.2 and 3.3: proposer and regressor

    def _states(self, words: WordFeatures, layers: int) -> list[Proposals]:
        """The proposals of the proposer, and those after each regressor layer."""
        states = [self._proposed(words)]
        if not states[0].mask.numel():  # no sentence has a word
            return states * (layers + 1)
        for layer in self.layers[:layers]:
            states.append(layer(states[-1]))
        return states

    def _proposed(self, words: WordFeatures) -> Proposals:
        """Section 3.2: the first queries, locations and label logits."""
        mask = words.mask
        flat = words.features[mask]
        if not len(flat):
            return self._no_proposals(words)
        cells = to_device(cells_of(words.lengths.tolist(), self.settings.kernels), mask.device)
        first: FlatProposals = self.propose(flat, self.pyramid(flat, cells), cells)
        if self.settings.proposals == "cells":
            mask, order = cells.mask, cells.order
            first = FlatProposals(first.queries[order], first.soft_spans[order])
        queries = _to_rows(first.queries, mask)
        logits = self.first_labels(queries)  # eq. 10: c
        return Proposals(queries, _to_rows(first.soft_spans, mask), logits, mask)

    def _no_proposals(self, words: WordFeatures) -> Proposals:
        queries = words.features[:, :0]
        return Proposals(
            queries, queries[..., :2].float(), self.first_labels(queries), words.mask[:, :0]
        )

    # Section 3.4: prediction head

    def _likely(self, output: HeadOutput) -> Bool[Tensor, "batch span"]:
        """Mask of the proposals with a label that is probable enough against "no entity"."""
        probs = output.label_logits.softmax(dim=-1)
        return probs[..., 1:].amax(dim=-1) > self.settings.min_odds * probs[..., 0]

    def _candidates(self, output: HeadOutput, chosen: Bool[Tensor, "batch span"]) -> _Candidates:
        """The most probable spans of the chosen proposals."""
        sentence, origin = chosen.nonzero(as_tuple=True)
        scores = output.span_scores.where(chosen)
        spans, log_probs = scores.best(self.settings.spans_per_proposal)
        real = log_probs > -torch.inf  # a short sentence may have fewer spans
        copies = real.sum(dim=1)
        sentence, origin = sentence.repeat_interleave(copies), origin.repeat_interleave(copies)
        return _Candidates(FlatSpans(sentence, spans[real]), origin, log_probs[real])

    # Beyond the paper: spans are classified by their words

    def _span_label_logits(
        self,
        logits: Tensor,
        spans: FlatSpans,
        state: Proposals,
        origin: Tensor,
        words: WordFeatures,
    ) -> Float[Tensor, "span label"]:
        """The proposals' label logits plus those from query and words of each span."""
        if self.span_labels is None:
            return logits
        queries = state.queries[spans.sentence, origin]
        return logits + SpanView(words).inner(self.span_labels, spans, queries)

    def _span_label_loss(
        self,
        state: Proposals,
        output: HeadOutput,
        words: WordFeatures,
        gold: GoldSpans,
        targets: Int[Tensor, "batch span"],
    ) -> Loss:
        """Cross-entropy on the entities of matched proposals and on all predicted spans."""
        with torch.no_grad():
            predicted = self._candidates(output, output.mask & self._likely(output))
            sentence, origin = predicted.spans.sentence, predicted.origin
            row, proposal = (targets >= 0).nonzero(as_tuple=True)
            entity = targets[row, proposal]
            spans = FlatSpans(
                torch.cat([row, sentence]),
                torch.cat([gold.spans[row, entity], predicted.spans.spans]),
            )
            preferred = torch.cat([entity, targets[sentence, origin]])
            labels = _labels_of(spans, gold, preferred)
        origin = torch.cat([proposal, origin])
        own = output.label_logits[spans.sentence, origin]
        logits = self._span_label_logits(own, spans, state, origin, words)
        return Loss.from_sum(F.cross_entropy(logits, labels, reduction="sum"), len(labels))


def _labels_of(
    spans: FlatSpans, gold: GoldSpans, preferred: Int[Tensor, " item"]
) -> Int[Tensor, " item"]:
    """The gold label of each span, 0 for none; of several, that of the preferred entity."""
    equal = (gold.spans[spans.sentence] == spans.spans[:, None]).all(dim=-1)
    labels = F.pad((equal & gold.mask[spans.sentence]) * gold.labels[spans.sentence], (0, 1))
    wanted = preferred[:, None] % labels.shape[1]  # -1 is the padded column
    own = labels.gather(1, wanted).squeeze(1)
    return torch.where(own > 0, own, labels.amax(dim=1))


def _pyramid(settings: ProposerRegressorSettings, dim: int) -> FeaturePyramid:
    pyramid = FeaturePyramid(
        dim=dim,
        kernels=settings.kernels,
        block=lambda: RecurrentBlock(
            dim=dim,
            cell=settings.cell,
            recurrent_dim=settings.recurrent_dim or 2 * dim,
            dropout=settings.dropout,
        ),
        dropout=settings.dropout,
        backward=settings.use_backward,
        pool=settings.pool,
        message=settings.message,
    )
    if settings.message_start == "convolution":
        pyramid.start_as_convolutions()
    return pyramid


def _layer(settings: ProposerRegressorSettings, dim: int, labels: int) -> RegressorLayer:
    update: nn.Module
    if settings.update == "gate":
        update = GatedUpdate(dim, norm=False)
    else:
        hidden = settings.ffn_dim if settings.update == "ffn" else 0
        update = FeedForwardUpdate(dim, hidden=hidden, dropout=settings.dropout)
    style = AttentionStyle(
        kind=settings.attention,
        window=settings.window,
        global_heads=settings.global_heads,
        sentence_key=settings.sentence_key,
        scale_heads=settings.scale_heads,
        floor=settings.precision_floor,
    )
    return RegressorLayer(
        attention=SpatialAttention(
            dim=dim, heads=settings.heads, dropout=settings.dropout, style=style
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
    """Softmax over log p("no entity") and log p(label) + log p(span) of each label."""
    labels = label_logits.log_softmax(dim=-1)
    return torch.cat([labels[:, :1], labels[:, 1:] + span_log_probs[:, None]], dim=1).softmax(dim=1)


def _to_rows(items: Float[Tensor, "item dim"], mask: Bool[Tensor, "batch span"]) -> Tensor:
    """A flat list as padded rows."""
    rows = items.new_zeros(*mask.shape, items.shape[1])
    return rows.masked_scatter(mask[..., None], items)
