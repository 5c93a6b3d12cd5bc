"""The published recipes, by the commands in their first lines, on tiny corpora in original formats.

Replaced are only the transformer, the word vectors and the number of epochs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spandet.formats import read
from spandet.inference import tagging
from spandet.training import Recipe
from support import corpus_files
from support.command_line import succeeds
from support.corpus_files import Writer
from support.tiny_bert import save_tiny_bert

RECIPES = Path(__file__).parents[2] / "recipes"
METHODS = ("locate-and-label", "proposer-regressor", "boundary-diffusion")


@dataclass(frozen=True)
class CorpusFiles:
    """A published corpus: its files, who writes tiny ones, and the format's name."""

    train: str
    dev: str
    test: str
    write: Writer
    format: str
    labels: frozenset[str]


NESTED, FLAT = frozenset({"PER", "GPE", "ORG"}), frozenset({"PER", "LOC", "ORG"})
CHINESE = frozenset({"PER", "LOC"})
ACE = CorpusFiles("train", "dev", "test", corpus_files.write_ace, "ace", NESTED)
CORPORA = {
    "ace04": ACE,
    "ace05": ACE,
    "kbp17": CorpusFiles("train", "dev", "test", corpus_files.write_ere, "ere", NESTED),
    "genia": CorpusFiles(
        "train.xml",
        "dev.xml",
        "test.xml",
        corpus_files.write_genia,
        "genia-xml",
        frozenset({"DNA", "protein", "cell_type"}),
    ),
    "conll03": CorpusFiles(
        "eng.train", "eng.testa", "eng.testb", corpus_files.write_conll03, "conll", FLAT
    ),
    "ontonotes": CorpusFiles(
        "train", "development", "test", corpus_files.write_ontonotes, "conll2012", FLAT
    ),
    "msra": CorpusFiles(
        "train.bio", "dev.bio", "test.bio", corpus_files.write_characters, "conll", CHINESE
    ),
    "weibo": CorpusFiles(
        "weiboNER_2nd_conll.train",
        "weiboNER_2nd_conll.dev",
        "weiboNER_2nd_conll.test",
        partial(corpus_files.write_characters, separator="\t"),
        "conll",
        CHINESE,
    ),
}
PUBLISHED = sorted(
    path
    for corpus in CORPORA
    for method in METHODS
    for path in (RECIPES / corpus).glob(f"{method}*.toml")
    if "minilm" not in path.stem
)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sentences = [corpus_files.english(n, nested=True) for n in range(16)]
    sentences += [corpus_files.chinese(n) for n in range(16)]
    words = [word.lower() for sentence in sentences for word in sentence.words]
    letters = [
        mark + letter for letter in "abcdefghijklmnopqrstuvwxyz0123456789" for mark in ("", "##")
    ]
    pieces = dict.fromkeys([*words, *letters, "-", "<", ">"])
    return save_tiny_bert(tmp_path_factory.mktemp("bert"), pieces, layers=4)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory, and a spaCy pipeline for corpora without parts of speech."""
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    rules: Any = nlp.add_pipe("attribute_ruler")
    rules.add([[{"IS_TITLE": True}]], {"TAG": "NNP"})
    rules.add([[{"IS_TITLE": False}]], {"TAG": "NN"})
    nlp.to_disk(tmp_path / "pipeline")
    monkeypatch.setenv("SPANDET_SPACY", str(tmp_path / "pipeline"))
    monkeypatch.chdir(tmp_path)
    tagging._spacy_tagger.cache_clear()
    yield tmp_path
    tagging._spacy_tagger.cache_clear()


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_command_of_a_recipe_trains_a_model(path: Path, bert: Path, place: Path) -> None:
    corpus = CORPORA[path.parent.name]
    for number, name in enumerate((corpus.train, corpus.dev, corpus.test)):
        corpus.write(place / name, 8, 8 * number)
    assert {e.label for d in read(corpus.test, corpus.format) for e in d.entities} == corpus.labels
    recipe = Recipe.load(path)
    changes = [f"encoder.transformer.name={bert}", "training.epochs=1"]
    if recipe.training.frozen_epochs:
        changes = [changes[0], "training.epochs=2", "training.frozen_epochs=1"]
    if recipe.model.encoder.word_vectors is not None:
        write_vectors(place / recipe.model.encoder.word_vectors.path, corpus)
    program, train, _, *rest = shlex.split(path.read_text().splitlines()[0].removeprefix("# "))
    assert (program, train) == ("spandet", "train")

    succeeds("train", path, *rest, *(word for change in changes for word in ("--set", change)))
    model = rest[rest.index("--out") + 1]
    succeeds("predict", model, corpus.test, "--from", corpus.format, "-o", "predicted.jsonl")
    scores = json.loads(
        succeeds("evaluate", corpus.test, "predicted.jsonl", "--from", corpus.format, "--json")
    )

    facts = json.loads((place / model / "run.json").read_text())
    both = "--dev" not in rest
    assert facts["data"]["train"]["sentences"] >= (16 if both else 8)
    assert facts["data"]["train"]["name"].split(" + ") == (
        [corpus.train, corpus.dev] if both else [corpus.train]
    )
    assert facts["warnings"] == []
    assert scores["micro"]["gold"] == sum(len(d.entities) for d in read(corpus.test, corpus.format))


def write_vectors(path: Path, corpus: CorpusFiles) -> None:
    """Random word vectors, as text or in word2vec's binary form."""
    documents = list(read(corpus.train, corpus.format))
    words = sorted({w.lower() for d in documents for s in d.sentences for w in s.words})
    dim = 8
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(words), dim)).astype("<f4")
    if path.suffix == ".bin":
        rows = [w.encode() + b" " + v.tobytes() for w, v in zip(words, vectors, strict=True)]
        path.write_bytes(f"{len(words)} {dim}\n".encode() + b"".join(rows))
    else:
        lines = [" ".join([w, *map(str, v)]) for w, v in zip(words, vectors.tolist(), strict=True)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
