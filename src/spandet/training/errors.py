"""Why a run ended before its time."""

from __future__ import annotations

from spandet.errors import SpandetError


class TrainingError(SpandetError):
    """A run that cannot go on; nothing that was written before is lost."""


class TrainingInterrupted(TrainingError):  # noqa: N818 (a wish, no error)
    """Somebody asked the run to end; its checkpoint is complete."""

    def __init__(self, what: str, signal: int) -> None:
        super().__init__(what)
        self.signal = signal
        """Which signal it was: a shell expects the exit code 128 + signal."""
