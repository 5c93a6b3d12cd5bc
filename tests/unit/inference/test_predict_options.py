"""Options of prediction: a new field of the class is available in all interfaces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spandet.errors import UsageError
from spandet.inference import options as module
from spandet.inference.options import PredictKeywords, PredictOptions

FIELD = '''    made_up: Share | None = None
    """A made-up option."""
'''
CALLERS = """
import importlib.util, json, sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("spandet.inference.options", "options.py")
sys.modules[spec.name] = options = importlib.util.module_from_spec(spec)
spec.loader.exec_module(options)

import spacy
from typer.testing import CliRunner
from spandet.cli import app
from spandet.inference.decoding import DecodingSettings
from spandet.inference.recognizer import Recognizer
from spandet.integrations.ray_engine import RayJob, _Work, _Worker, _manifest
from spandet.integrations.spacy_component import SpandetComponent
from spandet.serving.schemas import EntitiesRequest
from spandet.serving.work import Finding
from spandet.text import Document

recorded = {}


class RecordingRecognizer:
    decoding = DecodingSettings()

    def predict(self, documents, options):
        recorded[caller] = options.made_up
        return iter(documents)


recognizer = RecordingRecognizer()
Recognizer.from_pretrained = classmethod(lambda *_, **__: recognizer)

caller = "command line"
Path("in.jsonl").write_text('{"text": "a"}')
words = ["bio-en", "in.jsonl", "-o", "out.jsonl", "--made-up", "0.25"]
done = CliRunner().invoke(app, ["predict", *words])
assert done.exit_code == 0, (done.output, done.exception)
shown = CliRunner().invoke(app, ["predict", "--help"]).output

caller = "HTTP"
request = EntitiesRequest.model_validate({"text": "a", "made_up": 0.25})
Finding(request.options).run(recognizer, [Document("a")])

caller = "spaCy"
nlp = spacy.blank("en")
nlp.add_pipe("spandet", config={"model": "nowhere", "made_up": 0.25})
nlp.get_pipe("spandet").recognizer = recognizer
nlp("a")

caller = "Ray"
worker, work = _Worker.__new__(_Worker), _Work("", "jsonl", RayJob(made_up=0.25))
worker._recognizer, worker._work = recognizer, work
list(worker._predict([Document("a")]))

found = {
    "recorded": recorded,
    "help": shown,
    "contract": EntitiesRequest.model_json_schema()["properties"]["made_up"],
    "pipeline": nlp.config["components"]["spandet"]["made_up"],
    "manifest": _manifest({}, [], work)["made_up"],
}
print(json.dumps(found))
"""


def test_a_new_field_is_known_to_every_caller(tmp_path: Path) -> None:
    source, place = Path(module.__file__).read_text(), "    flat: bool = False\n"
    assert source.count(place) == 1
    (tmp_path / "options.py").write_text(source.replace(place, FIELD + place))
    done = subprocess.run(
        [sys.executable, "-c", CALLERS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["recorded"] == dict.fromkeys(["command line", "HTTP", "spaCy", "Ray"], 0.25)
    assert "--made-up" in found["help"]
    assert "A made-up option." in found["help"]
    assert found["contract"] == {
        "description": "A made-up option.",
        "maximum": 1.0,
        "minimum": 0.0,
        "title": "Made Up",
        "type": "number",
    }
    assert found["pipeline"] == found["manifest"] == 0.25


def test_keyword_arguments_are_the_fields() -> None:
    assert list(PredictKeywords.__annotations__) == list(PredictOptions.model_fields)
    for name, field in PredictOptions.model_fields.items():
        assert field.description, name


def test_every_field_is_documented() -> None:
    text = (Path(__file__).parents[3] / "README.md").read_text()
    for name in PredictOptions.model_fields:
        assert f"`{name}`" in text, name


def test_keyword_arguments_replace_fields() -> None:
    options = PredictOptions(min_score=0.25, flat=True)
    assert PredictOptions.of(options) is options
    assert PredictOptions.of(options, flat=False) == PredictOptions(min_score=0.25)
    assert PredictOptions.of() == PredictOptions()


def test_the_order_of_labels_does_not_matter() -> None:
    one, other = (PredictOptions.of(labels=labels) for labels in (["b", "a", "b"], {"a", "b"}))
    assert one == other
    assert hash(one) == hash(other)
    assert one.labels == ("a", "b")
    assert PredictOptions.of(labels=iter(["\ud800"])).labels == ("\ud800",)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"a": 1}, "labels must be a list of labels, not {'a': 1}"),
        (b"a", "labels must be a list of labels, not b'a'"),
        (3, "labels must be a list of labels, not 3"),
        (["a", 3], r"labels item 1 is no string, not \['a', 3\]"),
    ],
)
def test_values_that_are_not_lists_of_labels_are_refused(labels: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PredictOptions.of(labels=labels)  # type: ignore[arg-type]
