"""The cost of prediction or of training as tables, plots and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spandet.benchmarking.cost import Cost, PredictSpeed, weighted_mean
from spandet.benchmarking.measuring import Timing, megabytes
from spandet.benchmarking.profiling import LengthCost, Profile
from spandet.rendering.svg import category_plot
from spandet.rendering.tables import Table, Tabular
from spandet.training.data import Split
from spandet.training.summary import versions


@dataclass(frozen=True, kw_only=True)
class CostReport(Tabular):
    """Measurements of a model's prediction or of a recipe's training step."""

    what: str
    """`prediction` or `training`."""
    of: str
    """The model or the recipe."""
    data: Split
    timing: Timing
    batch: str
    """The size of the batches, as text."""
    encoder: str
    """What the bare encoder is, as text."""
    costs: Sequence[Cost]
    predict: PredictSpeed | None = None
    lengths: Sequence[LengthCost] = ()
    profile: Profile | None = None

    @property
    def title(self) -> str:
        """What was measured, of which model or recipe, on which data."""
        return f"{self.what.capitalize()}: {self.of} on {self.data.name}"

    @property
    def introduction(self) -> str:
        """How the figures were measured."""
        return (
            f"Sentences per second, {self.timing.method()}, in batches of {self.batch}. "
            f"Ratio: time of everything over time of the bare {self.encoder}, on the same batches "
            f"in the same run. Memory: the peak of the process with the longest batch, weights "
            f"included."
        )

    def tables(self) -> Sequence[Table]:
        """Costs by sentence length, then the optional measurements."""
        return [self._by_length(), *self._predict(), *self._detector_alone(), *self._modules()]

    def to_json(self) -> dict[str, Any]:
        """All measurements; those on the top level are weighted means over all lengths."""
        return {
            "what": self.what,
            "of": self.of,
            "data": {
                "name": self.data.name,
                "sentences": self.data.sentences,
                "sha256": self.data.file_sha256,
            },
            **_plain(weighted_mean(self.costs)),
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
                "shares_of_forward": {module.name: module.share for module in self.profile.modules},
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
        label = "words per sentence"
        return Table(
            formatted=True,
            title="By words per sentence",
            columns=("words", "sentences", "timed", "bare/s", "all/s", "ratio", "memory, MB"),
            rows=tuple(map(_cells, (weighted_mean(costs), *costs))),
            note="The first row is the mean over all sentences of the data.",
            plots=(
                category_plot(
                    rates, places, x_label=label, title="Sentences per second", from_zero=True
                ),
                category_plot(ratio, places, x_label=label, title="Ratio", from_zero=True),
            ),
        )

    def _predict(self) -> Iterator[Table]:
        if self.predict is not None:
            speed = self.predict
            yield Table(
                formatted=True,
                title="Recognizer.predict, from documents to documents",
                columns=("", "sentences", "sentences/s"),
                rows=(("in its own batches", f"{speed.sentences:,}", f"{speed.per_second:.1f}"),),
            )

    def _detector_alone(self) -> Iterator[Table]:
        if self.lengths:
            yield Table(
                formatted=True,
                title="The detector alone, by sentence length",
                columns=("words", "ms/word", "stored for backward, kB/word"),
                rows=tuple(
                    (
                        f"{one.words:,}",
                        f"{1000 * one.seconds:.3f}",
                        "" if one.kept is None else f"{one.kept / 1024:.1f}",
                    )
                    for one in self.lengths
                ),
            )

    def _modules(self) -> Iterator[Table]:
        if self.profile is not None:
            profile = self.profile
            yield Table(
                formatted=True,
                title="Where the forward pass spends its time",
                columns=("module, submodules included", "%"),
                rows=tuple(
                    (module.name, f"{100 * module.share:.1f}") for module in profile.modules
                ),
                note=f"Forward {profile.forward:.2f} s, backward and update "
                f"{profile.backward:.2f} s for {profile.sentences} sentences.",
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
