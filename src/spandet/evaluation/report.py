"""Exact scoring of predictions; docs/evaluation.md defines every figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spandet.evaluation.alignment import aligned
from spandet.evaluation.bootstrap import Interval, check_resamples, intervals
from spandet.evaluation.errors import Errors, Mention
from spandet.evaluation.pairs import pair
from spandet.evaluation.scores import Score, macro, score, score_table, share
from spandet.evaluation.tally import LENGTH_GROUPS, Tally, length_group, total
from spandet.rendering.tables import Table, Tabular, percent
from spandet.text import Document

_CONFUSIONS = 12  # in the terminal and in Markdown; HTML and JSON have all


@dataclass(frozen=True)
class Report(Tabular):
    """The result of `evaluate`."""

    documents: int
    sentences: int
    micro: Score
    macro: Score
    """The mean over the labels that occur in gold or predicted."""
    boundary: Score
    labelling: Score
    nested: Score
    nested_same_label: Score
    """Nested with an entity of the same label (NST)."""
    nested_other_label: Score
    """Nested with an entity of another label (NDT)."""
    flat: Score
    labels: Mapping[str, Score]
    depths: Mapping[int, Score]
    lengths: Mapping[str, Score]
    exact_lengths: Mapping[int, Score]
    errors: Errors
    intervals: Mapping[str, Interval | None]
    resamples: int

    @property
    def title(self) -> str:
        """Micro F1, precision and recall."""
        return (
            f"F1 {percent(self.micro.f1)} · precision {percent(self.micro.precision)} · "
            f"recall {percent(self.micro.recall)}"
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON object; every score has precision, recall, f1, support and its counts."""
        return {
            "documents": self.documents,
            "sentences": self.sentences,
            "micro": self.micro.to_json(),
            "macro": self.macro.to_json(),
            "boundary": self.boundary.to_json(),
            "labelling": self.labelling.to_json(),
            "nested": self.nested.to_json(),
            "nested_same_label": self.nested_same_label.to_json(),
            "nested_other_label": self.nested_other_label.to_json(),
            "flat": self.flat.to_json(),
            "labels": _plain(self.labels),
            "depths": _plain(self.depths),
            "lengths": _plain(self.lengths),
            "exact_lengths": _plain(self.exact_lengths),
            "errors": self.errors.to_json(),
            "intervals": {
                name: None if interval is None else interval.to_json()
                for name, interval in self.intervals.items()
            },
        }

    def tables(self) -> Iterator[Table]:
        """Overall, labels, structure, length, errors; HTML has details and examples in addition."""
        yield self._overall()
        yield score_table("Labels", self.labels.items())
        depths = [(f"depth {depth}", one) for depth, one in self.depths.items()]
        kinds = [
            ("nested, same label", self.nested_same_label),
            ("nested, other label", self.nested_other_label),
        ]
        structure = [("flat", self.flat), ("nested", self.nested), *kinds, *depths]
        yield score_table("Structure (each side by its own)", structure)
        yield score_table("Length in words", self.lengths.items())
        exact = [(str(length), one) for length, one in self.exact_lengths.items()]
        yield score_table("Exact length in words", exact, only="html")
        yield self._causes()
        if self.errors.confusion:
            yield self._confusions()
            yield self._confusion_matrix()
        if self.errors.examples:
            yield self._examples()

    def _overall(self) -> Table:
        rows = [
            ("micro", self.micro),
            ("macro", self.macro),
            ("boundary", self.boundary),
            ("labelling", self.labelling),
        ]
        notes = [f"{self.documents:,} documents, {self.sentences:,} sentences."]
        ranges = [
            f"{name} {percent(interval.low)}–{percent(interval.high)}"
            for name, interval in zip(("P", "R", "F1"), self.intervals.values(), strict=True)
            if interval is not None
        ]
        if ranges:
            drawn = f"{self.resamples:,} resamples of documents"
            notes.append(f"95 % intervals of micro: {', '.join(ranges)} ({drawn}).")
        return score_table("Overall", rows, note=" ".join(notes))

    def _causes(self) -> Table:
        wrong, missed = self.errors.false_positives, self.errors.false_negatives
        sums = sum(wrong.values()), sum(missed.values())
        names = dict.fromkeys((*wrong, *missed))
        rows = [
            (
                cause,
                *_count_and_share(wrong.get(cause), sums[0]),
                *_count_and_share(missed.get(cause), sums[1]),
            )
            for cause in names
        ]
        return Table(
            title="Errors by cause",
            columns=("", "wrong predictions", "%", "gold not found", "%"),
            rows=(*rows, ("all", sums[0], None, sums[1], None)),
        )

    def _confusions(self) -> Table:
        pairs = list(self.errors.confusion.items())
        left_out = len(pairs) - _CONFUSIONS
        return Table(
            title="Right span, wrong label",
            columns=("gold", "predicted", "count"),
            rows=tuple((gold, found, number) for (gold, found), number in pairs[:_CONFUSIONS]),
            note=f"{left_out} rarer pairs are not shown." if left_out > 0 else "",
            only="text",
        )

    def _confusion_matrix(self) -> Table:
        confusion = self.errors.confusion
        labels = sorted({label for both in confusion for label in both})
        return Table(
            title="Label confusion: gold down, predicted across",
            columns=("", *labels),
            rows=tuple(
                (gold, *(confusion.get((gold, found)) for found in labels)) for gold in labels
            ),
            note="Right spans with a wrong label; correct labels are not counted.",
            only="html",
        )

    def _examples(self) -> Table:
        return Table(
            title="Examples",
            columns=("error", "document", "gold", "predicted"),
            rows=tuple(
                (
                    f"{one.kind}: {one.cause}",
                    one.document,
                    _mention_text(one.gold),
                    _mention_text(one.predicted),
                )
                for one in self.errors.examples
            ),
            only="html",
        )


def evaluate(
    gold: Iterable[Document], predicted: Iterable[Document], *, resamples: int = 1000, seed: int = 0
) -> Report:
    """Score predictions against gold by exact sets of (document, fragments, label).

    Both are read once, in parallel. Documents are paired by id, or by order where a side has no
    ids; texts may differ in white space. `resamples` is the number of resamples for the intervals.

    Raises:
        MismatchError: documents cannot be paired, or their texts differ.
    """
    check_resamples(resamples)
    tally = Tally()
    rows = aligned({"gold": gold, "predicted": predicted})
    for number, (gold_document, predicted_document) in enumerate(rows, 1):
        tally.add(pair(gold_document, predicted_document, number))
    return _report(tally, resamples, seed)


def _report(tally: Tally, resamples: int, seed: int) -> Report:
    nothing = score(correct=0, predicted=0, gold=0)
    labels = tally.scores(lambda shape: shape.label)
    nested = tally.scores(lambda shape: shape.nested)
    same_label = tally.scores(lambda shape: shape.same_label)
    other_label = tally.scores(lambda shape: shape.other_label)
    lengths = tally.scores(lambda shape: length_group(shape.length))
    depths = tally.scores(lambda shape: shape.depth)
    exact_lengths = tally.scores(lambda shape: shape.length)
    return Report(
        documents=tally.documents,
        sentences=tally.sentences,
        micro=total(tally.micro),
        macro=macro(labels.values()),
        boundary=total(tally.boundary),
        labelling=total(tally.labelling),
        nested=nested.get(True, nothing),
        nested_same_label=same_label.get(True, nothing),
        nested_other_label=other_label.get(True, nothing),
        flat=nested.get(False, nothing),
        labels=dict(sorted(labels.items(), key=lambda one: (-one[1].gold, one[0]))),
        depths=dict(sorted(depths.items())),
        lengths={group: lengths.get(group, nothing) for group in LENGTH_GROUPS},
        exact_lengths=dict(sorted(exact_lengths.items())),
        errors=tally.errors.result(),
        intervals=intervals(tally.micro, resamples=resamples, seed=seed),
        resamples=resamples,
    )


def _plain(scores: Mapping[Any, Score]) -> dict[str, Any]:
    return {str(name): one.to_json() for name, one in scores.items()}


def _count_and_share(number: int | None, total: int) -> tuple[int | None, float | None]:
    return (None, None) if number is None else (number, share(number, total))


def _mention_text(mention: Mention | None) -> str:
    return "–" if mention is None else f"{mention.text}  ({mention.label})"
