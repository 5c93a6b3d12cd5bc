"""`spandet select`: the passages of raw text that are most similar to a corpus, up to a size.

1. Two language models are estimated, of the corpus and of a sample of the text (`likeness`).
2. Score, size and fingerprints of every passage are computed and stored in OUT.spool, so that an
   interrupted run can be resumed.
3. Passages are kept in the order of their scores until the size is reached, without near duplicates
   of better passages and without passages that share a long string with other files.
4. The text is read again, and the kept passages are written in its order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from spandet.config import Natural, Positive, Settings
from spandet.errors import UsageError
from spandet.formats import Corpus, write
from spandet.formats.locking import one_writer
from spandet.formats.overwriting import SPOOL_SUFFIX, refuse_overwriting
from spandet.selection.fingerprints import NearDuplicates, SharedStrings, sketch_of
from spandet.selection.likeness import Likeness, words_of
from spandet.selection.measure_spool import MeasureSpool
from spandet.text import Document

Progress = Callable[[Iterable[Document], str], Iterable[Document]]
_METADATA = "likeness"
_FINE, _SHORT, _SHARED = range(3)


class SelectionSettings(Settings):
    """Settings of a selection."""

    most_bytes: Positive = 100_000_000
    """Maximum size of the selected text in bytes of UTF-8."""
    least_words: Natural = 20
    """Passages with fewer words are left out, because their scores are unreliable."""
    shared_words: Positive = 12
    """A passage that shares this many words in a row with a file of `without` is left out."""


@dataclass(frozen=True)
class Selection:
    """How many passages were read, and why passages were left out."""

    passages: int
    kept: int
    kept_bytes: int
    short: int
    """Passages with too few words."""
    shared: int
    """Passages that share a long string with a file of `without`."""
    duplicates: int
    """Near duplicates of better passages."""
    worst_score: float
    """Of those that were kept: the difference of cross-entropies in nats per word."""


def select(
    texts: Sequence[Corpus],
    like: Sequence[Corpus],
    output: str,
    *,
    without: Sequence[Corpus] = (),
    settings: SelectionSettings | None = None,
    resume: bool = False,
    progress: Progress = lambda documents, _: documents,
) -> Selection:
    """Write the documents of `texts` that are most similar to `like`, with scores as metadata.

    Args:
        texts: The text to select from; a document is a passage, which is kept or left out whole.
        like: The corpus that they are compared with.
        output: A file of any format that can be written.
        without: Files of which no long string may be in the output, such as dev and test.
        settings: Settings of the selection.
        resume: Continue an interrupted run; without it, its spool is an error.
        progress: Wraps each stream of documents, to show progress; gets the name of the step.

    Raises:
        UsageError: an output that is an input; a spool that exists, or belongs to another run.
        FormatError: a bad record in one of the files.
    """
    settings = settings or SelectionSettings()
    sources = [*texts, *like, *without]
    refuse_overwriting([name for corpus in sources for name in corpus.files()], output)
    with one_writer(output):
        spool = MeasureSpool(Path(output + SPOOL_SUFFIX), _identity(texts, like, without, settings))
        done = len(spool.open(resume=resume))
        measure = _measures(texts, like, without, settings, progress)
        passages = progress(chain.from_iterable(texts), "measuring")
        spool.extend(measure(document.text) for document in islice(passages, done, None))
        table = spool.read()
        chosen, duplicates = _chosen(table, settings.most_bytes)
        again = progress(chain.from_iterable(texts), "writing")
        write(_selected(again, chosen, table["score"]), output)
        spool.remove()
    return Selection(
        passages=len(table),
        kept=len(chosen),
        kept_bytes=int(table["bytes"][sorted(chosen)].sum()),
        short=int((table["fault"] == _SHORT).sum()),
        shared=int((table["fault"] == _SHARED).sum()),
        duplicates=duplicates,
        worst_score=float(table["score"][sorted(chosen)].max()) if chosen else float("nan"),
    )


def _measures(
    texts: Sequence[Corpus],
    like: Sequence[Corpus],
    without: Sequence[Corpus],
    settings: SelectionSettings,
    progress: Progress,
) -> Callable[[str], tuple[float, int, int, NDArray[np.uint64]]]:
    """A function that computes score, bytes, fault and sketch of a passage."""
    corpus = [words_of(document.text) for document in progress(chain.from_iterable(like), "like")]
    wanted = sum(map(len, corpus))
    if not wanted:
        raise UsageError("--like has no words, expected a corpus to compare with")
    sample = _sample(progress(chain.from_iterable(texts), "sampling"), wanted)
    likeness = Likeness(corpus, sample)
    files = progress(chain.from_iterable(without), "without")
    shared = SharedStrings((words_of(document.text) for document in files), settings.shared_words)

    def measure(text: str) -> tuple[float, int, int, NDArray[np.uint64]]:
        words = words_of(text)
        fault = _SHARED if shared.has_one_of(words) else _FINE
        if len(words) < max(1, settings.least_words):
            fault = _SHORT
        size = len(text.encode("utf-8", "surrogatepass"))
        return likeness.score(words), size, fault, sketch_of(words)

    return measure


def _sample(documents: Iterable[Document], words: int) -> list[list[str]]:
    """A random sample of about this many words: the passages with the smallest hashes."""
    # The bound is lowered while the text is read: at most twice the wanted words are in memory.
    held: list[tuple[int, list[str]]] = []
    total, bound = 0, 1 << 32
    for document in documents:
        place = crc32(document.text.encode("utf-8", "surrogatepass"))
        if place >= bound:
            continue
        own = words_of(document.text)
        held.append((place, own))
        total += len(own)
        while total > 2 * words and len(held) > 1:
            bound //= 2
            held = [(place, own) for place, own in held if place < bound]
            total = sum(len(own) for _, own in held)
    return [own for _, own in held]


def _chosen(table: NDArray[np.void], most_bytes: int) -> tuple[set[int], int]:
    """The rows to keep, from the best score on, and the number of near duplicates among them."""
    known, chosen, duplicates, size = NearDuplicates(), set[int](), 0, 0
    for row in np.argsort(table["score"], kind="stable").tolist():
        if table["fault"][row]:
            continue
        if size + table["bytes"][row] > most_bytes:
            break
        if known.add(table["sketch"][row]):
            chosen.add(row)
            size += int(table["bytes"][row])
        else:
            duplicates += 1
    return chosen, duplicates


def _selected(
    documents: Iterable[Document], chosen: set[int], scores: NDArray[np.float64]
) -> Iterator[Document]:
    for number, document in enumerate(documents):
        if number in chosen:
            metadata = {**document.metadata, _METADATA: round(float(scores[number]), 4)}
            yield replace(document, metadata=metadata)


def _identity(
    texts: Sequence[Corpus],
    like: Sequence[Corpus],
    without: Sequence[Corpus],
    settings: SelectionSettings,
) -> str:
    """A digest of the files and settings that determine the measures."""
    groups = []
    for corpora in (texts, like, without):
        files = [name for corpus in corpora for name in corpus.files()]
        groups.append([_digest(name) for name in files])
    values = {"files": groups, **settings.model_dump(exclude={"most_bytes"})}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _digest(name: str) -> str:
    try:
        with Path(name).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(
            f"cannot read {name} twice, which select needs: {error.strerror or error}"
        ) from None
