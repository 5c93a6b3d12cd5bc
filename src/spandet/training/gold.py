"""What is right, as tensors: the entities of sentences by number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from spandet.tensors import GoldSpans, Links
from spandet.text import Entity, WordRow, WordSpan

_Item = tuple[int, int, int]
"""Start, end, and number of the label."""


def gold_spans(
    rows: Sequence[WordRow], labels: Sequence[str], *, fragments: bool = False
) -> GoldSpans:
    """The entities of sentences as tensors. A label that is not listed is left out.

    Args:
        rows: The sentences.
        labels: Names of the label ids 1, 2, …
        fragments: Give discontinuous entities piece by piece, and what belongs together; else they
            are given with their gaps.
    """
    numbers = {label: number for number, label in enumerate(labels, start=1)}
    known = [[entity for entity in row.entities if entity.label in numbers] for row in rows]
    items = [_items(own, numbers, fragments=fragments) for own in known]
    most = max((len(item) for item in items), default=0)
    padded = [item + [(0, 1, 0)] * (most - len(item)) for item in items]
    table = torch.tensor(padded, dtype=torch.long).reshape(len(rows), most, 3)
    spans, numbered = table[..., :2], table[..., 2]
    links = None
    if fragments:
        links = Links(torch.zeros(len(rows), most, most), torch.zeros(len(rows), most))
        for i, (own, item) in enumerate(zip(known, items, strict=True)):
            _link(links.together[i], links.alone[i], own, item, numbers)
    return GoldSpans(spans, numbered, numbered > 0, links)


def _items(
    entities: Iterable[Entity[WordSpan]], numbers: Mapping[str, int], *, fragments: bool
) -> list[_Item]:
    """Whole entities as they come, then all other pieces, each of them once."""
    whole: list[_Item] = []
    pieces: dict[_Item, None] = {}
    for entity in entities:
        number = numbers[entity.label]
        if fragments and entity.fragments:
            pieces |= dict.fromkeys((p.start, p.end, number) for p in entity.fragments)
        else:
            whole.append((entity.span.start, entity.span.end, number))
    return whole + [piece for piece in pieces if piece not in whole]


def _link(
    together: torch.Tensor,
    alone: torch.Tensor,
    entities: Iterable[Entity[WordSpan]],
    items: Sequence[_Item],
    numbers: Mapping[str, int],
) -> None:
    """Write down which items of a sentence belong together, and which are entities alone."""
    places: dict[_Item, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item, []).append(place)
    for entity in entities:
        number = numbers[entity.label]
        own = [places[piece.start, piece.end, number] for piece in entity.pieces]
        if len(own) == 1:
            alone[own[0]] = 1.0
        else:
            everywhere = torch.tensor([place for some in own for place in some])
            together[everywhere[:, None], everywhere] = 1.0
    for some in places.values():  # what is there twice is not in two pieces
        same = torch.tensor(some)
        together[same[:, None], same] = 0.0
