"""A prediction on the text of its gold document, where the two differ in white space only."""

from __future__ import annotations

from dataclasses import replace

from spandet.evaluation.items import without_space
from spandet.evaluation.pairs import pair
from spandet.text import CharSpan, Document, Entity


def projected(predicted: Document, *, onto: Document, number: int) -> Document:
    """The predicted entities at their places in `onto`'s text.

    Raises:
        MismatchError: the texts differ in more than white space.
    """
    pair(onto, predicted, number)  # refuses other texts
    if onto.text == predicted.text:
        return replace(onto, entities=predicted.entities)
    visible = without_space(predicted.text)
    places = [place for place, character in enumerate(onto.text) if not character.isspace()]

    def moved(span: CharSpan) -> CharSpan | None:
        first, end = visible(span.start), visible(span.end)
        return CharSpan(places[first], places[end - 1] + 1) if first < end else None

    entities = []
    for entity in predicted.entities:
        pieces = [piece for piece in map(moved, entity.pieces) if piece is not None]
        if pieces:  # white space alone is nowhere in the other text
            entities.append(Entity.from_fragments(pieces, entity.label, entity.score))
    return replace(onto, entities=tuple(entities))
