"""The mean of the candidates of several models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from spandet.inference.candidates import Candidates, LinkProbs, row_mask, to_rows
from spandet.inference.decoding import DecodedSpans, DecodingSettings, merge_duplicates


@dataclass(frozen=True)
class Vote:
    """The candidates of one member for a batch."""

    candidates: Candidates
    decoding: DecodingSettings
    """How the member merges its duplicates, and which candidates it keeps (`min_odds`)."""
    label_ids: Int[np.ndarray, " label"]
    """The number of each of its labels among the labels of the ensemble; 0 is "no entity"."""
    share: float
    """Its weight; the shares of all members have the sum 1."""


def mean_candidates(
    votes: Sequence[Vote], batch: int, *, labels: int, one_label: bool
) -> Candidates:
    """The spans that any member proposes, with the means of the label scores of all members.

    A member that does not propose a span has the score 0 for its labels. The probability of "no
    entity" is 0, because members have applied their own `min_odds`. Links, if all members have
    them, are means over the members that propose both fragments.

    Args:
        votes: The candidates of each member; sums are computed in this order.
        batch: Number of sentences.
        labels: Number of labels of the ensemble.
        one_label: Give one candidate per span, with the scores of all labels; otherwise one per
            span and label.
    """
    merged = [merge_duplicates(vote.candidates, vote.decoding) for vote in votes]
    ids = [vote.label_ids * (0 if one_label else 1) for vote in votes]
    union = _Union.of(merged, ids)
    means = np.zeros((len(union.sentence), 1 + labels))
    for vote, found, place in zip(votes, merged, union.places, strict=True):
        scores = _label_scores(vote.candidates, found, one_label=one_label).astype(np.float64)
        means[np.ix_(place, vote.label_ids)] += vote.share * scores
    mask = row_mask(union.sentence, batch)
    return Candidates(
        to_rows(union.spans, mask),
        to_rows(means.astype(np.float32), mask),
        mask,
        _mean_links(votes, merged, union, mask),
    )


def _mean_links(
    votes: Sequence[Vote],
    merged: Sequence[DecodedSpans],
    union: "_Union",
    mask: Bool[np.ndarray, "batch span"],
) -> LinkProbs | None:
    """The mean of link probabilities over the members that propose the fragments; None without."""
    column = mask.nonzero()[1]
    together, alone = _Mean((*mask.shape, mask.shape[1])), _Mean(mask.shape)
    for vote, found, place in zip(votes, merged, union.places, strict=True):
        links = vote.candidates.links
        if links is None:
            return None
        own = row_mask(found.sentence, len(mask))
        origins, columns = to_rows(found.origin, own), to_rows(column[place], own)
        sentence = found.sentence
        alone.add((sentence, columns[own]), links.alone[sentence, origins[own]], vote.share)
        sentence, one, other = (own[:, :, None] & own[:, None]).nonzero()
        probs = links.together[sentence, origins[sentence, one], origins[sentence, other]]
        pairs = (sentence, columns[sentence, one], columns[sentence, other])
        together.add(pairs, probs, vote.share)
    return LinkProbs(together.value, alone.value)


class _Mean:
    """A weighted mean of arrays that have values at some places only."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._sums = np.zeros(shape)
        self._weights = np.zeros(shape)

    def add(
        self,
        places: tuple[Int[np.ndarray, " place"], ...],
        values: Float[np.ndarray, " place"],
        weight: float,
    ) -> None:
        """Add values at distinct places."""
        self._sums[places] += weight * values.astype(np.float64)
        self._weights[places] += weight

    @property
    def value(self) -> Float[np.ndarray, "..."]:
        """The mean at each place; 0 where there is no value."""
        found = self._sums / np.where(self._weights > 0, self._weights, 1)
        return found.astype(np.float32)


def _label_scores(
    candidates: Candidates, found: DecodedSpans, *, one_label: bool
) -> Float[np.ndarray, "found label"]:
    """The label scores of merged candidates; 0 for "no entity".

    Args:
        candidates: The candidates before merging.
        found: The merged ones.
        one_label: Keep the probabilities of all labels; otherwise only the score of the found one.
    """
    probs: np.ndarray = candidates.label_probs[found.sentence, found.origin]  # a copy
    if not one_label:
        probs = np.zeros_like(probs)
    probs[:, 0] = 0
    # Merging may give a label more than the probability of one candidate.
    probs[np.arange(len(probs)), found.labels] = np.minimum(found.scores, 1)
    return probs


@dataclass(frozen=True)
class _Union:
    """The distinct spans that any member proposes, in reading order."""

    sentence: Int[np.ndarray, " union"]
    spans: Int[np.ndarray, "union 2"]
    places: list[Int[np.ndarray, " found"]]
    """Where the spans of each member are among them."""

    @classmethod
    def of(
        cls, found: Sequence[DecodedSpans], label_ids: Sequence[Int[np.ndarray, " label"]]
    ) -> "_Union":
        """The spans of all members.

        Args:
            found: The spans of each member, each once, or once for each label.
            label_ids: The number of each member's labels: spans with different numbers differ.
        """
        size = 1 + max(int(own.spans.max(initial=0)) for own in found)
        labels = 1 + max(int(ids.max(initial=0)) for ids in label_ids)
        keys = [
            ((own.sentence * size + own.spans[:, 0]) * size + size - 1 - own.spans[:, 1]) * labels
            + ids[own.labels]
            for own, ids in zip(found, label_ids, strict=True)
        ]
        distinct, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        rest, ends = np.divmod(distinct // labels, size)
        sentence, starts = np.divmod(rest, size)
        borders = np.cumsum([len(own) for own in keys])[:-1]
        spans = np.column_stack([starts, size - 1 - ends])
        return cls(sentence, spans, np.split(inverse, borders))
