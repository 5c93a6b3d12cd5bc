"""The job: inputs through a recognizer into an output, in steps that can be repeated exactly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spandet.errors import SpandetError, UsageError
from spandet.formats import FORMATS, write
from spandet.formats.detection import detect_writer
from spandet.formats.target import STDOUT, Target
from spandet.predicting.inputs import Inputs
from spandet.predicting.spool import SUFFIX, Spool
from spandet.streaming import BATCH_PIECES, windows
from spandet.text import Document
from spandet.watching import watched

if TYPE_CHECKING:
    from spandet.recognizer import Recognizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What decides which entities come out, beside model and inputs."""

    min_score: float | None = None
    labels: tuple[str, ...] | None = None
    batch_pieces: int = BATCH_PIECES
    """Scores may differ in their last digits with it, as with the device."""
    device: str | None = None
    overrides: tuple[str, ...] = ()


def is_stream(output: str) -> bool:
    """Does the output go somewhere where nothing stays, so that there is no spool?"""
    final = Path(output)
    return output == STDOUT or (final.exists() and not final.is_file() and not final.is_dir())


@dataclass(frozen=True)
class Job:
    """Inputs, and where the results go."""

    inputs: Inputs
    output: str
    format: str | None
    choices: Choices

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Find mistakes before anything is computed.

        Raises:
            UsageError: the output cannot be written, or there is a spool and nobody said what to
                do with it.
        """
        target = Target(self.output)
        name = self.format or detect_writer(FORMATS, target)
        if name not in FORMATS or FORMATS[name].write is None:
            writable = ", ".join(key for key, row in FORMATS.items() if row.write)
            raise UsageError(f"no format that can be written is called {name!r}: {writable}")
        if resume and overwrite:
            raise UsageError("--resume goes on, --overwrite begins anew: give one of them")
        if is_stream(self.output):
            if resume:
                raise UsageError(f"--resume needs a file to go on with, not {target.name}")
            return
        final = Path(self.output)
        if final.is_dir() and any(final.iterdir()):
            raise UsageError(f"{final} is a folder with files: give another name")
        if not final.absolute().parent.is_dir():
            raise UsageError(f"cannot write {final}: there is no folder {final.parent}")
        if self.spool_path.exists() and not resume and not overwrite:
            raise UsageError(
                f"{self.spool_path} is from an interrupted run: go on with --resume, or begin anew "
                f"with --overwrite"
            )

    @property
    def spool_path(self) -> Path:
        """Beside the output."""
        return Path(os.fspath(self.output).rstrip("/\\") + SUFFIX)

    def run(
        self, recognizer: Recognizer, fingerprint: str, *, resume: bool = False, show: bool = False
    ) -> None:
        """Predict everything and write the output, whole or not at all.

        Args:
            recognizer: Who looks for entities.
            fingerprint: Of its files: another model must not go on.
            resume: Go on where an interrupted run stopped; begin where there was none.
            show: Show how it goes.
        """
        self._predicted(recognizer, iter(()))  # a label that it does not know is said at once
        total = self.inputs.total() if show else None
        if is_stream(self.output):
            stream = self._predicted(recognizer, iter(self.inputs))
            watch = watched(stream, "predicting", total=total) if show else stream
            write(watch, self.output, self.format)
            return
        header = self._header(fingerprint)
        goes_on = resume and self.spool_path.exists()
        spool = (Spool.resume if goes_on else Spool.begin)(self.spool_path, header)
        try:
            found = self._spooled(recognizer, spool)
            done = spool.done
            for _ in watched(found, "predicting", total=total, done=done) if show else found:
                pass
        except (SpandetError, KeyboardInterrupt):
            if not spool.done:
                spool.remove()
            raise
        write(spool.documents(), self.output, self.format)
        spool.remove()

    def _spooled(self, recognizer: Recognizer, spool: Spool) -> Iterator[Document]:
        """Documents that were not done before, one window after another, once they are safe."""
        rest = iter(self.inputs)
        self._pass_over(rest, spool)
        for window in windows(rest):
            found = list(self._predicted(recognizer, iter(window)))
            spool.add(found)
            yield from found

    def _pass_over(self, documents: Iterator[Document], spool: Spool) -> None:
        """Take the documents that are done out of the stream."""
        if not spool.done:
            return
        given = (document for _, document in zip(range(spool.done), documents, strict=False))
        for number, (one, other) in enumerate(zip_longest(spool.documents(), given), start=1):
            if one is None or other is None or (one.id, one.text) != (other.id, other.text):
                raise UsageError(
                    f"document {number} of the input is not what it was when {spool.path} was "
                    f"written: begin anew with --overwrite"
                )

    def _predicted(self, recognizer: Recognizer, stream: Iterator[Document]) -> Iterator[Document]:
        return recognizer.predict(
            stream,
            batch_pieces=self.choices.batch_pieces,
            min_score=self.choices.min_score,
            labels=self.choices.labels,
        )

    def _header(self, fingerprint: str) -> dict[str, Any]:
        try:
            own = version("spandet")
        except PackageNotFoundError:  # run from a source tree
            own = "unknown"
        return {
            "spandet": own,
            "model": fingerprint,
            "inputs": self.inputs.names,
            **asdict(self.choices),
        }
