"""Candidates at each stage of a detector, and how far the boundaries of its entities move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from spandet.encoding import Example
from spandet.inference.decoding import decode
from spandet.inference.engine import to_numpy
from spandet.inference.linking import assemble
from spandet.inference.recognizer import Recognizer
from spandet.rendering.svg import category_plot
from spandet.rendering.tables import Table, Tabular
from spandet.tensors import Trace
from spandet.text import Document, Entity, WordSpan
from spandet.training.data import Split
from spandet.training.summary import versions

DISTANCES = ("0", "1", "2", "3", "4 or more")
"""Groups of distances in words."""
BOUNDARIES = ("left", "right")


@dataclass
class StageCounts:
    """Counts over all sentences."""

    sentences: int = 0
    candidates: Counter[str] = field(default_factory=Counter)
    """Candidates after each stage, by its name, in the order of the stages."""
    spans: Counter[str] = field(default_factory=Counter)
    """The same, distinct spans in whole words only."""
    kept: int = 0
    """Candidates that the detector does not drop."""
    labelled: int = 0
    """Distinct spans of these with a label, before suppression and threshold."""
    entities: int = 0
    correct: int = 0
    gold: int = 0
    moves: Mapping[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in BOUNDARIES}
    )
    """Distances of the boundaries of entities from those in the first stage."""
    correct_moves: Mapping[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in BOUNDARIES}
    )
    """The same, correct entities only."""


def count_stages(recognizer: Recognizer, documents: Iterable[Document]) -> StageCounts:
    """Predict documents sentence by sentence, and count candidates and distances.

    Args:
        recognizer: The model; every detector has stages.
        documents: Gold documents.
    """
    counts = StageCounts()
    for document in documents:
        by_sentence, misfits = document.entities_in_words()
        counts.gold += len(misfits)
        examples = recognizer.tagged(recognizer.examples_of(document))
        for example, gold in zip(examples, by_sentence, strict=True):
            counts.gold += len(set(gold))
            if example.words:
                _count_sentence(counts, recognizer, example, gold)
    return counts


def _count_sentence(
    counts: StageCounts,
    recognizer: Recognizer,
    example: Example,
    gold: Sequence[Entity[WordSpan]],
) -> None:
    # A sentence alone needs no padding, so that all its candidates are real ones.
    predictions = recognizer.engine.detect([example], keep_all=True)
    candidates, decoding = to_numpy(predictions), recognizer.decoding
    counts.sentences += 1
    for name, spans in _stages(predictions.trace):
        counts.candidates[name] += len(spans)
        counts.spans[name] += len(np.unique(_whole(spans), axis=0))
    counts.kept += int(candidates.mask.sum())
    everything = decoding.keeping_overlaps.model_copy(update={"threshold": 0.0})
    counts.labelled += len(decode(candidates, everything).spans)
    wanted = {(entity.spans, entity.label) for entity in gold}
    first = _whole(next(_stages(predictions.trace))[1])
    for decoded in assemble(candidates, decoding):
        entity = recognizer.entity(decoded)
        is_correct = (entity.spans, entity.label) in wanted
        counts.entities += 1
        counts.correct += is_correct
        for span, origin in zip(decoded.spans, decoded.origins, strict=True):
            for name, distance in zip(BOUNDARIES, np.abs(first[origin] - span), strict=True):
                group = DISTANCES[min(int(distance), len(DISTANCES) - 1)]
                counts.moves[name][group] += 1
                counts.correct_moves[name][group] += is_correct


def _stages(trace: Trace) -> Iterator[tuple[str, Float[np.ndarray, "span 2"]]]:
    """Name and spans of each stage of the only sentence."""
    for stage in trace:
        yield stage.name, stage.spans[0].detach().cpu().numpy()


def _whole(spans: Float[np.ndarray, "span 2"]) -> Int[np.ndarray, "span 2"]:
    """The nearest whole words."""
    words: np.ndarray = np.rint(spans).astype(np.int64)
    return words


@dataclass(frozen=True, kw_only=True)
class StagesReport(Tabular):
    """Counts of a model on some data."""

    model: str
    data: Split
    counts: StageCounts

    @property
    def title(self) -> str:
        """The model and the data."""
        return f"Stages of {self.model} on {self.data.name}"

    @property
    def introduction(self) -> str:
        """How to read the tables."""
        counts = self.counts
        return (
            f"{counts.sentences:,} sentences with {counts.gold:,} gold entities. Distances are "
            f"those between the boundaries of a predicted entity and of its candidate in the first "
            f"stage, in words."
        )

    def tables(self) -> Sequence[Table]:
        """Candidates by stage, then distances."""
        return [self._candidates(), self._distances()]

    def to_json(self) -> dict[str, Any]:
        """All counts, over all sentences."""
        counts = self.counts
        return {
            "model": self.model,
            "data": {"name": self.data.name, "sha256": self.data.file_sha256},
            "sentences": counts.sentences,
            "stages": [
                {"name": name, "candidates": number, "spans": counts.spans[name]}
                for name, number in counts.candidates.items()
            ],
            "kept": counts.kept,
            "labelled": counts.labelled,
            "entities": counts.entities,
            "correct": counts.correct,
            "gold": counts.gold,
            "moves": _plain(counts.moves),
            "correct_moves": _plain(counts.correct_moves),
            "versions": versions(),
        }

    def _candidates(self) -> Table:
        counts = self.counts
        stages = [(name, number, counts.spans[name]) for name, number in counts.candidates.items()]
        later: list[tuple[str, int, int | None]] = [
            ("kept by the detector", counts.kept, None),
            ("spans with a label", counts.labelled, None),
            ("entities", counts.entities, None),
            ("correct entities", counts.correct, None),
            ("gold entities", counts.gold, None),
        ]
        sentences = max(1, counts.sentences)
        return Table(
            formatted=True,
            title="Candidates",
            columns=("after", "number", "per sentence", "distinct spans per sentence"),
            rows=tuple(
                (
                    name,
                    f"{number:,}",
                    f"{number / sentences:.2f}",
                    "" if spans is None else f"{spans / sentences:.2f}",
                )
                for name, number, spans in [*stages, *later]
            ),
            note="Spans with a label are counted before suppression and threshold.",
        )

    def _distances(self) -> Table:
        counts = self.counts
        shares = {
            name: [_share(counts.moves[name], group) for group in DISTANCES] for name in BOUNDARIES
        }
        groups = [
            *(counts.moves[name] for name in BOUNDARIES),
            *(counts.correct_moves[name] for name in BOUNDARIES),
        ]
        return Table(
            title="Distance of boundaries from the first stage",
            columns=(
                "words",
                "left",
                "right",
                "both",
                "% of both",
                "left, correct entities",
                "right, correct entities",
            ),
            rows=tuple(
                (
                    group,
                    groups[0][group],
                    groups[1][group],
                    groups[0][group] + groups[1][group],
                    _share(groups[0] + groups[1], group),
                    groups[2][group],
                    groups[3][group],
                )
                for group in DISTANCES
            ),
            bar=4,
            plots=(
                category_plot(
                    {name: [100 * share for share in own] for name, own in shares.items()},
                    DISTANCES,
                    x_label="distance in words",
                    title="Share of boundaries by distance from the first stage, %",
                    from_zero=True,
                ),
            ),
        )


def _share(counts: Counter[str], group: str) -> float:
    return counts[group] / max(1, counts.total())


def _plain(moves: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {name: {group: own[group] for group in DISTANCES} for name, own in moves.items()}
