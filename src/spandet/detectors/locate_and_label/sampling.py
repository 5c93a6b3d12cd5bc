"""Which candidates take part in a training step."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from spandet.tensors import GoldSpans


def any_by_sentence(hits: Tensor, sentence: Tensor, batch: int) -> Bool[Tensor, "batch gold"]:
    """Is there a span of the sentence that hits each gold entity?"""
    counts = torch.zeros(batch, hits.shape[1], dtype=torch.long, device=hits.device)
    return counts.index_add_(0, sentence, hits.long()) > 0


def first_labels(gold: GoldSpans) -> Bool[Tensor, "batch gold"]:
    """The entities that are the first on their span: one for each span, whatever its labels."""
    same = (gold.spans[:, :, None] == gold.spans[:, None]).all(dim=-1) & gold.mask[:, None]
    return gold.mask & ~same.tril(diagonal=-1).any(dim=2)


def best_seeds(
    shared: Float[Tensor, "span gold"],
    sentence: Int[Tensor, " span"],
    gold: GoldSpans,
    enough: float,
) -> Bool[Tensor, " span"]:
    """The seeds that overlap most with an entity which no seed overlaps enough."""
    best = torch.zeros_like(gold.labels, dtype=shared.dtype)
    best = best.scatter_reduce(0, sentence[:, None].expand_as(shared), shared, "amax")
    poor = gold.mask & (best > 0) & (best <= enough)
    return (poor[sentence] & (shared == best[sentence])).any(dim=1)


def draw(
    able: Bool[Tensor, " span"],
    sentence: Int[Tensor, " span"],
    quota: Float[Tensor, " batch"],
    rngs: Sequence[Generator],
) -> Bool[Tensor, " span"]:
    """Up to `quota` of the spans that are able, drawn with each sentence's own generator."""
    counts = torch.bincount(sentence, minlength=len(quota))
    drawn = [torch.rand(n, generator=rng) for n, rng in zip(counts.tolist(), rngs, strict=True)]
    keys = torch.cat(drawn).to(sentence.device) if drawn else sentence.float()
    order = (sentence * 4 + torch.where(able, keys, 2).double()).argsort()
    first = counts.cumsum(0) - counts
    rank = torch.empty_like(sentence)
    rank[order] = torch.arange(len(sentence), device=sentence.device) - first[sentence]
    return able & (rank < quota[sentence])
