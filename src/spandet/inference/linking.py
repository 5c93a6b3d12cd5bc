"""From fragments to entities: which of them stand alone, and which belong together."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, groupby

import numpy as np
from jaxtyping import Float

from spandet.inference.candidates import Candidates, LinkProbs, row_mask, to_rows
from spandet.inference.decoding import DecodingSettings, Found, apart, decode

LIKELY = 0.5
"""From here on, fragments are linked and entities alone."""
_MOST_STEPS = 2000
"""What the search for the cliques of one sentence may cost; with some 20 fragments that are linked
at random it takes less."""


@dataclass(frozen=True, slots=True)
class Whole:
    """An entity: one fragment, or several that belong together."""

    sentence: int
    spans: tuple[tuple[int, int], ...]
    """Of its fragments, from left to right."""
    label: int
    score: float
    origins: tuple[int, ...]
    """Which candidate of the sentence each fragment was."""


def assemble(candidates: Candidates, settings: DecodingSettings) -> list[Whole]:
    """Entities in reading order: by sentence, from left to right, outer before inner.

    Without links, these are the spans that decoding finds. With links, an entity is a fragment that
    is one alone, or a largest possible set of fragments with one label that are all linked with
    each other; sets may share fragments. Such a set is as sure as its fragments are on average,
    times how sure their links are on average.

    Fragments are linked before the threshold is applied, so that a higher threshold only takes away
    entities and never changes one. Where nothing may overlap, whole entities compete, best first: a
    fragment that became no entity takes no words away.
    """
    links = candidates.links
    if links is None:
        return _single(decode(candidates, settings))
    first = settings.settled_later if settings.flat else settings
    found = decode(candidates, first.model_copy(update={"threshold": 0.0}))
    sure = (found.scores > settings.threshold) & (
        links.alone[found.sentence, found.origin] > LIKELY
    )
    several = [
        whole
        for whole in _linked(found, links, len(candidates.mask))
        if whole.score > settings.threshold
    ]
    wholes = sorted([*_single(found.where(sure)), *several], key=_reading_order)
    return _flat(wholes) if settings.flat else wholes


def _flat(wholes: Sequence[Whole]) -> list[Whole]:
    """Of each sentence, the best entities that share no word."""
    sentences = groupby(wholes, key=lambda whole: whole.sentence)
    return [
        whole
        for _, own in sentences
        for whole in apart(own, spans=lambda one: one.spans, score=lambda one: one.score)
    ]


def _single(found: Found) -> list[Whole]:
    """Each fragment as an entity."""
    rows = zip(
        found.sentence.tolist(),
        found.spans.tolist(),
        found.labels.tolist(),
        found.scores.tolist(),
        found.origin.tolist(),
        strict=True,
    )
    return [
        Whole(sentence, ((start, end),), label, score, (origin,))
        for sentence, (start, end), label, score, origin in rows
    ]


def _linked(found: Found, links: LinkProbs, batch: int) -> Iterator[Whole]:
    """Every largest set of fragments that are all linked."""
    fragments = iter(_single(found))
    counts = np.bincount(found.sentence, minlength=batch).tolist()
    table = _between(found, links, batch)
    linked = np.argwhere(table > LIKELY).tolist()
    edges: list[dict[int, set[int]]] = [{} for _ in range(batch)]
    for sentence, one, other in linked:
        edges[sentence].setdefault(one, set()).add(other)
    for sentence, count in enumerate(counts):
        own = [next(fragments) for _ in range(count)]
        for clique in maximal_cliques(edges[sentence]):
            pairs = np.array(list(combinations(clique, 2)))
            link = float(table[sentence, pairs[:, 0], pairs[:, 1]].mean())
            yield _joined([own[i] for i in clique], link)


def _between(
    found: Found, links: LinkProbs, batch: int
) -> Float[np.ndarray, "batch fragment fragment"]:
    """Probabilities that fragments belong together; 0 for those with different labels."""
    mask = row_mask(found.sentence, batch)
    origins, labels = to_rows(found.origin, mask), to_rows(found.labels, mask)
    rows = np.arange(batch)[:, None, None]
    table = links.together[rows, origins[:, :, None], origins[:, None]]
    same = labels[:, :, None] == labels[:, None]
    linkable: np.ndarray = table * (same & mask[:, :, None] & mask[:, None])
    return linkable


def _joined(fragments: Sequence[Whole], link: float) -> Whole:
    ordered = sorted(fragments, key=lambda fragment: fragment.spans)
    return Whole(
        ordered[0].sentence,
        tuple(fragment.spans[0] for fragment in ordered),
        ordered[0].label,
        sum(fragment.score for fragment in ordered) / len(ordered) * link,
        tuple(fragment.origins[0] for fragment in ordered),
    )


def _reading_order(whole: Whole) -> tuple[int, int, int]:
    return whole.sentence, whole.spans[0][0], -whole.spans[-1][1]


def maximal_cliques(
    neighbours: Mapping[int, Set[int]], most_steps: int = _MOST_STEPS
) -> Iterator[list[int]]:
    """The sets of nodes that are all neighbours of each other, and of nobody else in common.

    The method is that of Bron and Kerbosch, with pivots. A graph may have exponentially many such
    sets: after `most_steps` steps, those found so far must do.

    Args:
        neighbours: Of every node that has any; it goes both ways.
        most_steps: Where to give up.
    """
    stack: list[tuple[list[int], Set[int], Set[int]]] = []
    if neighbours:
        stack.append(([], neighbours.keys(), set()))
    for _ in range(most_steps):
        if not stack:
            return
        clique, candidates, done = stack.pop()
        if not candidates and not done:
            yield clique
            continue
        # Whoever grows this clique without the pivot needs somebody that the pivot does not know.
        pivot = max(candidates | done, key=lambda node: len(candidates & neighbours[node]))
        for node in sorted(candidates - neighbours[pivot]):
            near = neighbours[node]
            stack.append(([*clique, node], candidates & near, done & near))
            candidates, done = candidates - {node}, done | {node}
