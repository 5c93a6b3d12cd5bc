"""From what a detector believes to entities: merge, settle crossings, suppress, threshold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.config import Settings, Share
from spandet.spans.flat import to_rows
from spandet.spans.suppression import (
    NmsRule,
    soft_nms,
    uncrossed,
    without_crossing,
    without_overlap,
)
from spandet.tensors import SpanPredictions

Item = TypeVar("Item")


class DecodingSettings(Settings):
    """How candidates become entities; the first four are tuned on dev after training."""

    threshold: Share = 0.5
    """δ: only what is surer than this is an entity."""
    min_odds: Share = 1.0
    """Keep a candidate when its best label is more probable than `min_odds` times "no entity"."""
    nms_decay: Share = 1.0
    """u: what the overlapped loses in Soft-NMS; 1: no suppression (ablation)."""
    nms_overlap: Share = 0.6
    """k: from this overlap on, one candidate suppresses another."""
    nms_rule: NmsRule = "paper"
    """`released-code`: only an overlap above `nms_overlap` suppresses, and candidates suppress in
    the order of the scores that they had before."""
    merge: Literal["max", "sum", "first", "first-votes", "noisy-or", "after"] = "max"
    """Several candidates on one span: the best, the label with the largest sum, the first, the
    first with its score times the number of those that agree with it, or the label that is
    likeliest if the candidates err independently. `after`: all of them take part in Soft-NMS, then
    the best."""
    merge_by: Literal["score", "label"] = "score"
    """`label`: of several candidates on one span, only the one with the most probable label is left
    to be merged, whatever else its score contains."""
    one_label: bool = True
    """A span is one entity; without it, one for each label that candidates give it."""
    crossing: Literal["keep", "greedy", "both"] = "greedy"
    """Crossing candidates: keep them, drop the weaker one, or drop both."""
    flat: bool = False
    """Nothing overlaps anything: best first, and `crossing` and Soft-NMS have no say."""
    tune: bool = True
    """Without it the first four stay as they are here, and epochs are judged by them."""

    @property
    def settled_later(self) -> "DecodingSettings":
        """The same with every overlap kept: for `apart`, when all that may overlap is known."""
        return self.model_copy(update={"flat": False, "crossing": "keep", "nms_decay": 1.0})


@dataclass(frozen=True)
class Found:
    """Entities of a batch in one list, sentence by sentence, from left to right."""

    sentence: Int[Tensor, " found"]
    spans: Int[Tensor, "found 2"]
    labels: Int[Tensor, " found"]
    scores: Float[Tensor, " found"]
    origin: Int[Tensor, " found"]
    """Which candidate of its sentence became the entity: where its trace is."""

    def where(self, chosen: Bool[Tensor, " found"]) -> "Found":
        """Only the chosen ones."""
        return Found(
            self.sentence[chosen],
            self.spans[chosen],
            self.labels[chosen],
            self.scores[chosen],
            self.origin[chosen],
        )


def decode(predictions: SpanPredictions, settings: DecodingSettings) -> Found:
    """Entities in reading order: in a sentence from left to right, outer before inner."""
    best, label = predictions.label_probs[..., 1:].max(dim=-1)
    label = label + 1
    likely = best > settings.min_odds * predictions.label_probs[..., 0]
    sentence, origin = (predictions.mask & likely).nonzero(as_tuple=True)
    spans = predictions.spans[sentence, origin]
    order = _reading_order(sentence, spans)
    sentence, origin, spans = sentence[order], origin[order], spans[order]
    found = Found(sentence, spans, label[sentence, origin], best[sentence, origin], origin)
    if settings.merge_by == "label" and predictions.type_probs is not None:
        chosen = _best_labels(found, predictions.type_probs, settings)
        found = replace(chosen, scores=best[chosen.sentence, chosen.origin])
    if settings.merge != "after":
        found = _merged(found, settings)
    found = _settled(found, len(predictions.mask), settings)
    if settings.merge == "after":
        found = _merged(found, settings)
    return found.where(found.scores > settings.threshold)


def _best_labels(found: Found, type_probs: Tensor, settings: DecodingSettings) -> Found:
    """Of the candidates on one span, the one with the most probable label, which is its score."""
    ranked = replace(found, scores=type_probs[found.sentence, found.origin])
    return _merged(ranked, settings.model_copy(update={"merge": "max"}))


def _merged(found: Found, settings: DecodingSettings) -> Found:
    """One candidate per span, or per span and label."""
    vote = _numbered(found.sentence, found.spans, found.labels)
    span = _numbered(found.sentence, found.spans) if settings.one_label else vote
    scores = found.scores
    if settings.merge == "sum":
        scores = torch.zeros_like(scores).index_add(0, vote, scores)[vote]
    elif settings.merge == "first-votes":
        votes = torch.zeros_like(scores).index_add(0, vote, torch.ones_like(scores))
        scores = scores * votes[vote]
    elif settings.merge == "noisy-or":
        doubts = torch.zeros_like(scores).index_add(0, vote, torch.log1p(-scores))[vote]
        scores = -torch.expm1(doubts)
    order = found.origin if settings.merge.startswith("first") else -scores
    rank = torch.empty_like(found.origin)
    rank[order.argsort(stable=True)] = torch.arange(len(rank), device=rank.device)
    first = torch.full_like(rank, len(rank)).scatter_reduce(0, span, rank, "amin")
    return replace(found, scores=scores).where(rank == first[span])


def _settled(found: Found, batch: int, settings: DecodingSettings) -> Found:
    """After crossings and Soft-NMS: who is left, with which score."""
    if settings.flat or settings.crossing != "both":  # the weak only ever harm the weaker
        found = found.where(found.scores > settings.threshold)
    spans, mask = to_rows(found.spans, found.sentence, batch)
    scores, _ = to_rows(found.scores, found.sentence, batch)
    decay, overlap = settings.nms_decay, settings.nms_overlap
    if settings.flat:
        keep = without_overlap(spans, scores.clamp(max=1), mask)  # by the score that is told
    elif settings.crossing == "greedy" and decay == 1:
        keep = without_crossing(spans, scores, mask)
    else:
        keep = uncrossed(spans, mask) if settings.crossing == "both" else mask
        may_cross = settings.crossing != "greedy"
        scores = soft_nms(
            spans,
            scores,
            keep,
            decay=decay,
            overlap=overlap,
            rule=settings.nms_rule,
            may_cross=may_cross,
        )
    return replace(found, scores=scores[mask].clamp(max=1)).where(keep[mask])


def apart(
    items: Iterable[Item],
    *,
    spans: Callable[[Item], Sequence[tuple[int, int]]],
    score: Callable[[Item], float],
) -> list[Item]:
    """Best first, what shares no word with anything kept so far; then from left to right.

    Of two with one score, the one that begins earlier, then the longer one.

    Args:
        items: Entities of one sentence.
        spans: The fragments of one, from left to right.
        score: How sure it is.
    """

    def place(item: Item) -> tuple[int, int]:
        own = spans(item)
        return own[0][0], -own[-1][1]

    taken = 0  # a bit for each word
    kept: list[Item] = []
    for item in sorted(items, key=lambda item: (-score(item), place(item))):
        words = sum((1 << end) - (1 << start) for start, end in spans(item))
        if not taken & words:
            taken |= words
            kept.append(item)
    return sorted(kept, key=place)


def _reading_order(sentence: Tensor, spans: Tensor) -> Int[Tensor, " found"]:
    size = 1 + (int(spans.max()) if len(spans) else 0)
    return ((sentence * size + spans[:, 0]) * size - spans[:, 1]).argsort(stable=True)


def _numbered(sentence: Tensor, spans: Tensor, *more: Tensor) -> Int[Tensor, " found"]:
    """A number for each different span; equal spans have equal numbers."""
    keys = torch.stack([sentence, spans[:, 0], spans[:, 1], *more])
    number: Tensor = torch.unique(keys, dim=1, return_inverse=True)[1]
    return number
