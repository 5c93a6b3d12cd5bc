"""The prediction head (section 3.4): for each proposal label logits, and a score for every span."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.choices import FLOOR
from spandet.layers.regressor import Gaussian, GaussianHead, Proposals, mlp
from spandet.tensors import WordFeatures, at_least_float32

_CHUNK_CELLS = 1 << 22


@dataclass(frozen=True)
class SpanScores:
    """The logits r(s, e) of all spans for each proposal, without a table of all spans.

    r(s, e) = starts[s] + ends[e - 1] + cross · (s - μ₀) · (e - μ₁), with an exclusive end e. Of the
    Gaussian's quadratic form, only one term depends on both boundaries.
    """

    starts: Float[Tensor, "*proposals word"]
    ends: Float[Tensor, "*proposals word"]
    cross: Float[Tensor, "*proposals"]
    centre: Float[Tensor, "*proposals 2"]
    lengths: Int[Tensor, "*proposals"]
    """Number of words in the sentence of each proposal."""
    max_width: int | None
    """Number of words of the widest span; None: no limit."""

    def where(self, chosen: Bool[Tensor, "*proposals"]) -> "SpanScores":
        """The scores of the chosen proposals, in one flat list."""
        return replace(
            self,
            starts=self.starts[chosen],
            ends=self.ends[chosen],
            cross=self.cross[chosen],
            centre=self.centre[chosen],
            lengths=self.lengths[chosen],
        )

    def at(self, spans: Int[Tensor, "*proposals span 2"]) -> Float[Tensor, "*proposals span"]:
        """The logits of the given spans of each proposal."""
        first, end = spans.unbind(dim=-1)
        near = spans - self.centre[..., None, :]
        shared = self.cross[..., None] * near[..., 0] * near[..., 1]
        return self.starts.gather(-1, first) + self.ends.gather(-1, end - 1) + shared

    def log_totals(self) -> Float[Tensor, " proposal"]:
        """The logarithm of the softmax denominator in eq. 22, for a flat list of proposals."""
        return torch.cat([part.flatten(1).logsumexp(dim=1) for part in self._bands()])

    def best(
        self, count: int
    ) -> tuple[Int[Tensor, "proposal best 2"], Float[Tensor, "proposal best"]]:
        """The most probable spans of each of a flat list of proposals, with log p^n."""
        spans, scores, totals = [], [], []
        for band in self._bands():
            flat = band.flatten(1)
            top = flat.topk(min(count, flat.shape[1]), dim=1)
            first, extra = top.indices // band.shape[2], top.indices % band.shape[2]
            spans.append(torch.stack([first, first + extra + 1], dim=-1))
            scores.append(top.values)
            totals.append(flat.logsumexp(dim=1))
        return torch.cat(spans), torch.cat(scores) - torch.cat(totals)[:, None]

    def _bands(self) -> Iterator[Float[Tensor, "proposal word width"]]:
        """The logits of all spans by first word and width, for some proposals at a time.

        Spans that exceed their sentence have the logit -inf.
        """
        words = self.starts.shape[1]
        if not words:
            yield self.starts.new_zeros(len(self.starts), 1, 1)  # there are no proposals, either
            return
        width = min(self.max_width or words, words)
        size = max(_CHUNK_CELLS // (words * width), 1)
        first = torch.arange(words, device=self.starts.device)
        end = first[:, None] + 1 + first[:width]  # word width
        for begin in range(0, max(len(self.starts), 1), size):
            part = slice(begin, begin + size)
            real = first < self.lengths[part, None]
            ends = self.ends[part].masked_fill(~real, -torch.inf)
            reached = F.pad(ends, (0, width - 1), value=-torch.inf).unfold(1, width, 1)
            centre = self.centre[part, :, None, None]
            lever = self.cross[part, None] * (first - centre[:, 0, :, 0])  # proposal word
            band = torch.addcmul(reached, lever[..., None], end - centre[:, 1])
            yield band + self.starts[part, :, None]


class SpanPointer(nn.Module):
    """The joint pointer network: scores of all spans by their boundary words and a Gaussian."""

    def __init__(
        self, *, dim: int, tied: bool, max_width: int | None, floor: float = FLOOR
    ) -> None:
        super().__init__()
        self.ask = nn.Linear(dim, 2 * dim)
        self.answer = None if tied else nn.Linear(dim, 2 * dim)
        self.locator = GaussianHead(dim, floor=floor)
        self.max_width = max_width

    def forward(
        self,
        queries: Float[Tensor, "batch span dim"],
        soft_spans: Float[Tensor, "batch span 2"],
        words: Float[Tensor, "batch word dim"],
        lengths: Int[Tensor, " batch"],
    ) -> SpanScores:
        """Eq. 22: r(s, e) = log G(s, e) + g(s, e) / √d, with the quadratic form expanded."""
        ask_start, ask_end = self.ask(queries).chunk(2, dim=-1)
        answers = (self.ask if self.answer is None else self.answer)(words)
        answer_start, answer_end = (answers / words.shape[-1] ** 0.5).chunk(2, dim=-1)
        gaussian: Gaussian = self.locator(queries, soft_spans)
        of_start, of_both, of_end = gaussian.precision[..., None, :].unbind(dim=-1)
        position = torch.arange(words.shape[1], device=words.device)
        before = position - gaussian.centre[..., :1]
        after = position + 1 - gaussian.centre[..., 1:]
        return SpanScores(
            starts=ask_start @ answer_start.transpose(1, 2) - of_start * before * before,
            ends=ask_end @ answer_end.transpose(1, 2) - of_end * after * after,
            cross=-2 * of_both.squeeze(-1),
            centre=gaussian.centre,
            lengths=lengths[:, None].expand(queries.shape[:2]),
            max_width=self.max_width,
        )


@dataclass(frozen=True)
class HeadOutput:
    """The head's output for each proposal; softmax of the two gives p^c and p^n."""

    label_logits: Float[Tensor, "batch span label"]
    span_scores: SpanScores
    mask: Bool[Tensor, "batch span"]


class EntityHead(nn.Module):
    """Label logits of each proposal, and scores of all spans of the encoder's words."""

    def __init__(
        self, *, dim: int, labels: int, tied: bool, max_width: int | None, floor: float = FLOOR
    ) -> None:
        super().__init__()
        self.label_change = mlp(dim, labels)
        self.pointer = SpanPointer(dim=dim, tied=tied, max_width=max_width, floor=floor)

    def forward(self, state: Proposals, words: WordFeatures) -> HeadOutput:
        """The output for the proposals of the last layer."""
        queries = state.queries
        logits = at_least_float32(state.label_logits + self.label_change(queries))  # eq. 21: c + Δc
        scores: SpanScores = self.pointer(queries, state.soft_spans, words.features, words.lengths)
        return HeadOutput(logits, scores, state.mask)
