"""A prediction on the text of its gold document."""

from __future__ import annotations

import pytest

from spandet.errors import MismatchError
from spandet.evaluation import projected
from spandet.text import CharSpan, Document, Entity


def test_entities_move_to_their_place_in_another_spacing() -> None:
    gold = Document("IL-2 gene , on .", id="d")
    found = Document("IL-2 gene, on.", (Entity(CharSpan(5, 10), "X", 0.5),))
    shifted = projected(found, onto=gold, number=1)
    assert (shifted.text, shifted.id) == (gold.text, "d")
    assert shifted.entities == (Entity(CharSpan(5, 11), "X", 0.5),)
    assert shifted.text_of(shifted.entities[0]) == "gene ,"


def test_the_same_text_keeps_every_offset() -> None:
    gold = Document("a  b")
    entities = (Entity(CharSpan(1, 3), "space"), Entity(CharSpan(0, 4), "all"))
    assert projected(Document("a  b", entities), onto=gold, number=1).entities == entities


def test_fragments_stay_apart_and_white_space_alone_is_left_out() -> None:
    gold = Document("left or right arm")
    arm = Entity.from_fragments([CharSpan(1, 5), CharSpan(15, 18)], "part")
    found = Document(" left or right arm", (arm, Entity(CharSpan(0, 1), "nothing")))
    (shifted,) = projected(found, onto=gold, number=1).entities
    assert shifted == Entity.from_fragments([CharSpan(0, 4), CharSpan(14, 17)], "part")


def test_another_text_is_refused() -> None:
    with pytest.raises(MismatchError, match="document 3: the texts differ"):
        projected(Document("abd"), onto=Document("abc"), number=3)
