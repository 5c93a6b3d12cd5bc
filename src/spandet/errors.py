"""The exceptions of spandet:

SpandetError            base class; the command line shows its message without a traceback
├── FormatError         an invalid record: where it is, what was found, what was expected
├── MismatchError       two inputs that do not belong together, such as gold and predicted
├── ConfigError         a recipe or setting that cannot be used; names section and key
├── UsageError          an argument that cannot be used (an unknown format, an output that exists)
├── TrainingError       a training run that cannot continue; files already written stay intact
│   └── TrainingInterrupted   SIGINT or SIGTERM: the run stopped after writing a checkpoint
└── MissingExtraError   an optional dependency is not installed; names the command to install it
"""

from __future__ import annotations


class SpandetError(Exception):
    """The base class of all errors that spandet raises on purpose."""


class FormatError(SpandetError):
    """A record that is invalid in its format.

    Parsers describe the problem; the reader, which knows file and line, adds the place with `at`.
    """

    def __init__(self, what: str, place: str | None = None) -> None:
        super().__init__(what if place is None else f"{place}: {what}")
        self.what = what
        self.place = place

    def at(self, place: str) -> FormatError:
        """The same error with its place, unless it already has one."""
        return self if self.place is not None else FormatError(self.what, place)

    def inside(self, part: str) -> FormatError:
        """The same error, with the name of a part of the record ("entity 3") before it."""
        return FormatError(f"{part}: {self.what}", self.place)


class MismatchError(SpandetError):
    """Two inputs that do not belong together."""


class ConfigError(SpandetError):
    """A recipe or setting that cannot be used."""


class UsageError(SpandetError):
    """An argument that cannot be used."""


class MissingExtraError(SpandetError):
    """An optional dependency that is not installed."""

    def __init__(self, *, needs: str, extra: str, command: str | None = None) -> None:
        command = command or f'pip install "spandet[{extra}]"'
        super().__init__(f"{needs} needs an extra: {command}")


class TrainingError(SpandetError):
    """A training run that cannot continue; files already written stay intact."""


class TrainingInterrupted(TrainingError):  # noqa: N818 (not an error)
    """The run was stopped by a signal, after it wrote a checkpoint."""

    def __init__(self, what: str, signal: int) -> None:
        super().__init__(what)
        self.signal = signal
        """Number of the signal: a shell expects the exit code 128 + signal."""
