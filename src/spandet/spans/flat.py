"""Spans of a batch: a flat list with sentence indices, or padded rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor


@dataclass(frozen=True)
class FlatSpans:
    """The spans of a batch in one list, sentence by sentence."""

    sentence: Int[Tensor, " span"]
    spans: Int[Tensor, "span 2"]

    @property
    def starts(self) -> Int[Tensor, " span"]:
        """First words."""
        return self.spans[:, 0]

    @property
    def ends(self) -> Int[Tensor, " span"]:
        """One past the last words."""
        return self.spans[:, 1]

    def select(self, chosen: Bool[Tensor, " span"] | Int[Tensor, " chosen"]) -> "FlatSpans":
        """The spans of a mask or index."""
        return FlatSpans(self.sentence[chosen], self.spans[chosen])


def enumerate_spans(
    word_counts: Sequence[int], lengths: Sequence[int], *, clip: bool = True
) -> FlatSpans:
    """All spans of the given lengths in every sentence, without duplicates.

    With `clip`, spans that exceed the end of a sentence are clipped; otherwise they are left out.
    """
    grids = [_grid(count, tuple(lengths), clip) for count in word_counts]
    sizes = torch.tensor([len(grid) for grid in grids], dtype=torch.long)
    sentence = torch.arange(len(grids)).repeat_interleave(sizes)
    return FlatSpans(sentence, torch.cat(grids) if grids else torch.zeros(0, 2, dtype=torch.long))


@lru_cache(maxsize=4096)
def _grid(words: int, lengths: tuple[int, ...], clip: bool) -> Int[Tensor, "span 2"]:
    starts = torch.arange(words).repeat(len(lengths))
    reach = torch.tensor(lengths, dtype=torch.long).repeat_interleave(words)
    spans = torch.stack([starts, (starts + reach).clamp(max=words)], dim=1)
    if not clip:
        spans = spans[starts + reach <= words]
    # Clipped spans can repeat each other or an unclipped span.
    seen: dict[tuple[int, int], None] = dict.fromkeys(map(tuple, spans.tolist()))
    return torch.tensor(list(seen), dtype=torch.long).reshape(-1, 2)


def to_rows(
    values: Shaped[Tensor, "span *rest"], sentence: Int[Tensor, " span"], batch: int
) -> tuple[Shaped[Tensor, "batch most *rest"], Bool[Tensor, "batch most"]]:
    """One padded row per sentence, and its mask. `sentence` must be sorted."""
    sizes = torch.bincount(sentence, minlength=batch)
    first = sizes.cumsum(0) - sizes
    column = torch.arange(len(sentence), device=sentence.device) - first[sentence]
    most = int(sizes.max()) if batch else 0
    rows = values.new_zeros((batch, most, *values.shape[1:]))
    rows[sentence, column] = values
    mask = torch.arange(most, device=sentence.device) < sizes[:, None]
    return rows, mask


def from_rows(
    spans: Int[Tensor, "batch span 2"], mask: Bool[Tensor, "batch span"] | None = None
) -> FlatSpans:
    """Concatenate rows of spans to a flat list; with a mask, without padding."""
    rows = torch.arange(spans.shape[0], device=spans.device)
    sentence = rows[:, None].expand(-1, spans.shape[1]).flatten()
    flat = FlatSpans(sentence, spans.flatten(0, 1))
    return flat if mask is None else flat.select(mask.flatten())


def distinct(lists: Sequence[FlatSpans]) -> FlatSpans:
    """All spans of several lists without duplicates, sorted."""
    starts, ends = torch.cat([each.spans for each in lists]).unbind(dim=1)
    size = 1 + int(ends.max()) if len(ends) else 1
    sentence = torch.cat([each.sentence for each in lists])
    keys: Tensor = torch.unique((sentence * size + starts) * size + ends)
    spans = torch.stack([keys // size % size, keys % size], dim=1)
    return FlatSpans(keys // size // size, spans)


def count_mask(numbers: Sequence[int]) -> Bool[Tensor, "batch span"]:
    """Mask of rows with the given numbers of entries, with at least one column."""
    most = max([1, *numbers])
    return torch.arange(most) < torch.tensor(numbers, dtype=torch.long)[:, None]
