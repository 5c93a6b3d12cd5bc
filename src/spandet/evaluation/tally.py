"""Counts over all documents, from which all scores are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import NamedTuple, TypeAlias, TypeVar

from spandet.evaluation.errors import ErrorCounter
from spandet.evaluation.items import Envelope, Item, ItemSpan, Side
from spandet.evaluation.pairs import Pair
from spandet.evaluation.scores import Score, score
from spandet.evaluation.structure import label_nesting, nested_depths

GroupT = TypeVar("GroupT", bound=Hashable)
Triple: TypeAlias = tuple[int, int, int]
"""Correct, predicted and gold entities of a document."""

LENGTH_GROUPS = ("1-4", "5-9", "10+")


def length_group(length: int) -> str:
    """The group of a length in words."""
    return LENGTH_GROUPS[0 if length < 5 else 1 if length < 10 else 2]


class Shape(NamedTuple):
    """The properties that entities are grouped by.

    Many entities have the same shape; shapes are counted once and then grouped.
    """

    label: str
    nested_depth: int
    """The depth if the entity contains another one or is contained, otherwise 0."""
    length: int
    same_label: bool
    """Whether it is nested with an entity of its own label (NST)."""
    other_label: bool
    """Whether it is nested with an entity of another label (NDT)."""

    @property
    def depth(self) -> int:
        """1 for entities that no other entity contains."""
        return self.nested_depth or 1

    @property
    def nested(self) -> bool:
        """Whether it contains another entity or is contained in one."""
        return self.nested_depth > 0


PlainShape: TypeAlias = tuple[str, int, int, bool, bool]
"""A shape as it is counted; plain tuples are much faster to create."""


ComparedShape: TypeAlias = tuple[str, int, int, bool, bool, bool]
"""A plain shape, and whether the other side has the same entity."""


def shapes(side: Side) -> Iterator[PlainShape]:
    """The shape of each item of a side."""
    depths = nested_depths(side.envelopes)
    columns = (side.labels, map(depths.get, side.envelopes, repeat(0)), side.lengths())
    return zip(*columns, *_label_nesting(side, depths), strict=True)


def _label_nesting(
    side: Side, depths: Mapping[Envelope, int]
) -> tuple[Iterable[bool], Iterable[bool]]:
    """Two columns: nested with the same label, nested with another label."""
    if not depths:
        nothing = [False] * len(side.envelopes)
        return nothing, nothing
    kinds = label_nesting(side.envelopes, side.labels, depths)
    keys = list(zip(side.envelopes, side.labels, strict=True))
    flat = (False, False)
    return [kinds.get(key, flat)[0] for key in keys], [kinds.get(key, flat)[1] for key in keys]


def _compared_shapes(side: Side, correct: set[Item]) -> Iterator[ComparedShape]:
    both = map(correct.__contains__, side.ordered)
    return ((*shape, is_in_both) for shape, is_in_both in zip(shapes(side), both, strict=True))


class Tally:
    """Counts one document after another."""

    def __init__(self) -> None:
        self.documents = 0
        self.sentences = 0
        self.agreed: Counter[PlainShape] = Counter()
        """Shapes in documents without errors, where both sides are equal."""
        self.gold: Counter[ComparedShape] = Counter()
        """Shapes in the other documents."""
        self.predicted: Counter[ComparedShape] = Counter()
        self.boundary: Counter[Triple] = Counter()
        self.labelling: Counter[Triple] = Counter()
        self.micro: Counter[Triple] = Counter()
        self.errors = ErrorCounter()

    def add(self, pair: Pair) -> None:
        """Count one document."""
        gold, predicted = pair.gold, pair.predicted
        self.documents += 1
        self.sentences += len(pair.document.sentences)
        if gold == predicted:
            self._add_agreement(pair)
            return
        correct = gold & predicted
        self.micro[len(correct), len(predicted), len(gold)] += 1
        gold_side, predicted_side = Side(gold, pair.words), Side(predicted, pair.words)
        self.gold.update(_compared_shapes(gold_side, correct))
        self.predicted.update(_compared_shapes(predicted_side, correct))
        self._add_spans(gold_side.spans, predicted_side.spans, len(correct))
        self.errors.add(pair, gold_side, predicted_side)

    def _add_agreement(self, pair: Pair) -> None:
        """Count a document without errors, which is faster."""
        number = len(pair.gold)
        self.micro[number, number, number] += 1
        if number:
            side = Side(pair.gold, pair.words)
            self.agreed.update(shapes(side))
            spans = len(set(side.spans))
            self.boundary[spans, spans, spans] += 1
            self.labelling[number, number, number] += 1

    def _add_spans(self, gold: list[ItemSpan], predicted: list[ItemSpan], correct: int) -> None:
        gold_set, predicted_set = set(gold), set(predicted)
        common = gold_set & predicted_set
        self.boundary[len(common), len(predicted_set), len(gold_set)] += 1
        number = len(common)
        if len(gold) == len(gold_set) and len(predicted) == len(predicted_set):
            self.labelling[correct, number, number] += 1
        else:  # some spans have several labels
            of_predicted = sum(map(common.__contains__, predicted))
            of_gold = sum(map(common.__contains__, gold))
            self.labelling[correct, of_predicted, of_gold] += 1

    def scores(self, group: Callable[[Shape], GroupT]) -> dict[GroupT, Score]:
        """One score per group; the entities of each side are grouped by their own shape."""
        gold, found = self._grouped(self.gold, group)
        predicted, correct = self._grouped(self.predicted, group)
        return {
            key: score(
                correct=correct[key], predicted=predicted[key], gold=gold[key], found=found[key]
            )
            for key in gold | predicted
        }

    def _grouped(
        self, counts: Counter[ComparedShape], group: Callable[[Shape], GroupT]
    ) -> tuple[Counter[GroupT], Counter[GroupT]]:
        """The number of entities per group, and how many of them the other side has as well."""
        everything: Counter[GroupT] = Counter()
        agreed: Counter[GroupT] = Counter()
        for values, number in self.agreed.items():
            agreed[group(Shape(*values))] += number
        everything.update(agreed)
        for compared, number in counts.items():
            key = group(Shape(*compared[:-1]))
            everything[key] += number
            agreed[key] += number * compared[-1]
        return everything, agreed


def total(triples: Counter[Triple]) -> Score:
    """The score of all documents together."""
    sums = [sum(triple[i] * times for triple, times in triples.items()) for i in range(3)]
    return score(correct=sums[0], predicted=sums[1], gold=sums[2])
