"""A gold document and its prediction on common ground: the same text, the same unit."""

from __future__ import annotations

from dataclasses import dataclass, field

from spandet.errors import MismatchError
from spandet.evaluation.items import Item, Visible, Words, items_of, pieces_of
from spandet.text import Document

_AROUND = 12


# Not frozen: that costs a microsecond for each of a million documents.
@dataclass(eq=False, slots=True)
class Pair:
    """What one document should have and has, as sets of comparable items."""

    document: Document
    """The gold document: its words are the ones that lengths are counted in."""
    number: int
    gold: set[Item]
    predicted: set[Item]
    visible: Visible | None = field(default=None, repr=False)
    """Where white space differs, items count visible characters: those of the gold text."""
    _words: Words | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What to call the document: its id, or its number in the stream."""
        return str(self.number) if self.document.id is None else self.document.id

    @property
    def words(self) -> Words:
        """Gold's words, in the unit of the items; made when first needed."""
        if self._words is None:
            self._words = Words(self.document.sentences, self.visible)
        return self._words

    def text_of(self, item: Item) -> str:
        """The item as it stands in the gold text; a gap is shown as " … "."""
        text = self.document.text
        pieces = pieces_of(item)
        if self.visible is not None:
            places = [place for place, character in enumerate(text) if not character.isspace()]
            pieces = [(places[start], places[end - 1] + 1) for start, end in pieces if start < end]
        return " … ".join(text[start:end] for start, end in pieces)


def pair(gold: Document, predicted: Document, number: int, side: str = "predicted") -> Pair:
    """Put a document and its prediction on common ground.

    Equal texts are compared by their own characters. Texts that differ in white space only are
    compared by visible characters. `side` is what an error calls the prediction.

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
        visible.squeezed(items_of(gold)),
        Visible(predicted.text).squeezed(items_of(predicted)),
        visible,
    )


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
        return f"its end after {text[-_AROUND:]!r}"
    place = places[same]
    start, end = max(0, place - _AROUND), place + _AROUND
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return f"{before}{text[start:end]!r}{after}"
