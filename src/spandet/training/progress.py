"""The progress of a training run on stderr: a bar in a terminal, a line per epoch everywhere."""

from __future__ import annotations

from collections.abc import Mapping

from spandet.rendering.progress import ProgressDisplay
from spandet.rendering.tables import duration
from spandet.training.checkpoint import EpochRecord


class Screen(ProgressDisplay):
    """Shows epochs with their losses and scores."""

    def __init__(self, *, silent: bool = False) -> None:
        super().__init__(silent=silent)
        self._epoch = ""

    def begin_epoch(self, epoch: int, epochs: int, sentences: int, done: int) -> None:
        """Start or resume an epoch (counted from 0)."""
        self._epoch = f"epoch {epoch + 1}/{epochs}"
        self.start(self._epoch, total=sentences, done=done)

    def advance(self, sentences: int, per_second: float, losses: Mapping[str, float]) -> None:
        """Count some more sentences of the epoch as done."""
        self.update(sentences, f"loss {_losses(losses)}  {per_second:.1f} sentences/s")

    def begin_part(self, name: str, total: int) -> None:
        """Start something other than training, such as the evaluation on dev."""
        self.start(f"{self._epoch} {name}".lstrip(), total=total)

    def advance_part(self, number: int) -> None:
        """Count some more items of this part as done."""
        self.update(number)

    def end_epoch(self, record: EpochRecord, epochs: int, *, is_best: bool) -> None:
        """Print the line of a finished epoch."""
        self.stop()
        parts = [
            f"epoch {record.epoch}/{epochs}",
            f"loss {_losses(record.losses)}",
            f"{record.sentences_per_second:.1f} sentences/s",
        ]
        if record.dev is not None:
            dev = record.dev
            scores = f"dev P {100 * dev.precision:.2f} R {100 * dev.recall:.2f}"
            parts.append(f"{scores} F1 {100 * dev.f1:.2f}{' best' if is_best else ''}")
        self.note("  ".join([*parts, duration(record.seconds)]))


def _losses(losses: Mapping[str, float]) -> str:
    """The sum of the losses, followed by each of them."""
    parts = ", ".join(f"{name} {value:.4f}" for name, value in losses.items())
    total = sum(losses.values())
    return f"{total:.4f} ({parts})" if len(losses) > 1 else f"{total:.4f}"
