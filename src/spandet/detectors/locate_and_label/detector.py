"""Locate and Label: a two-stage identifier (Shen et al., ACL 2021).

Seed spans → filter (which of them lie well on an entity?) → regressor (move their boundaries) →
classifier (name what is there now). Numbers of equations and sections are the paper's;
tests/papers/locate_and_label_paper.py has each equation as a plain function.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spandet.config import Settings, Share, Weight
from spandet.detectors.base import Detector
from spandet.detectors.locate_and_label.matching import Match, best_gold, pairwise_iou
from spandet.detectors.locate_and_label.sampling import (
    any_by_sentence,
    best_seeds,
    draw,
    first_labels,
)
from spandet.layers.span_head import SpanHead
from spandet.layers.span_view import SpanView
from spandet.spans.coordinates import clamped, legal, to_words
from spandet.spans.flat import FlatSpans, enumerate_spans, to_rows
from spandet.spans.overlap import iou, signed_iou
from spandet.tensors import GoldSpans, Loss, Losses, SpanPredictions, Stage, WordFeatures


class LocateAndLabelSettings(Settings):
    """What can be chosen. Defaults are the paper's or, where it errs or is silent, what works."""

    name: Literal["locate-and-label"] = "locate-and-label"
    lengths: tuple[Annotated[int, Gt(0)], ...] = tuple(range(1, 11))
    """Seed lengths in words."""
    eval_lengths: tuple[Annotated[int, Gt(0)], ...] | None = None
    """Seed lengths in prediction; None: the same."""
    clip_seeds: bool = True
    """Windows that reach over the sentence's end are cut there; false: they are left out."""
    seed_overlap: Share = 0.7
    """α1: a seed that overlaps an entity by more than this is positive."""
    label_overlap: Share = 1.0
    """α2: a moved span that overlaps an entity by at least this has its label."""
    soft_exponent: Weight = 1.0
    """η: how strongly overlap weighs examples; 0: not at all (ablation: no soft examples)."""
    focal: Weight = 2.0
    """γ of the focal loss."""
    negative_ratio: Weight = 30.0
    """Negative seeds sampled per positive one; with few, the near misses are hardly ever seen."""
    negative_extra: Annotated[int, Ge(0)] = 30
    """Negatives sampled on top, so that sentences without entities teach something too."""
    inject_gold: bool = True
    """Train the heads on gold spans that no seed equals."""
    inject_once: bool = False
    """Inject a gold span with two labels once, with its first label; false: once per label."""
    rescue_gold: bool = True
    """An entity without a positive seed takes its best one: long ones teach the regressor too."""
    use_filter: bool = True
    """Ablation: without it every seed is moved and classified."""
    use_regressor: bool = True
    """Ablation: without it seeds stay where they are."""
    offset_activation: Literal["linear", "tanh_n", "sigmoid_n"] = "linear"
    """How the regressor's output becomes words to move; n is the sentence length."""
    illegal: Literal["clamp", "discard"] = "clamp"
    """What happens to spans moved out of the sentence or inside out."""
    label_illegal: bool = True
    """Train the classifier on discarded spans, as "no entity"; false: on legal spans only."""
    pairing: Literal["all", "seed", "positives"] = "all"
    """Where a moved span takes its label from: any entity, its seed's, or its positive seed's."""
    label_loss: Literal["cross-entropy", "focal"] = "cross-entropy"
    reduction: Literal["mean", "sum"] = "mean"
    """Losses per span, or summed up in each sentence (the paper's formulas)."""
    soft_offsets: bool = False
    """Weigh the boundary loss by overlap too, as `soft_exponent` says."""
    sentence_feature: bool = False
    """Show the encoder's sentence vector to all heads."""
    filter_weight: Weight = 1.0
    """λ1 of eq. 17."""
    boundary_weight: Weight = 0.1
    """λ2, for the boundaries."""
    overlap_weight: Weight = 0.1
    """λ2, for the span as a whole."""
    label_weight: Weight = 1.0
    """λ3."""
    filter_threshold: Share = 1 / 6
    """Seeds that the filter is less sure of are dropped in prediction."""
    dropout: Share = 0.5
    """On the inputs of all heads."""


_FEW_NEGATIVES = {"negative_ratio": 5.0, "negative_extra": 2}

PRESETS = {
    "paper": {
        "detector": {
            **_FEW_NEGATIVES,
            "clip_seeds": False,
            "inject_once": True,
            "rescue_gold": False,
            "reduction": "sum",
            "pairing": "seed",
        },
        "decoding": {
            "threshold": 0.5,
            "merge": "after",
            "one_label": False,
            "crossing": "keep",
            "nms_decay": 0.9,
            "nms_overlap": 0.6,
        },
    },
    "released-code": {
        "detector": {
            **_FEW_NEGATIVES,
            "inject_once": True,
            "rescue_gold": False,
            "offset_activation": "sigmoid_n",
            "illegal": "discard",
            "label_illegal": False,
            "pairing": "positives",
            "label_loss": "focal",
            "soft_offsets": True,
            "sentence_feature": True,
            "boundary_weight": 1.0,
            "overlap_weight": 1.0,
        },
        "decoding": {
            "threshold": 0.45,
            "merge": "first-votes",
            "crossing": "both",
            "nms_rule": "released-code",
            "nms_decay": 0.9,
            "nms_overlap": 0.6,
        },
    },
}


@dataclass(frozen=True)
class _Sample:
    """The seeds that a training step looks at, and the entity each of them goes with."""

    seeds: FlatSpans
    match: Match
    positive: Bool[Tensor, " span"]
    sentences: int


@dataclass(frozen=True)
class _Moved:
    """Spans after the regressor, and which of them it had moved to a legal place."""

    spans: FlatSpans
    legal: Bool[Tensor, " span"]


class LocateAndLabel(Detector):
    """Locate (stage 1), then label (stage 2)."""

    def __init__(
        self, settings: LocateAndLabelSettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        self.settings = settings
        extra = sentence_dim if settings.sentence_feature else 0

        def head(out: int) -> SpanHead:
            return SpanHead(dim=dim, out=out, dropout=settings.dropout, sentence_dim=extra)

        self.filter = head(1) if settings.use_filter else None
        self.regressor = head(2) if settings.use_regressor else None
        self.classifier = head(labels)
        if self.regressor is not None:  # training starts from "do not move"
            nn.init.normal_(self.regressor.out.weight, std=1e-3)

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Train both stages on sampled seeds (section 2.5); the parts of eq. 17, weighted."""
        view = SpanView(words)
        sample = self._sample(words, gold, rngs)
        losses: dict[str, Loss] = {}
        if self.filter is not None:
            logits = self._filter_logits(view, sample.seeds)
            losses["filter"] = self._filter_loss(logits, sample)
        offsets = self._offsets(view, sample.seeds)
        moved = self._moved(sample.seeds, offsets, view)
        if self.regressor is not None:
            losses |= self._offset_losses(offsets, moved.legal, sample)
        logits = self._label_logits(view, moved.spans)
        losses["label"] = self._label_loss(logits, moved, sample, gold)
        return losses

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Filter first, so that only promising seeds are moved and classified."""
        del rngs  # nothing here is random
        view = SpanView(words)
        lengths = self.settings.eval_lengths or self.settings.lengths
        seeds = self._seeds(words, lengths)
        sure = torch.ones_like(seeds.sentence, dtype=words.features.dtype)
        kept = torch.ones_like(seeds.sentence, dtype=torch.bool)
        if self.filter is not None:
            sure = self._filter_logits(view, seeds).sigmoid()
            kept = sure > self.settings.filter_threshold
            if not keep_all:
                seeds, sure, kept = seeds.select(kept), sure[kept], kept[kept]
        offsets = self._offsets(view, seeds)
        moved = self._moved(seeds, offsets, view)
        probs = self._label_logits(view, moved.spans).softmax(dim=-1)
        if self.settings.illegal == "discard":
            nothing = F.one_hot(torch.zeros_like(seeds.sentence), probs.shape[1])
            probs = torch.where(moved.legal[:, None], probs, nothing.to(probs.dtype))
        batch, seed_spans = len(words.mask), seeds.spans.to(offsets.dtype)

        def rows(values: Tensor) -> Tensor:
            return to_rows(values, seeds.sentence, batch)[0]

        trace = (
            Stage("seed", rows(seed_spans), scores=rows(sure)),
            Stage("moved", rows(seed_spans + offsets), label_probs=rows(probs)),
        )
        return SpanPredictions(rows(moved.spans.spans), rows(probs), rows(kept), trace)

    def _seeds(self, words: WordFeatures, lengths: Sequence[int]) -> FlatSpans:
        """Section 2.2: windows of a few lengths at every word."""
        seeds = enumerate_spans(words.lengths.tolist(), lengths, clip=self.settings.clip_seeds)
        device = words.mask.device
        return FlatSpans(seeds.sentence.to(device), seeds.spans.to(device))

    def _sample(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> _Sample:
        """Section 2.2: all positive seeds, some negative ones; and entities that no seed equals."""
        settings = self.settings
        seeds = self._seeds(words, settings.lengths)
        match = best_gold(seeds, gold)
        positive = match.iou > settings.seed_overlap
        shared = pairwise_iou(seeds, gold)
        if settings.rescue_gold:
            positive = positive | best_seeds(shared, seeds.sentence, gold, settings.seed_overlap)
        missing = gold.mask & ~any_by_sentence(shared == 1, seeds.sentence, len(gold.mask))
        if settings.inject_once:
            missing = missing & first_labels(gold)
        if not settings.inject_gold:
            missing = torch.zeros_like(missing)
        counts = torch.bincount(seeds.sentence[positive], minlength=len(gold.mask))
        quota = settings.negative_ratio * (counts + missing.sum(dim=1)) + settings.negative_extra
        drawn = positive | draw(~positive, seeds.sentence, quota, rngs)
        sentence, index = missing.nonzero(as_tuple=True)
        injected = FlatSpans(sentence, gold.spans[sentence, index])
        return _Sample(
            FlatSpans(
                torch.cat([seeds.sentence[drawn], injected.sentence]),
                torch.cat([seeds.spans[drawn], injected.spans]),
            ),
            Match(
                torch.cat([match.iou[drawn], torch.ones_like(sentence, dtype=match.iou.dtype)]),
                torch.cat([match.spans[drawn], injected.spans]),
                torch.cat([match.labels[drawn], gold.labels[sentence, index]]),
            ),
            torch.cat([positive[drawn], torch.ones_like(sentence, dtype=torch.bool)]),
            len(gold.mask),
        )

    def _filter_logits(self, view: SpanView, seeds: FlatSpans) -> Float[Tensor, " span"]:
        """Eqs. 1-3: how likely does a seed lie well on an entity?"""
        assert self.filter is not None  # noqa: S101 (asked only where there is one)
        return view.inner(self.filter, seeds).squeeze(-1)

    def _offsets(self, view: SpanView, seeds: FlatSpans) -> Float[Tensor, "span 2"]:
        """Eqs. 4-5: how far both boundaries should move, judged by the words just outside."""
        if self.regressor is None:
            return torch.zeros_like(seeds.spans, dtype=torch.float32)
        # Half precision cannot count words: 257 is the first number that bfloat16 does not have.
        raw = view.outer(self.regressor, seeds)
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
        match self.settings.offset_activation:
            case "linear":
                return raw
            case "tanh_n":
                return raw.tanh() * view.lengths[seeds.sentence, None]
            case "sigmoid_n":
                return raw.sigmoid() * view.lengths[seeds.sentence, None]

    def _moved(self, seeds: FlatSpans, offsets: Tensor, view: SpanView) -> _Moved:
        """Eqs. 6-7: whole words again. The indices are constants: no gradient passes here."""
        spans = to_words(seeds.spans + offsets)
        lengths = view.lengths[seeds.sentence]
        within = legal(spans, lengths)
        if self.settings.illegal == "clamp":
            spans, within = clamped(spans, seeds.spans, lengths), torch.ones_like(within)
        else:
            spans = torch.where(within[:, None], spans, seeds.spans)
        return _Moved(FlatSpans(seeds.sentence, spans), within)

    def _label_logits(self, view: SpanView, spans: FlatSpans) -> Float[Tensor, "span label"]:
        """Eqs. 8-10: what is it?"""
        return view.inner(self.classifier, spans)

    def _filter_loss(self, logits: Tensor, sample: _Sample) -> Loss:
        """Eq. 12: focal loss, weighted by overlap."""
        target = sample.positive.to(logits.dtype)
        log_right = F.logsigmoid(torch.where(sample.positive, logits, -logits))
        focal = -((1 - log_right.exp()) ** self.settings.focal) * log_right
        weights = self._soft_weights(sample.match.iou, target.bool())
        return self._reduce(weights * focal, self.settings.filter_weight, sample)

    def _offset_losses(self, offsets: Tensor, within: Tensor, sample: _Sample) -> Losses:
        """Eqs. 13-15 on positive seeds: each boundary, and the span as a whole."""
        chosen = sample.positive & within
        seeds, gold = sample.seeds.spans[chosen], sample.match.spans[chosen]
        offsets = offsets[chosen]
        boundary = F.smooth_l1_loss(offsets, (gold - seeds).to(offsets.dtype), reduction="none")
        boundary = boundary.sum(dim=1)
        if self.settings.soft_offsets:
            boundary = boundary * sample.match.iou[chosen] ** self.settings.soft_exponent  # eq. 11
        overlap = 1 - signed_iou(seeds + offsets, gold.to(offsets.dtype))
        return {
            "boundary": self._reduce(boundary, self.settings.boundary_weight, sample),
            "overlap": self._reduce(overlap, self.settings.overlap_weight, sample),
        }

    def _label_loss(self, logits: Tensor, moved: _Moved, sample: _Sample, gold: GoldSpans) -> Loss:
        """Eq. 16: classification of moved spans, near misses weighted down."""
        match = self._paired(moved.spans, sample, gold)
        positive = (match.iou >= self.settings.label_overlap) & moved.legal & (match.labels > 0)
        labels = torch.where(positive, match.labels, 0)
        log_right = logits.log_softmax(dim=-1).gather(1, labels[:, None]).squeeze(1)
        loss = -log_right
        if self.settings.label_loss == "focal":
            loss = loss * (1 - log_right.exp()) ** self.settings.focal
        loss = loss * self._soft_weights(match.iou, match.iou >= self.settings.label_overlap)
        if not self.settings.label_illegal:
            loss = loss[moved.legal]
        return self._reduce(loss, self.settings.label_weight, sample)

    def _paired(self, spans: FlatSpans, sample: _Sample, gold: GoldSpans) -> Match:
        """Which entity judges a moved span?"""
        if self.settings.pairing == "all":
            return best_gold(spans, gold)
        match = sample.match
        if self.settings.pairing == "seed":
            return Match(iou(spans.spans, match.spans), match.spans, match.labels)
        own = torch.where(sample.positive[:, None], match.spans, sample.seeds.spans)
        labels = torch.where(sample.positive, match.labels, 0)
        return Match(iou(spans.spans, own), own, labels)

    def _soft_weights(self, overlap: Tensor, positive: Tensor) -> Tensor:
        """Eq. 11: a clear example counts in full, a doubtful one less."""
        return torch.where(positive, overlap, 1 - overlap) ** self.settings.soft_exponent

    def _reduce(self, losses: Float[Tensor, " span"], weight: float, sample: _Sample) -> Loss:
        count = len(losses) if self.settings.reduction == "mean" else sample.sentences
        return Loss.from_sum(weight * losses.sum(), count)
