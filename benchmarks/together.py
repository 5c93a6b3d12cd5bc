"""Scores every subset of some models as an ensemble.

    python benchmarks/together.py DATA MODEL MODEL...

The score of an entity is the mean over the models, 0 where a model does not predict it; a span gets
its highest-scoring label; the threshold is tuned on DATA. The gain of an ensemble shows how many
errors the models do not share.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from spandet import Document, Recognizer, read
from spandet.text import Entity
from spandet.training.epochs import dev_score

MIN_SCORE = 0.02
"""Entities with lower scores are ignored."""


def main() -> None:
    data, *models = sys.argv[1:]
    gold = list(read(data))
    found = [predicted(model, gold) for model in models]
    for size in range(1, len(models) + 1):
        for chosen in combinations(range(len(models)), size):
            votes = zip(*(found[number] for number in chosen), strict=True)
            score = dev_score(gold, [ensemble(predictions) for predictions in votes], untuned=0.5)
            f1, precision, recall = (100 * x for x in (score.f1, score.precision, score.recall))
            names = " + ".join(models[number] for number in chosen)
            print(f"{f1:.2f} ({precision:.2f} / {recall:.2f})  {names}", flush=True)


def predicted(model: str, documents: Sequence[Document]) -> list[Document]:
    """All predictions of the model with a score above `MIN_SCORE`."""
    recognizer = Recognizer.from_pretrained(model, ["decoding.min_odds=0"])
    return list(recognizer.predict(documents, min_score=MIN_SCORE, progress=True))


def ensemble(predictions: Sequence[Document]) -> Document:
    """One document with the mean scores of the models' predictions."""
    scores: Counter[tuple[object, str]] = Counter()
    entities: dict[tuple[object, str], Entity] = {}
    for entity in (entity for document in predictions for entity in document.entities):
        scores[entity.spans, entity.label] += (entity.score or 0.0) / len(predictions)
        entities[entity.spans, entity.label] = entity
    best: dict[object, Entity] = {}
    for key, score in scores.most_common():
        best.setdefault(key[0], replace(entities[key], score=min(score, 1.0)))
    return replace(predictions[0], entities=tuple(best.values()))


if __name__ == "__main__":
    main()
