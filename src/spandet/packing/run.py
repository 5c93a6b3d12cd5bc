"""spandet pack, from a trained model to a smaller one that is as good."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from spandet.errors import SpandetError, UsageError
from spandet.evaluation import evaluate
from spandet.formats.locking import one_writer
from spandet.formats.target import Target
from spandet.inference.manifest import refresh_manifest
from spandet.inference.model_names import CARD, PACK, RUN, find_model
from spandet.inference.recognizer import Recognizer
from spandet.inference.weights import Kept, save_weights
from spandet.packing.report import PackReport, Scored
from spandet.packing.word_pieces import pieces_to_keep, read_tokenizer, write_tokenizer
from spandet.text import Document
from spandet.training.report import REPORT

_ALONG = (RUN, "recipe.toml")
"""What a run says about its model, besides the card."""
_TRANSFORMER = "transformer"
_SECTION = "\n## "
_OF_PARENT = (
    "What follows is said of its parent, at the end of its training, on all its dev data together."
)

Say = Callable[[str], None]


class PackError(SpandetError):
    """A packed model that has lost too much; nothing of it is left."""


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """What is wanted of a packed model."""

    weights: Kept = "int8"
    """How weights are kept in the file."""
    pieces: int = 0
    """Keep so many pieces of a vocabulary that is pruned; 0: what the corpora need."""
    max_loss: float = 0.5
    """How much F1 may be lost on any of the data, in points."""
    about: str | None = None
    """Markdown that stands first in the card; else the card begins as its parent's."""


def pack(
    model: str | Path,
    out: Path,
    *,
    data: Mapping[str, Sequence[Document]],
    corpus: Iterable[Document] = (),
    options: PackOptions | None = None,
    overrides: Iterable[str] = (),
    say: Say = lambda _: None,
) -> PackReport:
    """Write a smaller model; only if it is nearly as good.

    Args:
        model: The folder, name or hub id of a trained model.
        out: A new or empty folder.
        data: Labelled documents by name, to measure F1 on before and after.
        corpus: Text whose pieces stay in the vocabulary; without any, all of them stay.
        options: What is wanted.
        overrides: Settings to change before.
        say: Is told what is being done.

    Raises:
        UsageError: the model or the folder cannot be used, or no data are labelled.
        PackError: too much is lost; nothing is written.
    """
    chosen = options or PackOptions()
    for name, documents in data.items():
        if not any(document.entities for document in documents):
            raise UsageError(f"the data {name} have no entities, so F1 cannot be measured on them")
    if not data:
        raise UsageError("a packed model has to show its F1: give labelled data (--data)")
    folder = find_model(model)
    with one_writer(out), Target(str(out)).folder() as draft:
        parent = Recognizer.from_pretrained(folder, overrides, device="cpu")
        if parent.exported is not None:
            raise UsageError(f"{model} is exported to ONNX; pack the model that it was made from")
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
            scores=tuple(_scored(name, data[name], parent, packed, say) for name in data),
        )
        _check(report, chosen.max_loss)
        _write_papers(report, folder, draft, chosen.about)
    return report


def pieces_in(corpus: Iterable[Document], recognizer: Recognizer) -> set[int]:
    """The pieces that the recognizer's transformer reads of a text; none without documents.

    Raises:
        UsageError: it reads no pieces.
    """
    used: set[int] = set()
    for document in corpus:
        prepared = recognizer.encoder.prepare(recognizer.examples_of(document)).pieces
        if prepared is None:
            raise UsageError("the model has no transformer, and so no vocabulary to prune")
        used.update(prepared.ids.unique().tolist())
    return used


def _prune(
    recognizer: Recognizer, used: set[int], least: int, folder: Path
) -> Mapping[str, Tensor]:
    """Make the tokenizer in a folder smaller; the embeddings of what is left, by name."""
    tokenizer = read_tokenizer(folder)
    kept = pieces_to_keep(tokenizer, used, least)
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
    name: str, documents: Sequence[Document], parent: Recognizer, packed: Recognizer, say: Say
) -> Scored:
    f1 = []
    for who, recognizer in (("the parent", parent), ("the packed model", packed)):
        say(f"{who} reads {name}")
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


def _write_papers(report: PackReport, model: Path, draft: Path, about: str | None) -> None:
    """Card, report, and what the run says about its model."""
    for name in _ALONG:
        if (model / name).is_file():
            shutil.copyfile(model / name, draft / name)
    with Target(str(draft / PACK)).text() as out:
        out.write(json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    old = (model / CARD).read_text(encoding="utf-8") if (model / CARD).is_file() else ""
    opening, section, rest = old.partition(_SECTION)
    parts = [about or opening, report.to_markdown()]
    if rest:  # the page of the run does not come along
        parts += [_OF_PARENT, section + rest.replace(f" [How it went]({REPORT}).", "")]
    with Target(str(draft / CARD)).text() as out:
        out.write("\n\n".join(part.strip() for part in parts).lstrip() + "\n")


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
