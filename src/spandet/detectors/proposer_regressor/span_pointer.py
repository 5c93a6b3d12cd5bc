"""A distribution over all spans of a sentence for each of many proposals (eq. 22)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.spatial_attention import FLOOR, Gaussian, GaussianHead

_CHUNK_CELLS = 1 << 22


@dataclass(frozen=True)
class SpanScores:
    """How well every span suits every proposal, in a form that is quadratic at most.

    The score of a span is starts[start] + ends[end - 1] + cross · (start - μ₀) · (end - μ₁): the
    Gaussian's quadratic form, expanded, leaves only one term that both boundaries share.
    """

    starts: Float[Tensor, "*proposals word"]
    ends: Float[Tensor, "*proposals word"]
    cross: Float[Tensor, "*proposals"]
    centre: Float[Tensor, "*proposals 2"]
    lengths: Int[Tensor, "*proposals"]
    """Words of each proposal's sentence."""
    max_width: int | None
    """Widest span that there is; None: all."""

    def where(self, chosen: Bool[Tensor, "*proposals"]) -> "SpanScores":
        """The chosen proposals in one flat list."""
        return replace(
            self,
            starts=self.starts[chosen],
            ends=self.ends[chosen],
            cross=self.cross[chosen],
            centre=self.centre[chosen],
            lengths=self.lengths[chosen],
        )

    def at(self, spans: Int[Tensor, "*proposals span 2"]) -> Float[Tensor, "*proposals span"]:
        """The scores of some spans for each proposal."""
        first, end = spans.unbind(dim=-1)
        near = spans - self.centre[..., None, :]
        shared = self.cross[..., None] * near[..., 0] * near[..., 1]
        return self.starts.gather(-1, first) + self.ends.gather(-1, end - 1) + shared

    def log_totals(self) -> Float[Tensor, " proposal"]:
        """The logarithm of the sum over all spans, for a flat list of proposals."""
        return torch.cat([part.flatten(1).logsumexp(dim=1) for part in self._bands()])

    def best(
        self, count: int
    ) -> tuple[Int[Tensor, "proposal best 2"], Float[Tensor, "proposal best"]]:
        """The most probable spans for each of a flat list of proposals, with log probabilities."""
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
        """The scores of all spans, some proposals at a time; -inf where there is no such span."""
        words = self.starts.shape[1]
        if not words:
            yield self.starts.new_zeros(len(self.starts), 1, 1)  # of nobody
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
    """Scores spans by how well their boundary words answer a query, and by a prior place."""

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
        """Eq. 22, before the softmax, with its quadratic form expanded."""
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
