"""Decoding, from candidates to entities: merge duplicates, suppress overlaps, apply a threshold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from spandet.config import Settings, Share
from spandet.inference.candidates import Candidates, row_mask, to_rows
from spandet.inference.suppression import (
    NmsRule,
    soft_nms,
    uncrossed,
    without_crossing,
    without_overlap,
)

Item = TypeVar("Item")


class DecodingSettings(Settings):
    """Settings of decoding; the first four are tuned on dev after training."""

    threshold: Share = 0.5
    """δ: only candidates with a score above this become entities."""
    min_odds: Share = 1.0
    """Keep a candidate when its best label is more probable than `min_odds` times "no entity"."""
    nms_decay: Share = 1.0
    """u: factor on the score of an overlapped candidate in Soft-NMS; 1 disables Soft-NMS."""
    nms_overlap: Share = 0.6
    """k: IoU from which one candidate suppresses another."""
    nms_rule: NmsRule = "paper"
    """`released-code`: only an IoU above `nms_overlap` suppresses, and candidates suppress in the
    order of their initial scores."""
    merge: Literal["max", "sum", "first", "first-votes", "noisy-or", "after"] = "max"
    """Of several candidates on one span, keep the one with the highest score (`max`), the label
    with the highest sum of scores (`sum`), the first (`first`), the first with its score times the
    number of candidates with its label (`first-votes`), or the most probable label if errors of
    candidates are independent (`noisy-or`). `after`: like `max`, but after Soft-NMS."""
    merge_by: Literal["score", "label"] = "score"
    """`label`: of several candidates on one span, only the one with the most probable label is
    merged; other factors of its score are ignored."""
    one_label: bool = True
    """Keep one label per span; otherwise one entity for each label of its candidates."""
    crossing: Literal["keep", "greedy", "both"] = "greedy"
    """Of two crossing candidates keep both, drop the one with the lower score, or drop both."""
    flat: bool = False
    """No two entities overlap: of those that do, the one with the highest score is kept;
    `crossing` and Soft-NMS are ignored."""

    @property
    def keeping_overlaps(self) -> "DecodingSettings":
        """The same settings without suppression, which `without_shared_words` does later."""
        return self.model_copy(update={"flat": False, "crossing": "keep", "nms_decay": 1.0})


@dataclass(frozen=True)
class DecodedSpans:
    """The decoded spans of a batch in one list, sentence by sentence, in reading order."""

    sentence: Int[np.ndarray, " found"]
    spans: Int[np.ndarray, "found 2"]
    labels: Int[np.ndarray, " found"]
    scores: Float[np.ndarray, " found"]
    origin: Int[np.ndarray, " found"]
    """Index of the candidate in its sentence."""

    def where(
        self, chosen: Bool[np.ndarray, " found"] | Int[np.ndarray, " chosen"]
    ) -> "DecodedSpans":
        """The spans of a mask or index."""
        return DecodedSpans(
            self.sentence[chosen],
            self.spans[chosen],
            self.labels[chosen],
            self.scores[chosen],
            self.origin[chosen],
        )


def decode(candidates: Candidates, settings: DecodingSettings) -> DecodedSpans:
    """Decode spans; in each sentence from left to right, the outer before the inner one."""
    found = _unmerged(candidates, settings)
    if settings.merge != "after":
        found = _merged(found, settings)
    found = _suppressed(found, len(candidates.mask), settings)
    if settings.merge == "after":
        found = _merged(found, settings)
    return found.where(found.scores > settings.threshold)


def merge_duplicates(candidates: Candidates, settings: DecodingSettings) -> DecodedSpans:
    """One candidate per span, or per span and label; without suppression and threshold."""
    return _merged(_unmerged(candidates, settings), settings)


def _unmerged(candidates: Candidates, settings: DecodingSettings) -> DecodedSpans:
    """The candidates that are merged, in reading order."""
    found = _likely(candidates, settings.min_odds)
    if settings.merge_by == "label" and candidates.type_probs is not None:
        found = _with_best_label(found, candidates.type_probs, settings)
    return found


def _likely(candidates: Candidates, min_odds: float) -> DecodedSpans:
    """The candidates with a label that is probable enough, in reading order."""
    sentence, origin = candidates.mask.nonzero()
    spans, probs = candidates.spans[sentence, origin], candidates.label_probs[sentence, origin]
    labels = 1 + probs[:, 1:].argmax(axis=1)
    scores = probs[np.arange(len(probs)), labels]
    found = DecodedSpans(sentence, spans, labels, scores, origin)
    likely = np.flatnonzero(scores > min_odds * probs[:, 0])
    size = 1 + spans.max(initial=0)
    place = (sentence * size + spans[:, 0]) * size - spans[:, 1]
    return found.where(likely[place[likely].argsort(kind="stable")])


def _with_best_label(
    found: DecodedSpans, type_probs: Float[np.ndarray, "batch span"], settings: DecodingSettings
) -> DecodedSpans:
    """Of the candidates on one span, the one with the most probable label; scores are kept."""
    probs = type_probs[found.sentence, found.origin]
    return found.where(
        _best_of_each(_group_numbers(found, by_label=not settings.one_label), -probs)
    )


def _merged(found: DecodedSpans, settings: DecodingSettings) -> DecodedSpans:
    """One candidate per span, or per span and label."""
    scores = found.scores
    if settings.merge in ("sum", "first-votes", "noisy-or"):
        scores = _merged_scores(found, settings.merge)
    order = found.origin if settings.merge.startswith("first") else -scores
    chosen = _best_of_each(_group_numbers(found, by_label=not settings.one_label), order)
    return replace(found, scores=scores).where(chosen)


def _merged_scores(found: DecodedSpans, merge: str) -> Float[np.ndarray, " found"]:
    """The score of each candidate together with those that have the same span and label."""
    vote, scores = _group_numbers(found, by_label=True), found.scores
    if merge == "sum":
        merged = _sums(vote, scores)
    elif merge == "first-votes":
        merged = scores * _sums(vote, np.ones_like(scores))
    else:
        with np.errstate(divide="ignore"):  # the logarithm of 0, for a score of 1
            merged = -np.expm1(_sums(vote, np.log1p(-scores)))
    return merged


def _sums(
    number: Int[np.ndarray, " found"], values: Float[np.ndarray, " found"]
) -> Float[np.ndarray, " found"]:
    """For each value, the sum of the values with its number."""
    sums = np.zeros(1 + number.max(initial=0), values.dtype)
    np.add.at(sums, number, values)
    total: np.ndarray = sums[number]
    return total


def _best_of_each(
    number: Int[np.ndarray, " found"], order: Shaped[np.ndarray, " found"]
) -> Int[np.ndarray, " chosen"]:
    """Indices of the candidate with the lowest `order` of each number, the first among equals."""
    ranked = np.lexsort((order, number))
    return np.sort(ranked[np.diff(number[ranked], prepend=-1) > 0])


def _group_numbers(found: DecodedSpans, *, by_label: bool) -> Int[np.ndarray, " found"]:
    """A number for each span, or for each span and label; equal ones have equal numbers."""
    place = np.column_stack([found.sentence, found.spans])
    numbers = np.zeros(len(place), dtype=np.int64)
    # In reading order, equal spans are neighbours.
    numbers[1:] = (place[1:] != place[:-1]).any(axis=1).cumsum()
    return numbers * (1 + found.labels.max(initial=0)) + found.labels if by_label else numbers


def _suppressed(found: DecodedSpans, batch: int, settings: DecodingSettings) -> DecodedSpans:
    """After crossings and Soft-NMS: the candidates that are kept, with their final scores."""
    if settings.flat or settings.crossing != "both":  # a low score only affects lower ones
        found = found.where(found.scores > settings.threshold)
    mask = row_mask(found.sentence, batch)
    spans, scores = to_rows(found.spans, mask), to_rows(found.scores, mask)
    if settings.flat:
        keep = without_overlap(spans, np.minimum(scores, 1), mask)  # by the final score
    elif settings.crossing == "greedy" and settings.nms_decay == 1:
        keep = without_crossing(spans, scores, mask)
    else:
        keep = uncrossed(spans, mask) if settings.crossing == "both" else mask
        scores = soft_nms(
            spans,
            scores,
            keep,
            decay=settings.nms_decay,
            overlap=settings.nms_overlap,
            rule=settings.nms_rule,
            may_cross=settings.crossing != "greedy",
        )
    return replace(found, scores=np.minimum(scores[mask], 1)).where(keep[mask])


def without_shared_words(
    items: Iterable[Item],
    *,
    spans: Callable[[Item], Sequence[tuple[int, int]]],
    score: Callable[[Item], float],
) -> list[Item]:
    """The entities that share no word with a kept one of a higher score, from left to right.

    Of two with equal scores, the one that starts earlier is kept, then the longer one.

    Args:
        items: Entities of one sentence.
        spans: Returns the fragments of an entity, from left to right.
        score: Returns the score of an entity.
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
