"""One ONNX graph of a whole model predicts what torch predicts, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from spandet import generate
from spandet.errors import UsageError
from spandet.inference.model_settings import ModelSettings
from spandet.inference.onnx_engine import GRAPH
from spandet.inference.recognizer import Recognizer
from spandet.inference.tracing import trace
from spandet.onnx_export import ExportError, ExportOptions, export
from spandet.onnx_export.parity import SCORE_BOUND, compare
from spandet.text import Document
from support.made_once import made_once
from support.tiny_bert import save_tiny_bert

THRESHOLD = 0.02
"""Low: untrained models give all labels similar probabilities."""
DOCUMENTS = list(generate(20, seed=1))
UNUSUAL = ["", "?", "\u200b", "a [SEP] b " * 90]
TEXTS = [*(document.text for document in generate(10, seed=2)), *UNUSUAL]
LETTERS = sorted({letter for d in DOCUMENTS for letter in d.text.lower() if not letter.isspace()})
ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": {
        "transformer": {"name": "bert", "context": 8},
        "characters": {"dim": 8},
        "fusion": {"kind": "bilstm"},
    },
    "words": {
        "hashed": {},
        "characters": {"dim": 8, "pooling": "last", "cell": "gru"},
        "fusion": {"kind": "bigru", "layers": 2, "dim": 12, "norm": True},
    },
}
DECODING = {"threshold": THRESHOLD, "min_odds": 0.0}
MODELS = [("span-jury", "transformer"), ("span-jury", "words"), ("biaffine", "transformer")]
ONE = MODELS[0]


@cache
def exported(detector: str, encoder: str) -> Path:
    """The folder of an untrained model and of its export, `graph`. Read-only."""

    def make(folder: Path) -> None:
        bert = save_tiny_bert(folder / "bert", [*LETTERS, *(f"##{one}" for one in LETTERS)])
        values: dict[str, Any] = json.loads(json.dumps(ENCODERS[encoder]))
        if "transformer" in values:
            values["transformer"]["name"] = str(bert)
        sections = {"encoder": values, "detector": {"name": detector}, "decoding": DECODING}
        torch.manual_seed(0)
        recognizer = Recognizer.build(ModelSettings.resolve(sections), DOCUMENTS)
        recognizer.save_pretrained(folder / "torch")
        export(folder / "torch", folder / "graph", options=ExportOptions(one_graph=True))

    return made_once(f"one-graph-{detector}-{encoder}", make)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_graph_predicts_what_torch_predicts(model: tuple[str, str]) -> None:
    folder = exported(*model)
    in_torch = Recognizer.from_pretrained(folder / "torch")
    in_graph = Recognizer.from_pretrained(folder / "graph")
    assert in_torch.graph is None
    assert in_graph.graph is not None
    expected = list(in_torch.predict(TEXTS))
    for pieces in (768, 20):
        found = list(in_graph.predict(TEXTS, batch_pieces=pieces))
        result = compare(expected, found, threshold=THRESHOLD, bound=SCORE_BOUND)
        assert result.passed, result.reason
        assert not result.ties


@pytest.mark.slow
def test_prediction_with_a_graph_loads_no_torch(tmp_path: Path) -> None:
    folder, text, out = exported(*ONE) / "graph", tmp_path / "text.txt", tmp_path / "out.jsonl"
    text.write_text(TEXTS[0], encoding="utf-8")
    code = (
        "import sys\nfrom spandet.cli import app\n"
        f"app(['predict', {str(folder)!r}, {str(text)!r}, '-o', {str(out)!r}], "
        "standalone_mode=False)\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
    expected = Recognizer.from_pretrained(folder, engine="torch")(TEXTS[0])
    found = json.loads(out.read_text(encoding="utf-8"))["entities"]
    assert [one["score"] for one in found] == pytest.approx(
        [entity.score for entity in expected.entities], abs=SCORE_BOUND
    )
    assert found


@pytest.mark.slow
def test_the_engine_is_chosen() -> None:
    folder = exported(*ONE) / "graph"
    assert Recognizer.from_pretrained(folder, engine="torch").graph is None
    assert Recognizer.from_pretrained(folder, ["detector.rounds=2"]).graph is None
    changed = Recognizer.from_pretrained(folder, ["decoding.threshold=0.9"], engine="onnx")
    assert changed.decoding.threshold == 0.9
    with pytest.raises(UsageError, match=r"changed setting 'detector.rounds=2' needs engine="):
        Recognizer.from_pretrained(folder, ["detector.rounds=2"], engine="onnx")
    with pytest.raises(UsageError, match="the device 'cuda' needs engine="):
        Recognizer.from_pretrained(folder, device="cuda", engine="onnx")
    with pytest.raises(UsageError, match=r"pieces\.json is missing"):
        Recognizer.from_pretrained(exported(*ONE) / "torch", engine="onnx")


@pytest.mark.slow
def test_a_sentence_over_the_limit_is_refused() -> None:
    recognizer = Recognizer.from_pretrained(exported(*ONE) / "graph")
    recognizer.long_sentences = recognizer.long_sentences.model_copy(update={"words": 600})
    with pytest.raises(UsageError, match=r"600 words is too long .* at most 511"):
        recognizer("word " * 600)


@pytest.mark.slow
def test_traces_and_copies_come_from_torch(tmp_path: Path) -> None:
    folder = exported(*ONE) / "graph"
    recognizer = Recognizer.from_pretrained(folder)
    document = Document(TEXTS[0])
    expected = trace(Recognizer.from_pretrained(folder, engine="torch"), document)
    assert trace(recognizer, document) == expected
    recognizer.save_pretrained(tmp_path)
    assert not (tmp_path / GRAPH).exists()


@pytest.mark.slow
def test_a_detector_without_a_graph_is_refused(tmp_path: Path) -> None:
    sections = {"encoder": ENCODERS["words"], "detector": {"name": "boundary-diffusion"}}
    Recognizer.build(ModelSettings.resolve(sections), DOCUMENTS).save_pretrained(tmp_path / "model")
    with pytest.raises(ExportError, match="as one graph: the detector, with its settings, has no"):
        export(tmp_path / "model", tmp_path / "out", options=ExportOptions(one_graph=True))
    assert not (tmp_path / "out").exists()
