"""Exported models give the same entities as torch, or the export is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner

from spandet import write
from spandet.cli import app
from spandet.errors import MissingExtraError, UsageError
from spandet.inference.manifest import UNCHECKED, refresh_manifest
from spandet.inference.onnx_folder import Manifest
from spandet.inference.recognizer import Recognizer
from spandet.inference.tracing import trace
from spandet.onnx_export import ExportError, ExportOptions, export, folders, run
from spandet.onnx_export.folders import Built
from spandet.text import Document
from support.small_models import (
    DETECTORS,
    small_documents,
    small_export,
    small_model,
    small_texts,
)

ONE = "locate-and-label"
VERSION_1_NET = ("items", "sequences.mirror", "sequences.take", "sequences.give")
VERSION_1_HEAD = ("inside", "words", "left", "right", "whole")
Reused = Callable[..., None]


@pytest.fixture(params=DETECTORS)
def detector(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def reused(monkeypatch: pytest.MonkeyPatch) -> Reused:
    """Exports that reuse the graphs of an earlier export, intact or damaged."""

    def reuse(damage: str = "") -> None:
        source = small_export(ONE)

        def build(_recognizer: object, _recorded: object, folder: Path, _say: object) -> Built:
            shutil.copytree(source, folder)
            if damage:
                damaged(folder / f"{damage}.onnx")
                refresh_manifest(folder)
            manifest = Manifest.model_validate_json((folder / "onnx.json").read_text())
            return Built(folder, manifest, {})

        monkeypatch.setattr(run, "build_float", build)
        monkeypatch.setattr(run, "record", lambda *_: [])

    return reuse


def damaged(path: Path, scale: float = 0.9) -> None:
    """Make all weights of a graph a little smaller."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype.kind == "f" and values.ndim == 2:
            smaller = (values * scale).astype(values.dtype)
            tensor.CopyFrom(numpy_helper.from_array(smaller, tensor.name))
    onnx.save(model, path)


def rename_inputs(model: onnx.ModelProto, paths: tuple[str, ...]) -> None:
    """Name the inputs of a graph by their numbers."""
    new = {path: f"input_{number}" for number, path in enumerate(paths)}
    for value in model.graph.input:
        value.name = new[value.name]
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = new.get(name, name)


def plain(document: Document) -> list[tuple[object, str, Any]]:
    return [(e.spans, e.label, pytest.approx(e.score, abs=1e-4)) for e in document.entities]


def both(detector: str) -> tuple[Recognizer, Recognizer]:
    folder = small_export(detector)
    return Recognizer.from_pretrained(small_model(detector)), Recognizer.from_pretrained(folder)


def test_an_exported_model_finds_the_same_entities_as_torch(detector: str) -> None:
    one, other = both(detector)
    texts = [*small_texts(4, seed=8), "", "word", "a b"]
    expected = [plain(document) for document in one.predict(texts)]
    assert sum(map(len, expected)) > 10
    assert [plain(document) for document in other.predict(texts)] == expected


def test_all_weights_except_embeddings_are_exported(detector: str) -> None:
    folder = small_export(detector)
    report = json.loads((folder / "export.json").read_text())
    assert report["parity"]["passed"]
    look_ups = {"encoder.hashed.table", "encoder.characters.embedding"}
    # The boundaries of nominees do not change, so the layers that regress them are not used.
    idle = {name for name in report["kept"] if detector == "span-jury" and ".votes." in name}
    assert set(report["kept"]) - {"encoder.fusion.norm"} - idle == look_ups
    graphs = {path.stem for path in folder.glob("*.onnx")}
    assert graphs == set(report["exported"])
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_sentence_alone_and_in_a_batch_is_the_same(detector: str) -> None:
    _, other = both(detector)
    texts = ["word", *small_texts(3, seed=9), "two words"]
    together = [plain(document) for document in other.predict(texts)]
    assert [plain(other(text)) for text in texts] == together


def test_an_exported_model_can_be_traced(detector: str) -> None:
    document = Document(small_texts(1, seed=8)[0])
    expected, found = (
        [
            (traced.entity.spans, traced.entity.label, len(candidate.steps))
            for sentence in trace(recognizer, document).sentences
            for traced in sentence.found
            for candidate in traced.candidates
        ]
        for recognizer in both(detector)
    )
    assert expected
    assert found == expected


def test_an_exported_model_can_be_used_by_many_threads() -> None:
    _, other = both(ONE)
    texts = small_texts(4, seed=8) * 3
    expected = [plain(other(text)) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert [plain(document) for document in pool.map(other, texts)] == expected


def test_another_process_loads_a_moved_folder(tmp_path: Path) -> None:
    folder = small_export(ONE)
    moved = shutil.copytree(folder, tmp_path / "moved")
    text = small_texts(1, seed=8)[0]
    (tmp_path / "text.txt").write_text(text)
    command = [sys.executable, "-m", "spandet", "predict", str(moved), str(tmp_path / "text.txt")]
    done = subprocess.run([*command, "--to", "jsonl"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[0])["entities"]
    expected = Recognizer.from_pretrained(small_model(ONE))(text).entities
    assert [(e["start"], e["end"], e["label"]) for e in found] == [
        (e.span.start, e.span.end, e.label) for e in expected
    ]


def test_a_saved_export_is_still_an_export(tmp_path: Path) -> None:
    _, other = both(ONE)
    other.save_pretrained(tmp_path / "again")
    again = Recognizer.from_pretrained(tmp_path / "again")
    assert again.exported is not None
    text = small_texts(1, seed=8)[0]
    assert plain(again(text)) == plain(other(text))


def test_only_decoding_can_be_changed_afterwards() -> None:
    folder = small_export(ONE)
    assert Recognizer.from_pretrained(folder, ["decoding.threshold=0.2"]).decoding.threshold == 0.2
    with pytest.raises(UsageError, match=r"only decoding\.\* can be changed, not 'detector\.drop"):
        Recognizer.from_pretrained(folder, ["detector.dropout=0.3"])


def test_an_export_is_not_exported_again(tmp_path: Path) -> None:
    folder = small_export(ONE)
    with pytest.raises(UsageError, match="is exported already"):
        export(folder, tmp_path / "out")


def test_without_onnxruntime_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_export(ONE)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r'pip install "spandet\[onnx\]"'):
        Recognizer.from_pretrained(folder)
    with pytest.raises(MissingExtraError, match=r"spandet\[onnx\]"):
        export(small_model(ONE), tmp_path / "none")


def test_a_damaged_export_is_an_error_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_export(ONE)
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "detector.filter.forward.onnx").write_bytes(b"nonsense")
    with pytest.raises(UsageError, match=r"filter\.forward\.onnx is damaged, or was changed"):
        Recognizer.from_pretrained(broken)
    monkeypatch.setenv(UNCHECKED, "1")
    with pytest.raises(UsageError, match=r"filter\.forward\.onnx cannot be run"):
        Recognizer.from_pretrained(broken)
    (broken / "detector.filter.forward.onnx").unlink()
    with pytest.raises(UsageError, match=r"filter\.forward\.onnx cannot be run"):
        Recognizer.from_pretrained(broken)
    row = '{"result": {"tensor": "result"}}'
    (broken / "onnx.json").write_text(f'{{"methods": {{"detector.elsewhere.forward": {row}}}}}')
    with pytest.raises(UsageError, match=r"no method or weight detector\.elsewhere\.forward: exp"):
        Recognizer.from_pretrained(broken)
    (broken / "onnx.json").write_text('{"pards": {}}')
    with pytest.raises(UsageError, match="has no setting pards"):
        Recognizer.from_pretrained(broken)


@pytest.mark.parametrize(
    "part",
    ["encoder.fusion.net.run", "detector.regressor.forward", "detector.classifier.forward"],
)
def test_an_export_with_a_damaged_graph_is_refused(
    part: str, reused: Reused, tmp_path: Path
) -> None:
    reused(damage=part)
    with pytest.raises(ExportError, match="the export differs from torch"):
        export(small_model(ONE), tmp_path / "out", data=small_documents(20, seed=5))
    assert list(tmp_path.iterdir()) == []


def test_int8_is_reported_beside_torch_and_float(reused: Reused, tmp_path: Path) -> None:
    reused()
    gold = small_documents()  # its training data, so that F1 is high
    options = ExportOptions(int8=True, max_loss=100)
    report = export(small_model(ONE), tmp_path / "out", data=gold, options=options)
    assert json.loads((tmp_path / "out" / "export.json").read_text()) == report.to_json()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [one.name for one in report.measured] == ["torch", "onnx", "int8"]
    assert all(one.f1 is not None and one.f1 > 0.3 for one in report.measured)
    assert "F1" in report.title  # without parity, which is measured for the float graphs
    assert "differ" not in report.title
    model = onnx.load(tmp_path / "out" / "detector.filter.forward.onnx")
    assert "MatMulInteger" in {node.op_type for node in model.graph.node}
    found = list(Recognizer.from_pretrained(tmp_path / "out").predict(gold))
    assert any(document.entities for document in found)


def test_int8_that_loses_f1_is_refused(
    reused: Reused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reused()

    def badly(source: Path, target: Path) -> None:
        shutil.copyfile(source, target)
        damaged(target, scale=0.0)

    monkeypatch.setattr(folders, "quantize", badly)
    options = ExportOptions(int8=True)
    with pytest.raises(ExportError, match=r"loses too many points of F1: .* allowed are 0\.5"):
        export(small_model(ONE), tmp_path / "out", data=small_documents(), options=options)
    assert list(tmp_path.iterdir()) == []


def test_int8_needs_labelled_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="labelled data"):
        export(small_model(ONE), tmp_path / "out", options=ExportOptions(int8=True))


def test_the_export_command_prints_a_report(reused: Reused, tmp_path: Path) -> None:
    reused()
    write(small_documents(20, seed=5), tmp_path / "data.jsonl")
    command = ["export", str(small_model(ONE)), "--onnx", str(tmp_path / "out")]
    command += ["--data", str(tmp_path / "data.jsonl"), "--limit", "2", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["parity"]["passed"]
    assert [one["name"] for one in report["models"]] == ["torch", "onnx"]
    again = CliRunner().invoke(app, command)
    assert isinstance(again.exception, UsageError)
    assert "exists already" in str(again.exception)


def test_a_folder_of_version_1_still_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 1 numbered the inputs, and had another name for the method of recurrent networks."""
    old = shutil.copytree(small_export(ONE), tmp_path / "old")
    manifest = Manifest.model_validate_json((old / "onnx.json").read_text())
    parts = {}
    for name, row in manifest.methods.items():
        model = onnx.load(old / f"{name}.onnx")
        is_net = name.endswith(".run")
        renamed = f"{name.removesuffix('run')}on_grid" if is_net else name
        rename_inputs(model, VERSION_1_NET if is_net else VERSION_1_HEAD)
        (old / f"{name}.onnx").unlink()
        onnx.save(model, old / f"{renamed}.onnx")
        parts[renamed] = row.weights
    (old / "onnx.json").write_text(json.dumps({"version": 1, "parts": parts}))
    monkeypatch.setenv(UNCHECKED, "1")
    text = small_texts(1, seed=8)[0]
    expected = plain(Recognizer.from_pretrained(small_model(ONE))(text))
    assert plain(Recognizer.from_pretrained(old)(text)) == expected
    (old / "onnx.json").write_text('{"parts": {"detector.denoiser.mapped": []}}')
    with pytest.raises(UsageError, match=r"denoiser\.mapped: export the model again"):
        Recognizer.from_pretrained(old)
