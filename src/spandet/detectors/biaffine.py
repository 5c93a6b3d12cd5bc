"""Biaffine: classify every span by its first and its last word (Yu et al., ACL 2020).

The baseline: spans are neither proposed nor refined.
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spandet.detectors.base import Detector
from spandet.detectors.biaffine_settings import BiaffineSettings
from spandet.layers.dropout import Dropout
from spandet.layers.label_losses import smoothed_labels
from spandet.spans.flat import FlatSpans, to_rows
from spandet.tensors import GoldSpans, Loss, Losses, SpanPredictions, Stage, WordFeatures


class Biaffine(Detector):
    """Two vectors per word, and a bilinear form of them per label."""

    def __init__(
        self, settings: BiaffineSettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        del sentence_dim  # not used
        self.settings = settings

        def projection() -> nn.Sequential:
            activation = nn.GELU() if settings.activation == "gelu" else nn.Identity()
            dropout = Dropout(settings.dropout)
            return nn.Sequential(dropout, nn.Linear(dim, settings.dim), activation, dropout)

        self.first, self.last = projection(), projection()
        # For each label the weights of the last word's vector and a bias.
        self.weights = nn.Linear(settings.dim, labels * (settings.dim + 1))

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Cross-entropy, summed over all spans and divided by the number of words."""
        del rngs  # nothing here is random
        spans, logits = self._scored(words)
        targets = smoothed_labels(spans, gold, logits.shape[1], self.settings.smoothing)
        loss = F.cross_entropy(logits, targets.to(logits.dtype), reduction="sum")
        return {"label": Loss.from_sum(loss, words.mask.sum())}

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """All spans that `min_odds` keeps, with label probabilities."""
        del rngs  # nothing here is random
        spans, logits = self._scored(words)
        probs = logits.softmax(dim=-1)
        kept = probs[:, 1:].amax(dim=-1) > self.settings.min_odds * probs[:, 0]
        if not keep_all:
            spans, probs, kept = spans.select(kept), probs[kept], kept[kept]

        def rows(values: Tensor) -> Tensor:
            return to_rows(values, spans.sentence, len(words.mask))[0]

        places, label_probs = rows(spans.spans), rows(probs)
        stage = Stage("scored", places.float(), label_probs=label_probs)
        return SpanPredictions(places, label_probs, rows(kept), (stage,))

    def detect_in_graph(
        self, words: WordFeatures, inputs: Mapping[str, Tensor]
    ) -> SpanPredictions | None:
        """The same with all spans up to `max_width` in the rows; needs a `max_width`."""
        del inputs  # it needs none
        width = self.settings.max_width
        if not width:
            return None
        logits, real = self._band(words, width)
        probs = logits.softmax(dim=-1)  # batch word width label
        kept = probs[..., 1:].amax(dim=-1) > self.settings.min_odds * probs[..., 0]
        starts = torch.arange(words.mask.shape[1], device=real.device)[:, None]
        ends = starts + torch.arange(1, width + 1, device=real.device)
        spans = torch.stack([starts.expand_as(ends), ends], dim=-1).expand(*real.shape, 2)
        return SpanPredictions(spans.flatten(1, 2), probs.flatten(1, 2), (real & kept).flatten(1))

    def _scored(self, words: WordFeatures) -> tuple[FlatSpans, Float[Tensor, "span label"]]:
        """Logits of all spans up to `max_width`."""
        words = words.with_padding()
        count = words.mask.shape[1]
        logits, real = self._band(words, min(self.settings.max_width or count, count))
        sentence, start, more = real.nonzero(as_tuple=True)
        spans = torch.stack([start, start + more + 1], dim=1)
        return FlatSpans(sentence, spans), logits[real]

    def _band(
        self, words: WordFeatures, width: int
    ) -> tuple[Float[Tensor, "batch word width label"], Bool[Tensor, "batch word width"]]:
        """Logits of spans by first word and width, and which of them are in their sentence."""
        size = self.settings.dim + 1
        weights = self.weights(self.first(words.features)).unflatten(2, (-1, size))
        last = F.pad(self.last(words.features), (0, 0, 0, width - 1)).unfold(1, width, 1)
        logits = weights[..., :-1] @ last + weights[..., -1:]  # batch word label width
        real = F.pad(words.mask, (0, width - 1)).unfold(1, width, 1)  # batch word width
        return logits.transpose(2, 3), real
