"""A text as it is shown: one block per sentence, with nothing of the text left out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from spandet.text import CharSpan, Document
from spandet.viewing.verdicts import Judged


def blocks(document: Document) -> list[CharSpan]:
    """From each sentence's first word to the next sentence's; together they are the whole text."""
    if not document.text:
        return []
    starts = {sentence.starts[0] for sentence in document.sentences if sentence.starts}
    later = sorted(starts)[1:]  # what precedes the first word belongs to the first block
    return [CharSpan(start, end) for start, end in pairwise([0, *later, len(document.text)])]


def by_block(document: Document, entities: Iterable[Judged]) -> list[tuple[CharSpan, list[Judged]]]:
    """Each block with the entities that touch it."""
    own: list[tuple[CharSpan, list[Judged]]] = [(block, []) for block in blocks(document)]
    starts = [block.start for block, _ in own]
    for judged in entities:
        first = bisect_right(starts, judged.entity.span.start) - 1
        for _, found in own[first : bisect_left(starts, judged.entity.span.end)]:
            found.append(judged)
    return own
