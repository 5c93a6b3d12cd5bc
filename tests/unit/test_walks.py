"""The walks of docs/architecture.md: which files a sentence and a training batch pass through."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

import pytest

import spandet
from spandet import generate
from spandet.encoding.pieces import PieceMaker
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.training.batches import batches
from spandet.training.checkpoint import RunState
from spandet.training.data import TrainingSentences
from spandet.training.epochs import TrainingLoop
from spandet.training.loop import StopRequest
from spandet.training.progress import Screen
from spandet.training.recipe import TrainingSettings
from spandet.training.run_folder import RunFolder
from spandet.training.step import build_accelerator, build_engine
from support.tiny_bert import save_tiny_bert

PACKAGE = Path(spandet.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
DOCUMENTS = list(generate(20, seed=1))
LETTERS = sorted({letter for d in DOCUMENTS for letter in d.text.lower() if not letter.isspace()})


def files_of(run: Callable[[], object]) -> set[str]:
    """The files of the package with a function that is called, relative to the package."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    inside = (Path(name) for name in seen if name.startswith(str(PACKAGE)))
    return {path.relative_to(PACKAGE).as_posix() for path in inside}


def documented(walk: str) -> set[str]:
    """The files in the section of the page with this heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"### {walk}\n")[1].split("\n#")[0]
    return set(re.findall(r"`([\w/]+\.py)`", section))


def built(folder: Path, detector: str) -> Recognizer:
    """A model with the parts of the bundled one, too small to be useful."""
    bert = save_tiny_bert(folder, [*LETTERS, *(f"##{letter}" for letter in LETTERS)])
    values = {
        "encoder": {
            "transformer": {"name": str(bert)},
            "characters": {"dim": 8},
            "fusion": {"kind": "bilstm"},
        },
        "detector": {"name": detector},
        "decoding": {"threshold": 0.0, "min_odds": 0.0},
    }
    return Recognizer.build(ModelSettings.resolve(values), DOCUMENTS)


def test_a_sentence_passes_through_the_documented_files(tmp_path: Path) -> None:
    recognizer = built(tmp_path, "span-jury")
    recognizer("Modules are imported at first use.")
    files = files_of(lambda: recognizer("IL-2 gene expression requires NF-kappa B."))
    assert files == documented("A sentence through `predict`")


def test_sub_words_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recognizer, cut = built(tmp_path, "biaffine"), PieceMaker.pieces_of
    words: list[list[str]] = []

    def recorded(maker: PieceMaker, given: Iterable[str]) -> dict[str, list[int]]:
        words.append(list(given))
        return cut(maker, words[-1])

    monkeypatch.setattr(PieceMaker, "pieces_of", recorded)
    list(recognizer.predict(DOCUMENTS, batch_pieces=64))
    assert words == [[word for d in DOCUMENTS for s in d.sentences for word in s.words]]
    words.clear()
    sentences = TrainingSentences.of(recognizer, DOCUMENTS)
    recognizer.encoder.prepare(sentences.examples[:3])
    assert len(words) == 1


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_batch_passes_through_the_documented_files(tmp_path: Path) -> None:
    recognizer = built(tmp_path / "bert", "biaffine")
    settings = TrainingSettings(epochs=1)
    engine = build_engine(recognizer, settings, build_accelerator("fp32"))
    sentences = TrainingSentences.of(recognizer, DOCUMENTS)
    loop = TrainingLoop(
        recognizer=recognizer,
        engine=engine,
        sentences=sentences,
        dev=None,
        settings=settings,
        state=RunState(identity={}),
        folder=RunFolder(tmp_path, recognizer, engine.learner, None),
        screen=Screen(silent=True),
        stop=StopRequest(),
    )
    batch = batches(sentences, epoch=0, settings=settings)[0]
    files = files_of(lambda: loop._step([batch], at=0.0))
    assert files == documented("A batch through `train`")
