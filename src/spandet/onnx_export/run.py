"""`spandet export`: build the graphs of a model, check them, and write a folder."""

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
from spandet.inference.onnx_engine import GRAPH
from spandet.inference.onnx_folder import Manifest
from spandet.inference.recognizer import Recognizer
from spandet.onnx_export.folders import (
    Built,
    ExportError,
    Notify,
    build_float,
    build_int8,
    kept_in_torch,
    publish,
    size_of,
    weights_of,
)
from spandet.onnx_export.one_graph import NoGraphError, save_with_graph
from spandet.onnx_export.parity import SCORE_BOUND, Parity, compare
from spandet.onnx_export.recording import record, sample_batches, sample_documents
from spandet.onnx_export.report import ExportReport, Measured, megabytes
from spandet.text import Document

REPORT = "export.json"
_POINTS = 100
_TIMED_SENTENCES = 150
_ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of an export."""

    one_graph: bool = False
    """Write one graph of the whole model, which predicts without torch."""
    int8: bool = False
    """Quantise the graphs to int8."""
    score_bound: float = SCORE_BOUND
    """Largest difference of scores from those of torch."""
    max_loss: float = 0.5
    """Largest loss of F1 by int8, in points."""


@dataclass(frozen=True)
class _Form:
    """The model in one form (torch, onnx or int8), and its predictions for the data."""

    name: str
    recognizer: Recognizer
    size: int
    found: Sequence[Document]
    f1: float | None


class _Export:
    """The steps of an export, and what they share."""

    def __init__(
        self,
        recognizer: Recognizer,
        data: Sequence[Document],
        options: ExportOptions,
        notify: Notify,
    ) -> None:
        self.recognizer = recognizer
        self.data = data
        self.options = options
        self.notify = notify
        self.labelled = any(document.entities for document in data)
        self.sample = sample_documents()

    def form(self, name: str, recognizer: Recognizer, folder: Path) -> _Form:
        """Predict the data with the model in this form."""
        self.notify(f"predicting with {name}")
        found = list(recognizer.predict(self.data))
        f1 = evaluate(self.data, found, resamples=0).micro.f1 if self.labelled else None
        return _Form(name, recognizer, size_of(folder), found, f1)

    def parity(self, torch_form: _Form, onnx_form: _Form) -> Parity:
        """The parity check, on the data and on the sample, which is also predicted one by one.

        Raises:
            ExportError: the check failed.
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
            raise ExportError(f"the export differs from torch: {result.reason}")
        return result

    def quantized(self, built: Built, reference: _Form, folder: Path) -> tuple[Built, _Form, str]:
        """The F1 check: quantise all graphs or, if F1 falls too much, those of the encoder.

        Raises:
            ExportError: F1 falls too much in both cases.
        """
        losses = []
        for what, prefix in (("all graphs", ""), ("the encoder's graphs", "encoder.")):
            place = folder / f"int8-{prefix}"
            small = build_int8(built, place, prefix, self.notify)
            form = self.form("int8", Recognizer.from_pretrained(place, device="cpu"), place)
            loss = _POINTS * ((reference.f1 or 0.0) - (form.f1 or 0.0))
            if loss <= self.options.max_loss:
                return small, form, f"{what} in int8, {loss:+.2f} points of F1 lost"
            losses.append(f"{loss:.2f} with {what}")
        raise ExportError(
            f"int8 loses too many points of F1: {', '.join(losses)}; allowed are "
            f"{self.options.max_loss:g}"
        )

    def measured(self, forms: Sequence[_Form]) -> tuple[tuple[Measured, ...], int, str]:
        """Time all forms in turn; also returns the number of sentences and the kind of timing."""
        self.notify("timing")
        chosen, sentences = _first_sentences(self.data or self.sample)
        timing = Timing(rounds=_ROUNDS, threads=torch.get_num_threads())
        works = [_prediction(form.recognizer, chosen) for form in forms]
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
    notify: Notify = lambda _: None,
) -> ExportReport:
    """Write a model whose methods are computed by ONNX graphs, if it passes all checks.

    Args:
        model: The folder, name or hub id of a trained model.
        out: A new or empty folder.
        data: Documents for the comparison with torch, in addition to a generated sample; with
            entities, F1 is measured as well, which int8 needs.
        options: Options of the export.
        overrides: Settings to change before; most settings are fixed in an exported model.
        notify: Is called with each step, for the user.

    Raises:
        UsageError: the model or the folder cannot be used, or int8 has no labelled data.
        ExportError: a check failed; nothing is written.
        MissingExtraError: onnxruntime is not installed.
    """
    _check_installed()
    chosen = options or ExportOptions()
    documents = list(data)
    if chosen.int8 and chosen.one_graph:
        raise UsageError("int8 is not possible with one graph of the whole model")
    if chosen.int8 and not any(document.entities for document in documents):
        raise UsageError("int8 needs labelled data to measure F1 on: use --data")
    folder = find_model(model)
    with one_writer(out), Target(str(out)).folder() as draft:
        recognizer = Recognizer.from_pretrained(folder, overrides, device="cpu", engine="torch")
        if recognizer.exported is not None:
            raise UsageError(
                f"{model} is exported already; expected the model that it was made from"
            )
        steps = _Export(recognizer, documents, chosen, notify)
        report = (_run_one_graph if chosen.one_graph else _run)(steps, folder, draft)
        with Target(str(draft / REPORT)).text() as stream:
            stream.write(json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    return report


def _run(steps: _Export, model: Path, draft: Path) -> ExportReport:
    recognizer, work = steps.recognizer, draft / "work"
    work.mkdir()
    recorded = record(recognizer, sample_batches(recognizer, steps.sample))
    built = build_float(recognizer, recorded, work / "float32", steps.notify)
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


def _run_one_graph(steps: _Export, model: Path, draft: Path) -> ExportReport:
    """Write the model with one graph, if it predicts the same."""
    recognizer, folder = steps.recognizer, draft / "work" / "float32"
    folder.mkdir(parents=True)
    steps.notify("exporting the whole model")
    try:
        save_with_graph(recognizer, folder, sample_batches(recognizer, steps.sample))
    except NoGraphError as error:
        raise ExportError(f"the model cannot be exported as one graph: {error}") from None
    in_torch = steps.form("torch", recognizer, model)
    in_graph = steps.form("onnx", Recognizer.from_pretrained(folder, engine="onnx"), folder)
    parity = steps.parity(in_torch, in_graph)
    measured, sentences, clock = steps.measured([in_torch, in_graph])
    weights = sum(parameter.numel() for parameter in recognizer.modules().parameters())
    publish(Built(folder, Manifest(methods={}), {}), model, draft)
    return ExportReport(
        precision="float32",
        exported={GRAPH: weights},
        kept={},
        parity=parity,
        measured=measured,
        sentences=sentences,
        clock=clock,
        remarks=("the folder has the weights for torch as well",),
    )


def _check_installed() -> None:
    try:
        import onnx  # noqa: F401, PLC0415 (an extra)
        import onnxruntime  # noqa: F401, PLC0415
        import onnxscript  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtraError(needs="exporting to ONNX", extra="onnx") from None


def _first_sentences(documents: Sequence[Document]) -> tuple[list[Document], int]:
    """The first documents, up to the number of sentences to time, without their entities."""
    chosen: list[Document] = []
    sentences = 0
    for document in documents:
        if sentences >= _TIMED_SENTENCES:
            break
        chosen.append(replace(document, entities=()))
        sentences += len(document.sentences)
    return chosen, sentences


def _prediction(recognizer: Recognizer, documents: Sequence[Document]) -> Callable[[], object]:
    return lambda: sum(1 for _ in recognizer.predict(documents))
