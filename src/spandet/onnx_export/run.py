"""spandet export, from a trained model to an accepted folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from spandet.benchmarking.measuring import Timing, best_times
from spandet.errors import MissingExtraError, UsageError
from spandet.evaluation import evaluate
from spandet.formats.locking import one_writer
from spandet.formats.target import Target
from spandet.inference.model_names import find_model
from spandet.inference.recognizer import Recognizer
from spandet.onnx_export.errors import ExportError
from spandet.onnx_export.folders import (
    Built,
    build_float,
    build_int8,
    kept_in_torch,
    publish,
    size_of,
    weights_of,
)
from spandet.onnx_export.parity import SCORE_BOUND, Parity, compare
from spandet.onnx_export.recording import record
from spandet.onnx_export.report import ExportReport, Measured, megabytes
from spandet.onnx_export.sample import sample_batches, sample_documents
from spandet.text import Document

REPORT = "export.json"
_POINTS = 100
_TIMED_SENTENCES = 150
_ROUNDS = 3

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What is wanted of an export."""

    int8: bool = False
    """Weights of eight bits, if they are as good."""
    score_bound: float = SCORE_BOUND
    """How far scores may be from torch's."""
    max_loss: float = 0.5
    """How much F1 may be lost to eight bits, in points."""


@dataclass(frozen=True)
class _Form:
    """The model in one form, and what it finds in the data."""

    name: str
    recognizer: Recognizer
    size: int
    found: Sequence[Document]
    f1: float | None


class _Export:
    """Everything that the steps of one export share."""

    def __init__(
        self, recognizer: Recognizer, data: Sequence[Document], options: ExportOptions, say: Say
    ) -> None:
        self.recognizer = recognizer
        self.data = data
        self.options = options
        self.say = say
        self.labelled = any(document.entities for document in data)
        self.sample = sample_documents()

    def form(self, name: str, recognizer: Recognizer, folder: Path) -> _Form:
        """Let the model in this form read the data."""
        self.say(f"reading with {name}")
        found = list(recognizer.predict(self.data))
        f1 = evaluate(self.data, found, resamples=0).micro.f1 if self.labelled else None
        return _Form(name, recognizer, size_of(folder), found, f1)

    def parity(self, torch_form: _Form, onnx_form: _Form) -> Parity:
        """The first gate: on the data, and on sentences of many lengths, each read alone as well.

        Raises:
            ExportError: it did not pass.
        """
        one, other = torch_form.recognizer, onnx_form.recognizer
        expected = list(one.predict(self.sample))
        together = list(other.predict(self.sample))
        alone = [found for each in self.sample for found in other.predict([each])]
        result = compare(
            [*torch_form.found, *expected, *expected],
            [*onnx_form.found, *together, *alone],
            threshold=self.recognizer.decoding.threshold,
            bound=self.options.score_bound,
        )
        if not result.passed:
            raise ExportError(f"the export does not do what torch does: {result.reason}")
        return result

    def quantized(self, built: Built, reference: _Form, folder: Path) -> tuple[Built, _Form, str]:
        """The second gate: all graphs in eight bits, or else those of the encoder, or none.

        Raises:
            ExportError: too much is lost either way.
        """
        losses = []
        for what, prefix in (("all graphs", ""), ("the encoder's graphs", "encoder.")):
            place = folder / f"int8-{prefix}"
            small = build_int8(built, place, prefix, self.say)
            form = self.form("int8", Recognizer.from_pretrained(place, device="cpu"), place)
            loss = _POINTS * ((reference.f1 or 0.0) - (form.f1 or 0.0))
            if loss <= self.options.max_loss:
                return small, form, f"{what} in eight bits, {loss:+.2f} points of F1 lost"
            losses.append(f"{loss:.2f} with {what}")
        raise ExportError(
            f"eight bits lose too many points of F1: {', '.join(losses)}; allowed are "
            f"{self.options.max_loss:g}"
        )

    def measured(self, forms: Sequence[_Form]) -> tuple[tuple[Measured, ...], int, str]:
        """All forms timed in turn: sizes, seconds, scores; over how many sentences, and how."""
        self.say("timing")
        chosen, sentences = _some(self.data or self.sample)
        timing = Timing(rounds=_ROUNDS, threads=torch.get_num_threads())
        works = [_reading(form.recognizer, chosen) for form in forms]
        times = best_times(works, timing)
        measured = tuple(
            Measured(form.name, megabytes(form.size), seconds, form.f1)
            for form, seconds in zip(forms, times, strict=True)
        )
        return measured, sentences, timing.method()


def export(
    model: str | Path,
    out: Path,
    *,
    data: Iterable[Document] = (),
    options: ExportOptions | None = None,
    overrides: Iterable[str] = (),
    say: Say = lambda _: None,
) -> ExportReport:
    """Write a model whose parts are ONNX graphs; only if it passes its gates.

    Args:
        model: The folder, name or hub id of a trained model.
        out: A new or empty folder.
        data: What to compare it with torch on, besides sentences of our own; with entities, F1 is
            measured too, which eight bits need.
        options: What is wanted.
        overrides: Settings to change before; most of them are fixed in an exported model.
        say: Is told what is being done.

    Raises:
        UsageError: the model or the folder cannot be used, or eight bits have no labelled data.
        ExportError: a gate did not pass; nothing is written.
        MissingExtraError: there is no onnxruntime.
    """
    _check_installed()
    chosen = options or ExportOptions()
    documents = list(data)
    if chosen.int8 and not any(document.entities for document in documents):
        raise UsageError("eight bits have to show their F1: give labelled data (--data)")
    folder = find_model(model)
    with one_writer(out), Target(str(out)).folder() as draft:
        recognizer = Recognizer.from_pretrained(folder, overrides, device="cpu")
        if recognizer.exported is not None:
            raise UsageError(f"{model} is exported already; export the model that it was made from")
        steps = _Export(recognizer, documents, chosen, say)
        report = _run(steps, folder, draft)
        with Target(str(draft / REPORT)).text() as stream:
            stream.write(json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    return report


def _run(steps: _Export, model: Path, draft: Path) -> ExportReport:
    recognizer, work = steps.recognizer, draft / "work"
    work.mkdir()
    recorded = record(recognizer, sample_batches(recognizer, steps.sample))
    built = build_float(recognizer, recorded, work / "float32", steps.say)
    in_torch = steps.form("torch", recognizer, model)
    as_float = steps.form(
        "onnx", Recognizer.from_pretrained(built.folder, device="cpu"), built.folder
    )
    parity = steps.parity(in_torch, as_float)
    forms, accepted = [in_torch, as_float], built
    remarks: list[str] = []
    if steps.options.int8:
        accepted, as_int8, remark = steps.quantized(built, in_torch, work)
        forms.append(as_int8)
        remarks.append(remark)
    measured, sentences, clock = steps.measured(forms)
    report = ExportReport(
        precision=accepted.manifest.precision,
        exported=weights_of(built, recognizer),
        kept=kept_in_torch(built, recognizer),
        parity=parity,
        measured=measured,
        sentences=sentences,
        clock=clock,
        remarks=tuple(remarks),
    )
    publish(accepted, model, draft)
    return report


def _check_installed() -> None:
    try:
        import onnx  # noqa: F401, PLC0415 (an extra)
        import onnxruntime  # noqa: F401, PLC0415
        import onnxscript  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError(needs="exporting to ONNX", extra="onnx") from None


def _some(documents: Sequence[Document]) -> tuple[list[Document], int]:
    """The first documents, so many that they can be timed, without their entities."""
    chosen: list[Document] = []
    sentences = 0
    for document in documents:
        if sentences >= _TIMED_SENTENCES:
            break
        chosen.append(replace(document, entities=()))
        sentences += len(document.sentences)
    return chosen, sentences


def _reading(recognizer: Recognizer, documents: Sequence[Document]) -> Callable[[], object]:
    return lambda: sum(1 for _ in recognizer.predict(documents))
