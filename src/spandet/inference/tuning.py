"""Which decoding settings have the best F1?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from spandet.inference.decoding import DecodingSettings
from spandet.inference.recognizer import Recognizer
from spandet.text import Document, WordSpan

_NMS_DECAYS = (0.5, 0.7, 0.8, 0.9, 1.0)
_NMS_OVERLAPS = (0.4, 0.5, 0.6, 0.7)


def tune(recognizer: Recognizer, documents: Iterable[Document]) -> DecodingSettings:
    """The decoding settings with the best F1 on these documents: threshold and Soft-NMS.

    Settings that are not to be tuned (`tune = false`) stay as they are.
    """
    if not recognizer.decoding.tune:
        return recognizer.decoding
    corpus = list(documents)
    gold = _gold_keys(corpus)
    number = sum(len({(e.pieces, e.label) for e in d.entities}) for d in corpus)
    parts = recognizer.parts(corpus)
    batches = list(recognizer.predictions([part.example for part in parts]))
    best, best_f1 = recognizer.decoding, -1.0
    for candidate in _variants(recognizer.decoding):
        found = recognizer.decoded(parts, batches, candidate)
        scored = [
            (entity.score or 0.0, (sentence, entity.pieces, entity.label) in gold)
            for sentence, entities in enumerate(found)
            for entity in entities
        ]
        threshold, f1 = best_threshold(scored, number)
        if f1 > best_f1:
            best, best_f1 = candidate.model_copy(update={"threshold": threshold}), f1
    return best


def best_threshold(scored: Iterable[tuple[float, bool]], gold: int) -> tuple[float, float]:
    """The threshold with the highest F1, and that F1.

    Args:
        scored: Of everything found, how sure it is and whether it is right.
        gold: How many entities there are to find.
    """
    ranked = sorted(scored, reverse=True)
    best, best_f1, right = 0.5, 0.0, 0
    for found, (score, is_right) in enumerate(ranked, start=1):
        right += is_right
        below = ranked[found][0] if found < len(ranked) else 0.0
        f1 = 2 * right / (found + gold)
        if below < score and f1 > best_f1:  # a threshold cannot part equal scores
            best, best_f1 = (score + below) / 2, f1
    return best, best_f1


def _variants(settings: DecodingSettings) -> Iterator[DecodingSettings]:
    """What to try: Soft-NMS only where the recipe uses it. The threshold comes last of all.

    That nothing overlaps, or that what overlaps too much goes (`nms_decay = 0`), is a rule of the
    recipe, and stays.
    """
    for min_odds in dict.fromkeys((settings.min_odds, 0.0)):
        everything = settings.model_copy(update={"threshold": 0.0, "min_odds": min_odds})
        yield everything
        if 0 < settings.nms_decay < 1 and not settings.flat:
            for decay, overlap in product(_NMS_DECAYS, _NMS_OVERLAPS):
                yield everything.model_copy(update={"nms_decay": decay, "nms_overlap": overlap})


def _gold_keys(documents: Iterable[Document]) -> set[tuple[int, tuple[WordSpan, ...], str]]:
    """The entities that words can express: the others are missed at every threshold."""
    sentences = [own for document in documents for own in document.entities_in_words()[0]]
    return {(number, e.pieces, e.label) for number, own in enumerate(sentences) for e in own}
