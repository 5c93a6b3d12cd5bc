"""Linking: contiguous and discontinuous entities from decoded fragments."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, groupby

import numpy as np
from jaxtyping import Float

from spandet.inference.candidates import Candidates, LinkProbs, row_mask, to_rows
from spandet.inference.decoding import DecodedSpans, DecodingSettings, decode, without_shared_words

LINK_THRESHOLD = 0.5
"""Above this probability two fragments are linked, and a fragment is an entity by itself."""
_MAX_STEPS = 2000
"""Maximum steps of the search for cliques in a sentence; 20 randomly linked fragments need less."""


@dataclass(frozen=True, slots=True)
class DecodedEntity:
    """An entity: one fragment, or several that are linked."""

    sentence: int
    spans: tuple[tuple[int, int], ...]
    """Its fragments, from left to right."""
    label: int
    score: float
    origins: tuple[int, ...]
    """Index of the candidate of each fragment in its sentence."""

    @property
    def start(self) -> int:
        """Its first word."""
        return self.spans[0][0]

    @property
    def end(self) -> int:
        """The end of its last word."""
        return self.spans[-1][1]


def assemble(candidates: Candidates, settings: DecodingSettings) -> list[DecodedEntity]:
    """Entities in reading order: by sentence, from left to right, outer before inner.

    Without links, each decoded span is an entity. With links, an entity is a fragment that is one
    by itself, or a maximal clique of linked fragments with the same label; cliques may share
    fragments. The score of a clique is the mean score of its fragments times the mean probability
    of its links.

    Fragments are linked before the threshold is applied, so that a higher threshold only removes
    entities and never changes one. With `flat`, overlaps are resolved between entities: a fragment
    that is part of no entity does not suppress any.
    """
    links = candidates.links
    if links is None:
        return _single(decode(candidates, settings))
    first = settings.keeping_overlaps if settings.flat else settings
    found = decode(candidates, first.model_copy(update={"threshold": 0.0}))
    alone = links.alone[found.sentence, found.origin] > LINK_THRESHOLD
    single = _single(found.where(alone & (found.scores > settings.threshold)))
    linked = _linked(found, links, len(candidates.mask))
    several = [entity for entity in linked if entity.score > settings.threshold]
    entities = sorted([*single, *several], key=_reading_order)
    return _flat(entities) if settings.flat else entities


def _flat(entities: Sequence[DecodedEntity]) -> list[DecodedEntity]:
    """The entities of each sentence that share no word with one of a higher score."""
    return [
        entity
        for _, own in groupby(entities, key=lambda entity: entity.sentence)
        for entity in without_shared_words(
            own, spans=lambda one: one.spans, score=lambda one: one.score
        )
    ]


def _single(found: DecodedSpans) -> list[DecodedEntity]:
    """An entity for each decoded span."""
    rows = zip(
        found.sentence.tolist(),
        found.spans.tolist(),
        found.labels.tolist(),
        found.scores.tolist(),
        found.origin.tolist(),
        strict=True,
    )
    return [
        DecodedEntity(sentence, ((start, end),), label, score, (origin,))
        for sentence, (start, end), label, score, origin in rows
    ]


def _linked(found: DecodedSpans, links: LinkProbs, batch: int) -> Iterator[DecodedEntity]:
    """An entity for each maximal clique of linked fragments."""
    fragments = iter(_single(found))
    counts = np.bincount(found.sentence, minlength=batch).tolist()
    table = _link_table(found, links, batch)
    linked = np.argwhere(table > LINK_THRESHOLD).tolist()
    edges: list[dict[int, set[int]]] = [{} for _ in range(batch)]
    for sentence, one, other in linked:
        edges[sentence].setdefault(one, set()).add(other)
    for sentence, count in enumerate(counts):
        own = [next(fragments) for _ in range(count)]
        for clique in maximal_cliques(edges[sentence]):
            pairs = np.array(list(combinations(clique, 2)))
            link = float(table[sentence, pairs[:, 0], pairs[:, 1]].mean())
            yield _joined([own[i] for i in clique], link)


def _link_table(
    found: DecodedSpans, links: LinkProbs, batch: int
) -> Float[np.ndarray, "batch fragment fragment"]:
    """Link probabilities of the fragments; 0 for those with different labels."""
    mask = row_mask(found.sentence, batch)
    origins, labels = to_rows(found.origin, mask), to_rows(found.labels, mask)
    rows = np.arange(batch)[:, None, None]
    table = links.together[rows, origins[:, :, None], origins[:, None]]
    same = labels[:, :, None] == labels[:, None]
    linkable: np.ndarray = table * (same & mask[:, :, None] & mask[:, None])
    return linkable


def _joined(fragments: Sequence[DecodedEntity], link: float) -> DecodedEntity:
    ordered = sorted(fragments, key=lambda fragment: fragment.spans)
    return DecodedEntity(
        ordered[0].sentence,
        tuple(fragment.spans[0] for fragment in ordered),
        ordered[0].label,
        sum(fragment.score for fragment in ordered) / len(ordered) * link,
        tuple(fragment.origins[0] for fragment in ordered),
    )


def _reading_order(entity: DecodedEntity) -> tuple[int, int, int]:
    return entity.sentence, entity.start, -entity.end


def maximal_cliques(
    neighbours: Mapping[int, Set[int]], max_steps: int = _MAX_STEPS
) -> Iterator[list[int]]:
    """The maximal cliques of a graph, by the algorithm of Bron and Kerbosch with pivots.

    A graph may have exponentially many: after `max_steps` steps, only those found so far are
    returned.

    Args:
        neighbours: The neighbours of each node that has any; symmetric.
        max_steps: Maximum number of steps.
    """
    stack: list[tuple[list[int], Set[int], Set[int]]] = []
    if neighbours:
        stack.append(([], neighbours.keys(), set()))
    for _ in range(max_steps):
        if not stack:
            return
        clique, candidates, done = stack.pop()
        if not candidates and not done:
            yield clique
            continue
        # A larger clique without the pivot needs a node that is no neighbour of the pivot.
        pivot = max(candidates | done, key=lambda node: len(candidates & neighbours[node]))
        for node in sorted(candidates - neighbours[pivot]):
            near = neighbours[node]
            stack.append(([*clique, node], candidates & near, done & near))
            candidates, done = candidates - {node}, done | {node}
