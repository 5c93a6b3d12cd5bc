"""A gold document and its prediction as comparable sets of items.

Where the texts differ in white space, offsets count visible characters.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spandet.errors import MismatchError
from spandet.evaluation.items import Item, Visible, Words, fragments_of, items_of
from spandet.text import CharSpan, Document, Entity

_EXCERPT = 12


# Not frozen, because that costs a microsecond per document.
@dataclass(eq=False, slots=True)
class Pair:
    """The gold and the predicted items of one document."""

    document: Document
    """The gold document; lengths are counted in its words."""
    number: int
    gold: set[Item]
    predicted: set[Item]
    visible: Visible | None = field(default=None, repr=False)
    """Set where the texts differ in white space: items then count visible characters."""
    _words: Words | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The id of the document, or its number in the stream."""
        return str(self.number) if self.document.id is None else self.document.id

    @property
    def words(self) -> Words:
        """The words of the gold document, in the unit of the items; computed on first use."""
        if self._words is None:
            self._words = Words(self.document.sentences, self.visible)
        return self._words

    def text_of(self, item: Item) -> str:
        """The text of an item in the gold document; gaps are shown as " … "."""
        text = self.document.text
        fragments = fragments_of(item)
        if self.visible is not None:
            places = [place for place, character in enumerate(text) if not character.isspace()]
            fragments = [
                (places[start], places[end - 1] + 1) for start, end in fragments if start < end
            ]
        return " … ".join(text[start:end] for start, end in fragments)


def pair(gold: Document, predicted: Document, number: int, side: str = "predicted") -> Pair:
    """Convert a document and its prediction to comparable items.

    Equal texts are compared by their own characters. Texts that differ in white space only are
    compared by visible characters. `side` names the prediction in error messages.

    Raises:
        MismatchError: the texts differ in more than white space.
    """
    if gold.text == predicted.text:
        return Pair(gold, number, set(items_of(gold)), set(items_of(predicted)))
    if "".join(gold.text.split()) != "".join(predicted.text.split()):
        raise MismatchError(_difference(gold, predicted, number, side))
    visible = Visible(gold.text)
    return Pair(
        gold,
        number,
        visible.visible_items(items_of(gold)),
        Visible(predicted.text).visible_items(items_of(predicted)),
        visible,
    )


def projected(predicted: Document, *, onto: Document, number: int) -> Document:
    """The prediction with its entities at the corresponding offsets of `onto`'s text.

    Raises:
        MismatchError: the texts differ in more than white space.
    """
    pair(onto, predicted, number)  # checks the texts
    if onto.text == predicted.text:
        return replace(onto, entities=predicted.entities)
    visible = Visible(predicted.text)
    places = [place for place, character in enumerate(onto.text) if not character.isspace()]

    def shifted(span: CharSpan) -> CharSpan | None:
        first, end = visible.before(span.start), visible.before(span.end)
        return CharSpan(places[first], places[end - 1] + 1) if first < end else None

    entities = []
    for entity in predicted.entities:
        fragments = [span for span in map(shifted, entity.spans) if span is not None]
        if fragments:  # an entity of white space only has no counterpart
            entities.append(Entity.from_fragments(fragments, entity.label, entity.score))
    return replace(onto, entities=tuple(entities))


def _difference(gold: Document, predicted: Document, number: int, side: str) -> str:
    ours = [place for place, character in enumerate(gold.text) if not character.isspace()]
    theirs = [place for place, character in enumerate(predicted.text) if not character.isspace()]
    same = 0
    while (
        same < min(len(ours), len(theirs)) and gold.text[ours[same]] == predicted.text[theirs[same]]
    ):
        same += 1
    name = f"document {number}" if gold.id is None else f"document {gold.id!r}"
    return (
        f"{name}: the texts differ from visible character {same + 1} on: "
        f"gold has {_excerpt(gold.text, ours, same)}, "
        f"{side} has {_excerpt(predicted.text, theirs, same)}"
    )


def _excerpt(text: str, places: list[int], same: int) -> str:
    if same >= len(places):
        return f"its end after {text[-_EXCERPT:]!r}"
    place = places[same]
    start, end = max(0, place - _EXCERPT), place + _EXCERPT
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return f"{before}{text[start:end]!r}{after}"
