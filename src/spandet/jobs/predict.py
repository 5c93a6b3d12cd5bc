"""The job: predicts all inputs and writes one output; it can be resumed with the same result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spandet.errors import SpandetError, UsageError
from spandet.formats import FORMATS, write
from spandet.formats.detection import detect_writer
from spandet.formats.jsonl import record_of
from spandet.formats.locking import one_writer
from spandet.formats.overwriting import SPOOL_SUFFIX, refuse_overwriting
from spandet.formats.records import dump_json
from spandet.formats.target import STDOUT, Target
from spandet.inference.bad_documents import Entry, Skipped, predicted_windows
from spandet.inference.options import PredictOptions
from spandet.jobs.inputs import Inputs
from spandet.jobs.spool import Spool
from spandet.rendering.progress import show_progress
from spandet.text import Document

if TYPE_CHECKING:
    from spandet.inference.recognizer import Recognizer


_KEPT_SKIPS = 1000


class JobOptions(PredictOptions):
    """Everything besides model and inputs that the output depends on.

    With `batch_pieces` and `device`, scores may differ in their last digits.
    """

    device: str | None = None
    """Device to compute on."""
    overrides: tuple[str, ...] = ()
    """Settings of the model that are changed."""


def is_stream(output: str) -> bool:
    """Whether the output is standard output, a pipe or a device, which have no spool."""
    final = Path(output)
    return output == STDOUT or (final.exists() and not final.is_file() and not final.is_dir())


@dataclass
class Job:
    """A prediction job with its inputs, output and options."""

    inputs: Inputs
    output: str
    format: str | None
    options: JobOptions
    _problems: list[SpandetError] = field(default_factory=list, init=False, repr=False)
    _bad_documents: int = field(default=0, init=False, repr=False)
    _is_locked: bool = field(default=False, init=False, repr=False)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the output; within such a block, `check` and `run` do not take it again.

        Raises:
            UsageError: another process writes this output, or it cannot be written.
        """
        if self._is_locked or is_stream(self.output):
            yield
            return
        self._check_folder()
        with one_writer(self.output):
            self._is_locked = True
            try:
                yield
            finally:
                self._is_locked = False

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Check the output before anything is computed.

        Raises:
            UsageError: the output cannot be written, or would replace an input, or another process
                writes it, or there is a spool but neither `resume` nor `overwrite`.
        """
        target, name = Target(self.output), self._format
        if name not in FORMATS or FORMATS[name].write is None:
            writable = ", ".join(key for key, row in FORMATS.items() if row.write)
            raise UsageError(f"no format that can be written is called {name!r}: {writable}")
        if resume and overwrite:
            raise UsageError("--resume continues, --overwrite starts again: give one of them")
        if resume and is_stream(self.output):
            raise UsageError(f"--resume needs a file as output, not {target.name}")
        with self.locked():
            refuse_overwriting(self.inputs.files, self.output)
            if is_stream(self.output) or resume or overwrite:
                return
            if self.spool_path.exists():
                raise UsageError(
                    f"{self.spool_path} is from an interrupted run: continue with --resume, or "
                    f"start again with --overwrite"
                )

    def _check_folder(self) -> None:
        final = Path(self.output)
        if final.is_dir() and any(final.iterdir()):
            raise UsageError(f"{final} is a folder with files: give another name")
        if not final.absolute().parent.is_dir():
            raise UsageError(f"cannot write {final}: there is no folder {final.parent}")

    def check_overlaps(self, *, flat: bool) -> None:
        """Refuse a format that cannot represent overlapping entities, unless there are none.

        Args:
            flat: Whether the entities of the model never overlap.

        Raises:
            UsageError: names the option or format to use instead.
        """
        layers = FORMATS[self._format].layers
        if layers is None or flat or self.options.flat:
            return
        held = "one entity" if layers == 1 else f"{layers} entities"
        raise UsageError(
            f"{self._format} allows {held} per word at most, and the model may find more: give "
            f"--flat for entities that do not overlap, or write jsonl"
        )

    @property
    def _format(self) -> str:
        return self.format or detect_writer(FORMATS, Target(self.output))

    @property
    def spool_path(self) -> Path:
        """The spool file, next to the output or, if that is a link, next to its target."""
        final = Path(self.output)
        if final.is_symlink():
            final = final.resolve()
        return final.with_name(final.name + SPOOL_SUFFIX)

    @property
    def skipped(self) -> list[SpandetError]:
        """The first that were skipped: bad records, then documents that cannot be predicted."""
        return [*self.inputs.skipped, *self._problems]

    @property
    def skips(self) -> int:
        """Total number of records and documents that were skipped."""
        return self.inputs.skips + self._bad_documents

    def run(
        self, recognizer: Recognizer, fingerprint: str, *, resume: bool = False, show: bool = False
    ) -> None:
        """Predict all documents and write the output, completely or not at all.

        Args:
            recognizer: The model.
            fingerprint: Checksum of the model's files: a job cannot be resumed with another model.
            resume: Continue an interrupted run, if there is one.
            show: Show progress.

        Raises:
            UsageError: another process writes this output, or the spool cannot be used.
            FormatError: a bad record or document; the results before it are in the spool.
        """
        self._problems.clear()
        self._bad_documents = 0
        self._predicted(recognizer, ())  # reports an unknown label before anything is read
        total = self.inputs.total() if show else None
        if is_stream(self.output):
            found = self._entries(recognizer, self.inputs)
            entries = show_progress(found, "predicting", total=total) if show else found
            write(_good(entries), self.output, self.format)
            return
        with self.locked(), self._spool(fingerprint, resume=resume) as spool:
            try:
                found = self._spooled(recognizer, spool)
                done = spool.done
                for _ in (
                    show_progress(found, "predicting", total=total, done=done) if show else found
                ):
                    pass
            except (SpandetError, KeyboardInterrupt):
                if not spool.done:
                    spool.remove()
                raise
            write(_good(spool.entries()), self.output, self.format)
            spool.remove()
            Target(self.output).remove_drafts()

    def _spool(self, fingerprint: str, *, resume: bool) -> Spool:
        continues = resume and self.spool_path.exists()
        open_ = Spool.resume if continues else Spool.begin
        return open_(self.spool_path, self._header(fingerprint))

    def _entries(
        self, recognizer: Recognizer, documents: Iterable[Document], spool: Spool | None = None
    ) -> Iterator[Entry]:
        """Predict documents window by window; each window is added to the spool, then yielded."""
        for window in predicted_windows(
            documents,
            partial(self._predicted, recognizer),
            skip_bad=self.inputs.skip_bad,
            done=spool.done if spool else 0,
        ):
            if spool:
                spool.add(window)
            self._count_skipped(window)
            yield from window

    def _spooled(self, recognizer: Recognizer, spool: Spool) -> Iterator[Entry]:
        """Predict the documents that are not in the spool yet."""
        rest = iter(self.inputs)
        self._skip_done(rest, spool)
        yield from self._entries(recognizer, rest, spool)

    def _skip_done(self, documents: Iterator[Document], spool: Spool) -> None:
        """Consume the documents that are in the spool, and check that they are the same."""
        given = (document for _, document in zip(range(spool.done), documents, strict=False))
        for number, (one, other) in enumerate(zip_longest(spool.entries(), given), start=1):
            if one is None or other is None or _content(one) != _content(other):
                raise UsageError(
                    f"document {number} of the input has changed since {spool.path} was "
                    f"written: start again with --overwrite"
                )
            self._count_skipped([one])

    def _count_skipped(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if not isinstance(entry, Skipped):
                continue
            if not self.inputs.skip_bad:  # an earlier run skipped it
                raise entry.error
            self._bad_documents += 1
            if len(self._problems) < _KEPT_SKIPS:
                self._problems.append(entry.error)

    def _predicted(
        self, recognizer: Recognizer, documents: Iterable[Document]
    ) -> Iterator[Document]:
        return recognizer.predict(documents, self.options)

    def _header(self, fingerprint: str) -> dict[str, Any]:
        try:
            own = version("spandet")
        except PackageNotFoundError:  # run from a source tree
            own = "unknown"
        return {
            "spandet": own,
            "model": fingerprint,
            "inputs": self.inputs.names,
            "digests": self.inputs.digests(),
            **self.options.model_dump(mode="json"),
        }


def _good(entries: Iterable[Entry]) -> Iterator[Document]:
    return (entry for entry in entries if isinstance(entry, Document))


def _content(entry: Entry) -> str:
    """A document without its entities, as JSON."""
    document = entry.document if isinstance(entry, Skipped) else entry
    return dump_json(record_of(replace(document, entities=())))
