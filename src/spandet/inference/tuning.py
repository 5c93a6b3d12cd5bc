"""Tuning of the decoding settings on dev data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from spandet.inference.decoding import DecodingSettings
from spandet.inference.long_sentences import SentenceDecoder
from spandet.inference.options import BATCH_PIECES
from spandet.inference.recognizer import Recognizer
from spandet.text import Document

_NMS_DECAYS = (0.5, 0.7, 0.8, 0.9, 1.0)
_NMS_OVERLAPS = (0.4, 0.5, 0.6, 0.7)


def tune(recognizer: Recognizer, documents: Iterable[Document]) -> DecodingSettings:
    """The threshold, odds and Soft-NMS settings with the highest F1 on these documents."""
    corpus = list(documents)
    gold = _gold_keys(corpus)
    gold_count = sum(len({(e.spans, e.label) for e in d.entities}) for d in corpus)
    engine, sentences = recognizer.engine, recognizer.sentences(corpus)
    examples = engine.prepare([sentence.example for sentence in sentences])
    computed = [
        (batch, engine.candidates([examples[number] for number in batch]))
        for batch in engine.batches(examples, BATCH_PIECES)
    ]
    best, best_f1 = recognizer.decoding, -1.0
    for candidate in _variants(recognizer.decoding):
        decoder = SentenceDecoder(sentences, candidate)
        for batch, candidates in computed:
            decoder.add(batch, candidates)
        scored = [
            (entity.score, (number, entity.spans, recognizer.labels[entity.label - 1]) in gold)
            for number, entities in enumerate(decoder.sentences())
            for entity in entities
        ]
        threshold, f1 = best_threshold(scored, gold_count)
        if f1 > best_f1:
            best, best_f1 = candidate.model_copy(update={"threshold": threshold}), f1
    return best


def best_threshold(scored: Iterable[tuple[float, bool]], gold: int) -> tuple[float, float]:
    """The threshold with the highest F1, and that F1.

    Args:
        scored: The score of each prediction, and whether it is correct.
        gold: Number of gold entities.
    """
    predictions = np.array(list(scored), dtype=np.float64).reshape(-1, 2)
    scores, correct = predictions[np.argsort(-predictions[:, 0])].T
    below = np.append(scores, 0.0)[1:]
    f1 = 2 * correct.cumsum() / (1 + np.arange(len(scores)) + gold)
    f1[below == scores] = 0.0  # a threshold cannot separate equal scores
    if not f1.any():
        return 0.5, 0.0
    best = f1.argmax()
    return float(scores[best] + below[best]) / 2, float(f1[best])


def _variants(settings: DecodingSettings) -> Iterator[DecodingSettings]:
    """The settings to compare, all with threshold 0; Soft-NMS only where the recipe uses it.

    `flat` and `nms_decay = 0` are rules of the recipe, and are kept.
    """
    for min_odds in dict.fromkeys((settings.min_odds, 0.0)):
        everything = settings.model_copy(update={"threshold": 0.0, "min_odds": min_odds})
        yield everything
        if 0 < settings.nms_decay < 1 and not settings.flat:
            for decay, overlap in product(_NMS_DECAYS, _NMS_OVERLAPS):
                yield everything.model_copy(update={"nms_decay": decay, "nms_overlap": overlap})


def _gold_keys(documents: Iterable[Document]) -> set[tuple[int, tuple[tuple[int, int], ...], str]]:
    """Keys of the gold entities that end at word boundaries; no other can be predicted."""
    sentences = [own for document in documents for own in document.entities_in_words()[0]]
    return {
        (number, tuple((span.start, span.end) for span in entity.spans), entity.label)
        for number, own in enumerate(sentences)
        for entity in own
    }
