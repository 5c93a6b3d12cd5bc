"""`spandet pack`: write a smaller model folder, unless F1 falls too much."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from spandet.errors import SpandetError, UsageError
from spandet.evaluation import evaluate
from spandet.formats.locking import one_writer
from spandet.formats.target import Target
from spandet.inference.manifest import refresh_manifest
from spandet.inference.model_names import CARD, PACK, RUN, find_model
from spandet.inference.recognizer import Recognizer
from spandet.inference.weights import Kept, save_weights
from spandet.packing.word_pieces import pieces_to_keep, read_tokenizer, write_tokenizer
from spandet.rendering.tables import Table, Tabular, percent
from spandet.text import Document
from spandet.training.report import REPORT

_COPIED = (RUN, "recipe.toml")
"""Files of a training run that are copied with its model."""
_TRANSFORMER = "transformer"
_SECTION = "\n## "
_OF_PARENT = "Below: its parent at the end of training, with scores on all its dev data together."
_REPORT_LINK = re.compile(rf" \[[^\]]*\]\({re.escape(REPORT)}\)\.")
_POINTS = 100
_MEGABYTE = 1_000_000

Notify = Callable[[str], None]
"""Is called with each step, for the user."""


class PackError(SpandetError):
    """The packed model loses too much F1; nothing is written."""


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """Options of `pack`."""

    weights: Kept = "int8"
    """How weights are stored in the file."""
    pieces: int = 0
    """Size of a pruned vocabulary; 0: only the pieces of the corpus."""
    max_loss: float = 0.5
    """Largest loss of F1 on any of the data, in points."""
    about: str | None = None
    """Markdown at the start of the card, instead of the start of the parent's card."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """F1 of the packed model and of its parent on the same data."""

    data: str
    documents: int
    sentences: int
    entities: int
    parent_f1: float
    f1: float

    @property
    def loss(self) -> float:
        """Loss of F1 in points."""
        return _POINTS * (self.parent_f1 - self.f1)


@dataclass(frozen=True, kw_only=True)
class PackReport(Tabular):
    """The report of a packed model."""

    weights: Kept
    pieces: int | None
    """Size of its vocabulary; None without a transformer."""
    parent_pieces: int | None
    bytes: int
    """Size of all files of the model."""
    parent_bytes: int
    scores: tuple[Scored, ...]

    @property
    def title(self) -> str:
        """Weights, vocabulary, size and F1."""
        pieces = ""
        if self.pieces is not None and self.pieces != self.parent_pieces:
            pieces = f", {self.pieces:,} of {self.parent_pieces:,} pieces"
        size = f"{self.bytes / _MEGABYTE:.1f} MB of {self.parent_bytes / _MEGABYTE:.1f}"
        f1 = "; ".join(
            f"{percent(one.f1)} on {one.data} (parent {percent(one.parent_f1)})"
            for one in self.scores
        )
        return f"Packed ({self.weights} weights{pieces}): {size}, F1 {f1}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def tables(self) -> Iterator[Table]:
        """F1 before and after."""
        yield Table(
            title="F1 of the packed model and of its parent",
            columns=("data", "documents", "sentences", "entities", "parent", "packed"),
            rows=tuple(
                (one.data, one.documents, one.sentences, one.entities, one.parent_f1, one.f1)
                for one in self.scores
            ),
        )


def pack(
    model: str | Path,
    out: Path,
    *,
    data: Mapping[str, Sequence[Document]],
    corpus: Iterable[Document] = (),
    options: PackOptions | None = None,
    overrides: Iterable[str] = (),
    notify: Notify = lambda _: None,
) -> PackReport:
    """Write a smaller model, if its F1 is nearly that of its parent.

    Args:
        model: The folder, name or hub id of a trained model.
        out: A new or empty folder.
        data: Labelled documents by name; F1 on them is measured before and after.
        corpus: Text whose pieces are kept in the vocabulary; without text, all pieces are kept.
        options: Options of the packed model.
        overrides: Settings to change before.
        notify: Is called with each step, for the user.

    Raises:
        UsageError: the model or the folder cannot be used, or no data are labelled.
        PackError: F1 falls too much; nothing is written.
    """
    chosen = options or PackOptions()
    for name, documents in data.items():
        if not any(document.entities for document in documents):
            raise UsageError(f"the data {name} have no entities, so F1 cannot be measured on them")
    if not data:
        raise UsageError("packing needs labelled data to measure F1 on: use --data")
    folder = find_model(model)
    with one_writer(out), Target(str(out)).folder() as draft:
        parent = Recognizer.from_pretrained(folder, overrides, device="cpu")
        if parent.exported is not None:
            raise UsageError(
                f"{model} is exported to ONNX; expected the model that it was made from"
            )
        parent.save_pretrained(draft)
        before = _bytes_in(draft)
        state = parent.modules().state_dict()
        used = pieces_in(corpus, parent)
        if used:
            state |= _prune(parent, used, chosen.pieces, draft / _TRANSFORMER)
        save_weights(state, draft, chosen.weights)
        refresh_manifest(draft)
        packed = Recognizer.from_pretrained(draft, device="cpu")
        report = PackReport(
            weights=chosen.weights,
            pieces=_pieces(packed),
            parent_pieces=_pieces(parent),
            bytes=_bytes_in(draft),
            parent_bytes=before,
            scores=tuple(_scored(name, data[name], parent, packed, notify) for name in data),
        )
        _check(report, chosen.max_loss)
        _write_reports(report, folder, draft, chosen.about)
    return report


def pieces_in(corpus: Iterable[Document], recognizer: Recognizer) -> set[int]:
    """The ids of all pieces of a text; none without documents.

    Raises:
        UsageError: the model has no transformer.
    """
    used: set[int] = set()
    for document in corpus:
        prepared = recognizer.encoder.prepare(recognizer.examples_of(document)).pieces
        if prepared is None:
            raise UsageError("the model has no transformer, so there is no vocabulary to prune")
        used.update(prepared.ids.unique().tolist())
    return used


def _prune(recognizer: Recognizer, used: set[int], size: int, folder: Path) -> Mapping[str, Tensor]:
    """Prune the tokenizer in a folder; returns the embeddings of the kept pieces by name."""
    tokenizer = read_tokenizer(folder)
    kept = pieces_to_keep(tokenizer, used, size)
    write_tokenizer(tokenizer, kept, folder)
    table = _embeddings(recognizer).weight
    parameters = recognizer.modules().named_parameters()
    return {name: table.detach()[kept] for name, one in parameters if one is table}


def _embeddings(recognizer: Recognizer) -> nn.Embedding:
    transformer = recognizer.encoder.transformer
    assert transformer is not None  # noqa: S101 (its pieces have been counted)
    table: nn.Embedding = transformer.model.get_input_embeddings()  # type: ignore[operator]
    return table


def _pieces(recognizer: Recognizer) -> int | None:
    return _embeddings(recognizer).num_embeddings if recognizer.encoder.transformer else None


def _scored(
    name: str, documents: Sequence[Document], parent: Recognizer, packed: Recognizer, notify: Notify
) -> Scored:
    f1 = []
    for model, recognizer in (("the parent", parent), ("the packed model", packed)):
        notify(f"predicting {name} with {model}")
        found = recognizer.predict(documents)
        f1.append(evaluate(documents, found, resamples=0).micro.f1)
    return Scored(
        data=name,
        documents=len(documents),
        sentences=sum(len(document.sentences) for document in documents),
        entities=sum(len(document.entities) for document in documents),
        parent_f1=f1[0],
        f1=f1[1],
    )


def _check(report: PackReport, max_loss: float) -> None:
    worst = max(report.scores, key=lambda one: one.loss)
    if worst.loss > max_loss:
        raise PackError(
            f"the packed model loses {worst.loss:.2f} points of F1 on {worst.data}; allowed are "
            f"{max_loss:g}"
        )


def _write_reports(report: PackReport, model: Path, draft: Path, about: str | None) -> None:
    """Write pack.json and the card, and copy the files of the training run."""
    for name in _COPIED:
        if (model / name).is_file():
            shutil.copyfile(model / name, draft / name)
    with Target(str(draft / PACK)).text() as out:
        out.write(json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    old = (model / CARD).read_text(encoding="utf-8") if (model / CARD).is_file() else ""
    opening, section, rest = old.partition(_SECTION)
    parts = [about or opening, report.to_markdown()]
    if rest:  # without the link to the report of the run, which is not copied
        parts += [_OF_PARENT, section + _REPORT_LINK.sub("", rest)]
    with Target(str(draft / CARD)).text() as out:
        out.write("\n\n".join(part.strip() for part in parts).lstrip() + "\n")


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
