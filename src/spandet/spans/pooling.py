"""Pooled word vectors of spans, looked up in tables per sentence, without span × word masks."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import BackwardCFunction, FunctionCtx
from torch.nn import functional as F

from spandet.spans.choices import MAX_EXPORTED_WORDS
from spandet.spans.flat import FlatSpans, from_rows


class _Larger(torch.autograd.Function):
    """`torch.maximum` with a faster backward pass: a quarter of the time on a CPU.

    Of two equal numbers the first gets the whole gradient, instead of a half each.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, first: Tensor, second: Tensor) -> Tensor:
        """Element-wise maximum."""
        ctx.save_for_backward(torch.ge(first, second, out=torch.empty_like(first)))
        return torch.maximum(first, second)

    @staticmethod
    def backward(ctx: BackwardCFunction, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Pass the gradient to the larger of each pair."""
        (was_first,) = ctx.saved_tensors
        own = grad * was_first
        return own, grad - own


def _larger(first: Tensor, second: Tensor) -> Tensor:
    if torch.is_grad_enabled() and first.requires_grad:
        return _Larger.apply(first, second)  # type: ignore[no-any-return, no-untyped-call]
    return torch.maximum(first, second)


class RangeMaximum:
    """Element-wise maxima of word vectors over any span, from windows of 1, 2, 4, … words.

    A span is covered by two windows of the largest power of two that fits; they may overlap, which
    does not change a maximum. So each query is two look-ups.
    """

    def __init__(self, features: Float[Tensor, "batch word dim"], longest: int) -> None:
        self._words = features.shape[1]
        if torch.compiler.is_exporting():  # a graph has the same levels for all lengths
            levels = _exported_levels(features)
        else:
            levels = _levels(features, min(longest, self._words))
        self._table = torch.stack(levels).flatten(0, 2)  # level·batch·word dim
        self._level_size = features.shape[0] * self._words
        self._levels = len(levels)

    def inside(self, spans: FlatSpans) -> Float[Tensor, "span dim"]:
        """The maximum over the words of each span; an empty span is the word at its position."""
        lengths = spans.ends - spans.starts
        widths = 2 ** torch.arange(self._levels, device=lengths.device)
        level = (lengths[:, None] >= widths[1:]).sum(dim=1)  # of the widest window that fits
        base = level * self._level_size + spans.sentence * self._words
        right = torch.maximum(spans.ends - widths[level], spans.starts)
        first = self._table.index_select(0, base + spans.starts)
        second = self._table.index_select(0, base + right)
        return _larger(first, second)


def _levels(features: Tensor, longest: int) -> list[Tensor]:
    """Maxima of windows of 1, 2, 4, … words from each position, up to `longest`."""
    levels = [features]
    width = 1
    while 2 * width <= longest:
        last = levels[-1]
        grown = _larger(last[:, :-width], last[:, width:])
        # The last positions have no complete window of the new size; no query reads them.
        levels.append(torch.cat([grown, last[:, -width:]], dim=1))
        width *= 2
    return levels


def _exported_levels(features: Tensor) -> list[Tensor]:
    """The same for sentences of up to `MAX_EXPORTED_WORDS` words, whatever their length is."""
    levels = [features]
    width = 1
    while 2 * width <= MAX_EXPORTED_WORDS:
        last = levels[-1]
        levels.append(torch.maximum(last, F.pad(last, (0, 0, 0, width))[:, width:]))
        width *= 2
    return levels


class RangeMean:
    """Means of word vectors over any span, from prefix sums: two look-ups each."""

    def __init__(self, features: Float[Tensor, "batch word dim"]) -> None:
        # Half precision is too coarse for sums over many words and for their count.
        wide = torch.promote_types(features.dtype, torch.float32)
        self._sums = F.pad(features.cumsum(dim=1, dtype=wide), (0, 0, 1, 0))  # word+1
        self._dtype = features.dtype

    def inside(self, spans: Int[Tensor, "batch span 2"]) -> Float[Tensor, "batch span dim"]:
        """The mean over the words of each span."""
        starts, ends = spans.unbind(dim=-1)
        total = at_words(self._sums, ends) - at_words(self._sums, starts)
        return (total / (ends - starts).clamp(min=1)[..., None]).to(self._dtype)


class RowMaximum:
    """Maxima of word vectors over spans in rows."""

    def __init__(self, features: Float[Tensor, "batch word dim"]) -> None:
        self._table = RangeMaximum(features, features.shape[1])

    def inside(self, spans: Int[Tensor, "batch span 2"]) -> Float[Tensor, "batch span dim"]:
        """The maximum over the words of each span."""
        return self._table.inside(from_rows(spans)).view(*spans.shape[:2], -1)


def at_words(
    features: Float[Tensor, "batch word dim"], index: Int[Tensor, "batch span"]
) -> Float[Tensor, "batch span dim"]:
    """The vector of one word for each span."""
    rows = torch.arange(len(features), device=features.device)[:, None]
    return features[rows, index]
