"""How good a model is on dev, at the threshold that suits it and at the one it was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spandet.evaluation import Score, evaluate
from spandet.inference.tuning import best_threshold
from spandet.text import Document
from spandet.training.checkpoint import DevScore


def judge(
    gold: Sequence[Document], found: Sequence[Document], *, untuned: float, tune: bool = True
) -> DevScore:
    """The best score that some threshold gives, or the score at the recipe's.

    Early models are right before they are sure: at a fixed threshold, they would seem to find
    nothing, and the epoch that is the best one after tuning might be thrown away.

    Args:
        gold: Dev.
        found: The same documents with everything that the model found, however unsure (decoded
            with threshold 0; a higher one only takes away from that).
        untuned: The recipe's threshold.
        tune: May the threshold be another one?
    """
    keys = {(n, e.pieces, e.label) for n, d in enumerate(gold) for e in d.entities}
    scored = [
        (e.score or 0.0, (n, e.pieces, e.label) in keys)
        for n, d in enumerate(found)
        for e in d.entities
    ]
    threshold = best_threshold(scored, len(keys))[0] if tune else untuned
    best = _score(gold, found, threshold)
    return DevScore(
        precision=best.precision,
        recall=best.recall,
        f1=best.f1,
        threshold=threshold,
        f1_untuned=_score(gold, found, untuned).f1,
    )


def _score(gold: Sequence[Document], found: Sequence[Document], threshold: float) -> Score:
    sure = [
        replace(d, entities=tuple(e for e in d.entities if (e.score or 0.0) > threshold))
        for d in found
    ]
    return evaluate(gold, sure, resamples=0).micro
