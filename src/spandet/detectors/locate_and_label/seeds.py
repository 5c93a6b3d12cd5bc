"""Section 2.2: seed spans, the entity of each seed, and the seeds that a training step uses."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from spandet.detectors.locate_and_label.settings import LocateAndLabelSettings
from spandet.spans.flat import FlatSpans, enumerate_spans
from spandet.spans.overlap import iou
from spandet.tensors import GoldSpans, WordFeatures


@dataclass(frozen=True)
class Match:
    """The gold entity that each span overlaps most.

    A span that overlaps no entity has IoU 0, the empty span 0:0 and label 0, independent of the
    padding of the batch.
    """

    iou: Float[Tensor, " span"]
    spans: Int[Tensor, "span 2"]
    labels: Int[Tensor, " span"]


@dataclass(frozen=True)
class Sample:
    """The seeds of a training step, each with its entity."""

    seeds: FlatSpans
    match: Match
    positive: Bool[Tensor, " span"]
    sentences: int
    """Number of sentences in the batch."""


def seed_spans(words: WordFeatures, lengths: Sequence[int], *, clip: bool) -> FlatSpans:
    """All spans of the given lengths, on the device of `words`."""
    seeds = enumerate_spans(words.lengths.tolist(), lengths, clip=clip)
    device = words.mask.device
    return FlatSpans(seeds.sentence.to(device), seeds.spans.to(device))


def sample_seeds(
    seeds: FlatSpans,
    gold: GoldSpans,
    settings: LocateAndLabelSettings,
    rngs: Sequence[Generator],
) -> Sample:
    """All positive seeds, a random choice of negative seeds, and gold spans that equal no seed."""
    match = best_gold(seeds, gold)
    positive = match.iou > settings.seed_overlap
    overlap = pairwise_iou(seeds, gold)
    if settings.rescue_gold:
        positive = positive | _best_seeds(overlap, seeds.sentence, gold, settings.seed_overlap)
    missing = gold.mask & ~_any_by_sentence(overlap == 1, seeds.sentence, len(gold.mask))
    if settings.inject_once:
        missing = missing & _first_labels(gold)
    if not settings.inject_gold:
        missing = torch.zeros_like(missing)
    counts = torch.bincount(seeds.sentence[positive], minlength=len(gold.mask))
    quota = settings.negative_ratio * (counts + missing.sum(dim=1)) + settings.negative_extra
    chosen = positive | draw(~positive, seeds.sentence, quota, rngs)
    sentence, index = missing.nonzero(as_tuple=True)
    injected = gold.spans[sentence, index]
    return Sample(
        FlatSpans(
            torch.cat([seeds.sentence[chosen], sentence]),
            torch.cat([seeds.spans[chosen], injected]),
        ),
        Match(
            torch.cat([match.iou[chosen], torch.ones_like(sentence, dtype=match.iou.dtype)]),
            torch.cat([match.spans[chosen], injected]),
            torch.cat([match.labels[chosen], gold.labels[sentence, index]]),
        ),
        torch.cat([positive[chosen], torch.ones_like(sentence, dtype=torch.bool)]),
        len(gold.mask),
    )


def pairwise_iou(spans: FlatSpans, gold: GoldSpans) -> Float[Tensor, "span gold"]:
    """IoU of each span with the gold entities of its sentence; 0 for padding."""
    overlap = iou(spans.spans[:, None], gold.spans[spans.sentence])
    return overlap * gold.mask[spans.sentence]


def best_gold(spans: FlatSpans, gold: GoldSpans) -> Match:
    """Match each span with the entity of the largest IoU; among equal ones with the first."""
    if gold.spans.shape[1] == 0:
        zeros = torch.zeros_like(spans.sentence)
        return Match(zeros.float(), torch.zeros_like(spans.spans), zeros)
    best, index = pairwise_iou(spans, gold).max(dim=1)
    overlaps, place = best > 0, (spans.sentence, index)
    return Match(best, gold.spans[place] * overlaps[:, None], gold.labels[place] * overlaps)


def draw(
    candidates: Bool[Tensor, " span"],
    sentence: Int[Tensor, " span"],
    quota: Float[Tensor, " batch"],
    rngs: Sequence[Generator],
) -> Bool[Tensor, " span"]:
    """Draw up to `quota` candidates of each sentence with the sentence's own generator."""
    counts = torch.bincount(sentence, minlength=len(quota))
    drawn = [torch.rand(n, generator=rng) for n, rng in zip(counts.tolist(), rngs, strict=True)]
    keys = torch.cat(drawn).to(sentence.device) if drawn else sentence.float()
    # Sorted by sentence, then candidates in random order, then the others.
    order = (sentence * 4 + torch.where(candidates, keys, 2).double()).argsort()
    first = counts.cumsum(0) - counts
    rank = torch.empty_like(sentence)
    rank[order] = torch.arange(len(sentence), device=sentence.device) - first[sentence]
    return candidates & (rank < quota[sentence])


def _best_seeds(
    overlap: Float[Tensor, "span gold"],
    sentence: Int[Tensor, " span"],
    gold: GoldSpans,
    threshold: float,
) -> Bool[Tensor, " span"]:
    """The seeds with the largest IoU of each entity for which no IoU exceeds `threshold`."""
    best = torch.zeros_like(gold.labels, dtype=overlap.dtype)
    best = best.scatter_reduce(0, sentence[:, None].expand_as(overlap), overlap, "amax")
    unmatched = gold.mask & (best > 0) & (best <= threshold)
    return (unmatched[sentence] & (overlap == best[sentence])).any(dim=1)


def _any_by_sentence(hits: Tensor, sentence: Tensor, batch: int) -> Bool[Tensor, "batch gold"]:
    """Whether any span of its sentence hits a gold entity, for each entity."""
    counts = torch.zeros(batch, hits.shape[1], dtype=torch.long, device=hits.device)
    return counts.index_add_(0, sentence, hits.long()) > 0


def _first_labels(gold: GoldSpans) -> Bool[Tensor, "batch gold"]:
    """For each gold span only the first of its entities."""
    same = (gold.spans[:, :, None] == gold.spans[:, None]).all(dim=-1) & gold.mask[:, None]
    return gold.mask & ~same.tril(diagonal=-1).any(dim=2)
