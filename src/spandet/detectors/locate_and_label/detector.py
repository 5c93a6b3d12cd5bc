"""Locate and Label: a two-stage identifier (Shen et al., ACL 2021).

The code follows the paper's figure from left to right; numbers of sections and equations are the
paper's. tests/papers/locate_and_label_paper.py has each equation as a plain function, and
docs/methods/locate-and-label.md lists where each of them is computed.

    seed spans → filter → boundary regressor → adjusted spans → entity classifier

| symbol | here | meaning |
|---|---|---|
| h_i | `words.features` | vector of word i |
| b_i = (st_i, ed_i) | `seeds` | seed span; here half-open, ed_i + 1 |
| e_i | `sample.match` | gold entity with the largest IoU |
| p_i^filter | sigmoid of `_filter_logits` | probability that a seed is a span proposal |
| t_i = (t^l, t^r) | `offsets` | predicted shift of the left and the right boundary |
| s̃t_i, ẽd_i | `adjusted.spans` | boundaries after the shift, in whole words |
| p_i | softmax of `_label_logits` | class probabilities; class 0 is NONE |
| w_i | `_soft_weights` | weight of an example |
| α1, α2 | `seed_overlap`, `label_overlap` | IoU of a positive seed, of a positive adjusted span |
| η, γ | `soft_exponent`, `focal` | exponent of the weights, of the focal loss |
| λ1, λ3 | `filter_weight`, `label_weight` | weights of the filter and the classifier loss |
| λ2 | `boundary_weight`, `overlap_weight` | weight of the regressor loss |
| u, k, δ | `nms_decay`, `nms_overlap`, `threshold` of `[decoding]` | Soft-NMS and final threshold |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spandet.detectors.base import Detector
from spandet.detectors.locate_and_label.seeds import (
    Match,
    Sample,
    best_gold,
    sample_seeds,
    seed_spans,
)
from spandet.detectors.locate_and_label.settings import LocateAndLabelSettings
from spandet.layers.span_head import SpanHead
from spandet.layers.span_view import SpanView
from spandet.spans.coordinates import clamped, legal, to_words
from spandet.spans.flat import FlatSpans, to_rows
from spandet.spans.overlap import iou, signed_iou
from spandet.tensors import (
    GoldSpans,
    Loss,
    Losses,
    SpanPredictions,
    Stage,
    WordFeatures,
    at_least_float32,
)


@dataclass(frozen=True)
class Adjusted:
    """Spans after the regressor, and which of them have legal boundaries."""

    spans: FlatSpans
    legal: Bool[Tensor, " span"]


class LocateAndLabel(Detector):
    """Locate entities (filter and regressor), then label them (classifier)."""

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
        if self.regressor is not None:  # training starts with offsets near 0
            nn.init.normal_(self.regressor.out.weight, std=1e-3)

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Compute the losses of section 2.5, each with its λ: the terms of the sum in eq. 17."""
        view = SpanView(words)
        sample = self._sample(words, gold, rngs)
        losses: dict[str, Loss] = {}
        if self.filter is not None:
            logits = self._filter_logits(view, sample.seeds)
            losses["filter"] = self._filter_loss(logits, sample)
        offsets = self._offsets(view, sample.seeds)
        adjusted = self._adjusted(sample.seeds, offsets, view)
        if self.regressor is not None:
            losses |= self._regressor_losses(offsets, adjusted.legal, sample)
        logits = self._label_logits(view, adjusted.spans)
        losses["label"] = self._label_loss(logits, adjusted, sample, gold)
        return losses

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Classify the adjusted spans of the seeds that pass the filter."""
        del rngs  # nothing here is random
        view = SpanView(words)
        seeds = self._seeds(words, self.settings.eval_lengths or self.settings.lengths)
        filter_probs = torch.ones_like(seeds.sentence, dtype=words.features.dtype)
        kept = torch.ones_like(seeds.sentence, dtype=torch.bool)
        if self.filter is not None:
            filter_probs = self._filter_logits(view, seeds).sigmoid()
            kept = filter_probs > self.settings.filter_threshold
            if not keep_all:  # before the costlier steps
                seeds, filter_probs, kept = seeds.select(kept), filter_probs[kept], kept[kept]
        offsets = self._offsets(view, seeds)
        adjusted = self._adjusted(seeds, offsets, view)
        probs = self._label_logits(view, adjusted.spans).softmax(dim=-1)
        if self.settings.illegal == "discard":
            none = F.one_hot(torch.zeros_like(seeds.sentence), probs.shape[1])
            probs = torch.where(adjusted.legal[:, None], probs, none.to(probs.dtype))
        batch, seed_places = len(words.mask), seeds.spans.to(offsets.dtype)

        def rows(values: Tensor) -> Tensor:
            return to_rows(values, seeds.sentence, batch)[0]

        trace = (
            Stage("seed", rows(seed_places), scores=rows(filter_probs)),
            Stage("adjusted", rows(seed_places + offsets), label_probs=rows(probs)),
        )
        return SpanPredictions(rows(adjusted.spans.spans), rows(probs), rows(kept), trace)

    # Section 2.2: seed span generation

    def _seeds(self, words: WordFeatures, lengths: Sequence[int]) -> FlatSpans:
        return seed_spans(words, lengths, clip=self.settings.clip_seeds)

    def _sample(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Sample:
        seeds = self._seeds(words, self.settings.lengths)
        return sample_seeds(seeds, gold, self.settings, rngs)

    # Section 2.3: span proposal module

    def _filter_logits(self, view: SpanView, seeds: FlatSpans) -> Float[Tensor, " span"]:
        """Eqs. 1-3: logit of p^filter, from [pooled words; first word; last word]."""
        assert self.filter is not None  # noqa: S101 (called only with a filter)
        return view.inner(self.filter, seeds).squeeze(-1)

    def _offsets(self, view: SpanView, seeds: FlatSpans) -> Float[Tensor, "span 2"]:
        """Eqs. 4-5: t, from [pooled words; word before the span; word after it]."""
        if self.regressor is None:
            return torch.zeros_like(seeds.spans, dtype=torch.float32)
        # Positions are counted in words: bfloat16 cannot represent 257.
        offsets = at_least_float32(view.outer(self.regressor, seeds))
        match self.settings.offset_activation:
            case "linear":
                return offsets
            case "tanh_n":
                return offsets.tanh() * view.lengths[seeds.sentence, None]
            case "sigmoid_n":
                return offsets.sigmoid() * view.lengths[seeds.sentence, None]

    # Section 2.4: entity classifier module

    def _adjusted(self, seeds: FlatSpans, offsets: Tensor, view: SpanView) -> Adjusted:
        """Eqs. 6-7: boundaries in whole words. Rounding passes no gradient to the regressor."""
        spans = to_words(seeds.spans + offsets)
        lengths = view.lengths[seeds.sentence]
        within = legal(spans, lengths)
        if self.settings.illegal == "clamp":
            spans, within = clamped(spans, seeds.spans, lengths), torch.ones_like(within)
        else:
            spans = torch.where(within[:, None], spans, seeds.spans)
        return Adjusted(FlatSpans(seeds.sentence, spans), within)

    def _label_logits(self, view: SpanView, spans: FlatSpans) -> Float[Tensor, "span label"]:
        """Eqs. 8-10: logits of p, from [pooled words; first word; last word]."""
        return view.inner(self.classifier, spans)

    def _paired(self, spans: FlatSpans, sample: Sample, gold: GoldSpans) -> Match:
        """The entity that each adjusted span is compared with, according to `pairing`."""
        if self.settings.pairing == "all":
            return best_gold(spans, gold)
        match = sample.match
        if self.settings.pairing == "seed":
            return Match(iou(spans.spans, match.spans), match.spans, match.labels)
        own = torch.where(sample.positive[:, None], match.spans, sample.seeds.spans)
        labels = torch.where(sample.positive, match.labels, 0)
        return Match(iou(spans.spans, own), own, labels)

    # Section 2.5: training objective

    def _soft_weights(self, overlap: Tensor, positive: Tensor) -> Tensor:
        """Eq. 11: w, which is 1 for an IoU of 0 or 1 and smaller for a partial match."""
        return torch.where(positive, overlap, 1 - overlap) ** self.settings.soft_exponent

    def _filter_loss(self, logits: Tensor, sample: Sample) -> Loss:
        """Eq. 12: weighted focal loss."""
        log_probs = F.logsigmoid(torch.where(sample.positive, logits, -logits))
        focal = -((1 - log_probs.exp()) ** self.settings.focal) * log_probs
        weights = self._soft_weights(sample.match.iou, sample.positive)
        return self._reduce(weights * focal, self.settings.filter_weight, sample)

    def _regressor_losses(self, offsets: Tensor, within: Tensor, sample: Sample) -> Losses:
        """Eqs. 13-15 on positive seeds: the boundary loss L_f1 and the overlap loss L_olp."""
        chosen = sample.positive & within
        seeds, gold = sample.seeds.spans[chosen], sample.match.spans[chosen]
        offsets = offsets[chosen]
        boundary = F.smooth_l1_loss(offsets, (gold - seeds).to(offsets.dtype), reduction="none")
        boundary = boundary.sum(dim=1)
        if self.settings.soft_offsets:
            boundary = boundary * sample.match.iou[chosen] ** self.settings.soft_exponent
        overlap = 1 - signed_iou(seeds + offsets, gold.to(offsets.dtype))
        return {
            "boundary": self._reduce(boundary, self.settings.boundary_weight, sample),
            "overlap": self._reduce(overlap, self.settings.overlap_weight, sample),
        }

    def _label_loss(
        self, logits: Tensor, adjusted: Adjusted, sample: Sample, gold: GoldSpans
    ) -> Loss:
        """Eq. 16: weighted cross-entropy of the adjusted spans."""
        match = self._paired(adjusted.spans, sample, gold)
        hit = match.iou >= self.settings.label_overlap
        labels = torch.where(hit & adjusted.legal & (match.labels > 0), match.labels, 0)
        log_probs = logits.log_softmax(dim=-1).gather(1, labels[:, None]).squeeze(1)
        loss = -log_probs
        if self.settings.label_loss == "focal":
            loss = loss * (1 - log_probs.exp()) ** self.settings.focal
        loss = loss * self._soft_weights(match.iou, hit)
        if not self.settings.label_illegal:
            loss = loss[adjusted.legal]
        return self._reduce(loss, self.settings.label_weight, sample)

    def _reduce(self, losses: Float[Tensor, " span"], weight: float, sample: Sample) -> Loss:
        count = len(losses) if self.settings.reduction == "mean" else sample.sentences
        return Loss.from_sum(weight * losses.sum(), count)
