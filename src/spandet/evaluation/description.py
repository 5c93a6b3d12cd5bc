"""Statistics of a corpus: counts of sentences, words and entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spandet.evaluation.items import Item, Side, Words, fragments_of, items_of
from spandet.evaluation.scores import share
from spandet.evaluation.structure import count_crossing_pairs
from spandet.evaluation.tally import LENGTH_GROUPS, PlainShape, Shape, length_group, shapes
from spandet.rendering.tables import Table, Tabular, percent
from spandet.text import Document


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest entity in words; the first of several."""

    words: int
    label: str
    document: str
    text: str

    def __str__(self) -> str:
        return f"{self.words} words, {self.label}, in {self.document}: {self.text}"

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "words": self.words,
            "label": self.label,
            "document": self.document,
            "text": self.text,
        }


@dataclass(frozen=True)
class Statistics(Tabular):
    """Counts of a corpus; duplicate entities are included."""

    documents: int
    sentences: int
    words: int
    entities: int
    labels: Mapping[str, int]
    nested: int
    depths: Mapping[int, int]
    lengths: Mapping[str, int]
    exact_lengths: Mapping[int, int]
    crossing_pairs: int
    duplicates: int
    """Entities with the same fragments and label as an earlier one."""
    same_span_pairs: int
    """Pairs of entities with the same fragments and different labels."""
    discontinuous: int
    longest: Longest | None

    @property
    def nested_share(self) -> float:
        """The share of entities that contain another entity or are contained in one."""
        return share(self.nested, self.entities)

    @property
    def sentence_length(self) -> float:
        """The mean length of a sentence in words."""
        return share(self.words, self.sentences)

    @property
    def entity_length(self) -> float:
        """The mean length of an entity in words."""
        return share(sum(n * count for n, count in self.exact_lengths.items()), self.entities)

    @property
    def title(self) -> str:
        """The size of the corpus."""
        return (
            f"{self.documents:,} documents · {self.sentences:,} sentences · {self.words:,} words · "
            f"{self.entities:,} entities"
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON object; keys of histograms are strings."""
        return {
            "documents": self.documents,
            "sentences": self.sentences,
            "words": self.words,
            "entities": self.entities,
            "sentence_length": self.sentence_length,
            "entity_length": self.entity_length,
            "nested": self.nested,
            "nested_share": self.nested_share,
            "labels": dict(self.labels),
            "depths": {str(depth): number for depth, number in self.depths.items()},
            "lengths": dict(self.lengths),
            "exact_lengths": {str(length): number for length, number in self.exact_lengths.items()},
            "crossing_pairs": self.crossing_pairs,
            "duplicates": self.duplicates,
            "same_span_pairs": self.same_span_pairs,
            "discontinuous": self.discontinuous,
            "longest": self.longest.to_json() if self.longest else None,
        }

    def tables(self) -> Iterator[Table]:
        """Labels, structure and lengths; exact lengths in HTML only."""
        yield self._histogram("Labels", self.labels)
        yield self._structure()
        yield self._histogram("Depth", {f"depth {n}": count for n, count in self.depths.items()})
        yield self._histogram("Length in words", self.lengths)
        exact = {str(length): number for length, number in self.exact_lengths.items()}
        yield self._histogram("Exact length in words", exact, only="html")

    def _structure(self) -> Table:
        return Table(
            title="Structure",
            columns=("", "count"),
            rows=(
                (f"nested ({percent(self.nested_share)} %)", self.nested),
                ("crossing pairs", self.crossing_pairs),
                ("same span, other label", self.same_span_pairs),
                ("discontinuous", self.discontinuous),
                ("duplicates", self.duplicates),
            ),
            note=self._lengths_note(),
        )

    def _lengths_note(self) -> str:
        means = (
            f"Mean length in words: sentence {self.sentence_length:.1f}, "
            f"entity {self.entity_length:.1f}."
        )
        return f"{means} Longest: {self.longest}" if self.longest else ""

    def _histogram(
        self, title: str, counts: Mapping[str, int], *, only: Literal["html"] | None = None
    ) -> Table:
        return Table(
            title=title,
            columns=("", "%", "count"),
            rows=tuple(
                (name, share(number, self.entities), number) for name, number in counts.items()
            ),
            bar=1,
            only=only,
        )


def describe(documents: Iterable[Document]) -> Statistics:
    """Compute the statistics of a corpus in one pass."""
    count = _Count()
    for document in documents:
        count.add(document)
    return count.result()


class _Count:
    """Counts one document after another."""

    def __init__(self) -> None:
        self.documents = self.sentences = self.words = 0
        self.shapes: Counter[PlainShape] = Counter()
        self.crossing_pairs = self.duplicates = self.same_span_pairs = self.discontinuous = 0
        self.longest: Longest | None = None

    def add(self, document: Document) -> None:
        """Count one document."""
        sentences = document.sentences
        self.documents += 1
        self.sentences += len(sentences)
        self.words += sum(map(len, sentences))
        items = items_of(document)
        if items:
            self._add_items(items, document)

    def _add_items(self, items: list[Item], document: Document) -> None:
        side = Side(items, Words(document.sentences))
        own = list(shapes(side))
        self.shapes.update(own)
        distinct = set(items)
        self.duplicates += len(items) - len(distinct)
        labels_per_span = Counter(item[:3] for item in distinct)
        self.same_span_pairs += sum(n * (n - 1) // 2 for n in labels_per_span.values() if n > 1)
        self.discontinuous += sum(bool(item[2]) for item in items)
        self.crossing_pairs += count_crossing_pairs([item[:2] for item in distinct])
        length = max(shape[2] for shape in own)
        if self.longest is None or length > self.longest.words:
            item = next(
                item for item, shape in zip(side.ordered, own, strict=True) if shape[2] == length
            )
            name = str(self.documents) if document.id is None else document.id
            text = " … ".join(document.text[start:end] for start, end in fragments_of(item))
            self.longest = Longest(length, item[3], name, text)

    def result(self) -> Statistics:
        """The statistics of the documents so far."""
        labels: Counter[str] = Counter()
        depths: Counter[int] = Counter()
        lengths: Counter[int] = Counter()
        groups: Counter[str] = Counter()
        nested = 0
        for values, number in self.shapes.items():
            shape = Shape(*values)
            labels[shape.label] += number
            depths[shape.depth] += number
            lengths[shape.length] += number
            groups[length_group(shape.length)] += number
            nested += number * shape.nested
        return Statistics(
            documents=self.documents,
            sentences=self.sentences,
            words=self.words,
            entities=self.shapes.total(),
            labels=dict(sorted(labels.items(), key=lambda one: (-one[1], one[0]))),
            nested=nested,
            depths=dict(sorted(depths.items())),
            lengths={group: groups[group] for group in LENGTH_GROUPS},
            exact_lengths=dict(sorted(lengths.items())),
            crossing_pairs=self.crossing_pairs,
            duplicates=self.duplicates,
            same_span_pairs=self.same_span_pairs,
            discontinuous=self.discontinuous,
            longest=self.longest,
        )
