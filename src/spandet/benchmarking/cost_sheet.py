"""What prediction or training costs, as tables, plots and plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spandet.benchmarking.clock import Timing
from spandet.benchmarking.cost import Cost, together
from spandet.benchmarking.inference import PredictPace
from spandet.benchmarking.lengths import LengthCost
from spandet.benchmarking.memory import megabytes
from spandet.benchmarking.parts import Profile
from spandet.rendering.svg import category_plot
from spandet.rendering.tables import Table, Tabular
from spandet.training.data import Split
from spandet.training.summary import versions


@dataclass(frozen=True, kw_only=True)
class CostSheet(Tabular):
    """What was measured of a model's prediction, or of a recipe's training step."""

    what: str
    """`prediction` or `training`."""
    of: str
    """The model or the recipe."""
    data: Split
    timing: Timing
    batch: str
    """How large batches are, in words."""
    encoder: str
    """What the bare encoder is."""
    costs: Sequence[Cost]
    predict: PredictPace | None = None
    lengths: Sequence[LengthCost] = ()
    profile: Profile | None = None

    @property
    def title(self) -> str:
        """What was measured, of what, on what."""
        return f"{self.what.capitalize()}: {self.of} on {self.data.name}"

    @property
    def introduction(self) -> str:
        """How to read the figures."""
        return (
            f"Sentences per second, {self.timing.described()}, in batches of {self.batch}. "
            f"Ratio: time of everything over time of the bare {self.encoder}, on the same batches "
            f"in the same run. Memory: the most that the process had with the longest batch, "
            f"weights included."
        )

    def tables(self) -> Sequence[Table]:
        """By length of sentence first, then what else was asked for."""
        return [self._by_length(), *self._predict(), *self._detector_alone(), *self._parts()]

    def to_json(self) -> dict[str, Any]:
        """Plain values; the first ones are for all lengths, each as often as the data have it."""
        return {
            "what": self.what,
            "of": self.of,
            "data": {
                "name": self.data.name,
                "sentences": self.data.sentences,
                "sha256": self.data.file_sha256,
            },
            **_plain(together(self.costs)),
            "by_length": [{"words": cost.name, **_plain(cost)} for cost in self.costs],
            "predict": None
            if self.predict is None
            else {
                "sentences": self.predict.sentences,
                "sentences_per_second": self.predict.per_second,
            },
            "detector_alone": [
                {"words": one.words, "ms_per_word": 1000 * one.seconds, "kept_bytes": one.kept}
                for one in self.lengths
            ],
            "profile": None
            if self.profile is None
            else {
                "sentences": self.profile.sentences,
                "forward_seconds": self.profile.forward,
                "backward_seconds": self.profile.backward,
                "shares_of_forward": {part.name: part.share for part in self.profile.parts},
            },
            "timing": {
                "batch": self.batch,
                "rounds": self.timing.rounds,
                "threads": self.timing.threads,
                "clock": self.timing.clock,
                "bare_encoder": self.encoder,
            },
            "versions": versions(),
        }

    def _by_length(self) -> Table:
        costs, places = self.costs, [cost.name for cost in self.costs]
        rates = {
            "bare encoder": [1 / cost.bare for cost in costs],
            "everything": [1 / cost.whole for cost in costs],
        }
        ratio = {"ratio": [cost.ratio for cost in costs]}
        across = "words per sentence"
        return Table(
            formatted=True,
            title="By words per sentence",
            columns=("words", "sentences", "timed", "bare/s", "all/s", "ratio", "memory, MB"),
            rows=tuple(map(_cells, (together(costs), *costs))),
            note="The first row weighs lengths as the data do.",
            plots=(
                category_plot(
                    rates, places, x_label=across, title="Sentences per second", from_zero=True
                ),
                category_plot(ratio, places, x_label=across, title="Ratio", from_zero=True),
            ),
        )

    def _predict(self) -> Iterator[Table]:
        if self.predict is not None:
            pace = self.predict
            yield Table(
                formatted=True,
                title="Recognizer.predict, from documents to documents",
                columns=("", "sentences", "sentences/s"),
                rows=(("batches of its own", f"{pace.sentences:,}", f"{pace.per_second:.1f}"),),
            )

    def _detector_alone(self) -> Iterator[Table]:
        if self.lengths:
            yield Table(
                formatted=True,
                title="The detector alone, by length of one sentence",
                columns=("words", "ms/word", "kept for backward, kB/word"),
                rows=tuple(
                    (
                        f"{one.words:,}",
                        f"{1000 * one.seconds:.3f}",
                        "" if one.kept is None else f"{one.kept / 1024:.1f}",
                    )
                    for one in self.lengths
                ),
            )

    def _parts(self) -> Iterator[Table]:
        if self.profile is not None:
            seen = self.profile
            yield Table(
                formatted=True,
                title="Where the forward pass spends its time",
                columns=("part, with what is below it", "%"),
                rows=tuple((part.name, f"{100 * part.share:.1f}") for part in seen.parts),
                note=f"Forward {seen.forward:.2f} s, backward and update {seen.backward:.2f} s "
                f"for {seen.sentences} sentences.",
            )


def _cells(cost: Cost) -> tuple[str, ...]:
    return (
        cost.name,
        f"{cost.sentences:,}",
        f"{cost.timed:,}",
        f"{1 / cost.bare:.1f}",
        f"{1 / cost.whole:.1f}",
        f"{cost.ratio:.2f}",
        megabytes(cost.peak),
    )


def _plain(cost: Cost) -> dict[str, Any]:
    return {
        "sentences": cost.sentences,
        "timed": cost.timed,
        "bare_sentences_per_second": 1 / cost.bare,
        "sentences_per_second": 1 / cost.whole,
        "ratio": cost.ratio,
        "peak_memory_bytes": cost.peak,
    }
