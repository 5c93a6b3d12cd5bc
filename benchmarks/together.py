"""How good are models together? python benchmarks/together.py DATA MODEL MODEL...

Every model, and every set of them, scored on DATA: an entity's score is the mean over the models,
nought where one does not find it; a span has its likeliest label; the threshold is tuned on DATA.
How much a vote gains says how much of a single model's errors are its own.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from spandet import Document, Recognizer, read
from spandet.text import Entity
from spandet.training.epochs import dev_score

FAINT = 0.02
"""Below this nothing counts."""


def main() -> None:
    data, *models = sys.argv[1:]
    gold = list(read(data))
    found = [predicted(model, gold) for model in models]
    for size in range(1, len(models) + 1):
        for chosen in combinations(range(len(models)), size):
            votes = zip(*(found[number] for number in chosen), strict=True)
            score = dev_score(gold, [voted(beliefs) for beliefs in votes], untuned=0.5)
            f1, precision, recall = (100 * x for x in (score.f1, score.precision, score.recall))
            names = " + ".join(models[number] for number in chosen)
            print(f"{f1:.2f} ({precision:.2f} / {recall:.2f})  {names}", flush=True)


def predicted(model: str, documents: Sequence[Document]) -> list[Document]:
    """All that the model finds, however unsure."""
    recognizer = Recognizer.from_pretrained(model, ["decoding.min_odds=0"])
    return list(recognizer.predict(documents, min_score=FAINT, progress=True))


def voted(beliefs: Sequence[Document]) -> Document:
    """One document with the mean of what the models believe of it."""
    scores: Counter[tuple[object, str]] = Counter()
    entities: dict[tuple[object, str], Entity] = {}
    for entity in (entity for document in beliefs for entity in document.entities):
        scores[entity.pieces, entity.label] += (entity.score or 0.0) / len(beliefs)
        entities[entity.pieces, entity.label] = entity
    best: dict[object, Entity] = {}
    for key, score in scores.most_common():
        best.setdefault(key[0], replace(entities[key], score=min(score, 1.0)))
    return replace(beliefs[0], entities=tuple(best.values()))


if __name__ == "__main__":
    main()
