"""Candidates by stage and distances of boundaries, compared with the traces of the same model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from spandet.benchmarking.stages import BOUNDARIES, DISTANCES, StageCounts, count_stages
from spandet.evaluation import evaluate
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.inference.tracing import trace
from spandet.text import Document
from support.benchmark_toys import documents, toy_folder
from support.command_line import spandet, succeeds

MORE = {"proposer-regressor": {"none_prior": 0.0, "min_odds": 0.0}}
"""Settings with which an untrained detector predicts something."""
DETECTORS = ["locate-and-label", "proposer-regressor", "boundary-diffusion", "biaffine"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.getbasetemp())


def untrained(detector: str) -> Recognizer:
    values = {
        "encoder": {"hashed": {"dim": 16, "rows": 64}, "fusion": {"dim": 16}},
        "detector": {"name": detector, **MORE.get(detector, {})},
        "decoding": {"threshold": 0.0, "min_odds": 0.0},
    }
    return Recognizer.build(ModelSettings.resolve(values), documents(5, seed=1))


def distances(recognizer: Recognizer, given: list[Document]) -> dict[str, Counter[str]]:
    """The histogram from the traces that users see."""
    found: dict[str, Counter[str]] = {name: Counter() for name in BOUNDARIES}
    for document in given:
        for sentence in trace(recognizer, document).sentences:
            for traced in sentence.found:
                first, last = traced.candidate.steps[0], traced.entity.span
                pairs = zip(
                    BOUNDARIES, (first.start, first.end), (last.start, last.end), strict=True
                )
                for name, before, after in pairs:
                    found[name][DISTANCES[min(4, abs(round(before) - after))]] += 1
    return found


@pytest.mark.parametrize("detector", DETECTORS)
def test_distances_are_those_of_the_traces(detector: str) -> None:
    recognizer, given = untrained(detector), documents(5, seed=2)
    counts = count_stages(recognizer, given)
    wanted = distances(recognizer, given)
    assert counts.entities > 0
    for name in BOUNDARIES:
        assert +counts.moves[name] == +wanted[name]
        assert counts.moves[name].total() == counts.entities
    if detector == "biaffine":  # it does not move boundaries
        assert counts.moves["left"]["0"] == counts.entities


@pytest.mark.parametrize("detector", DETECTORS)
def test_each_step_has_at_most_the_candidates_of_the_one_before(detector: str) -> None:
    given = documents(5, seed=2)
    counts = count_stages(untrained(detector), given)
    numbers = list(counts.candidates.values())
    assert counts.sentences == sum(len(d.sentences) for d in given)
    assert numbers[-1] >= counts.kept >= counts.labelled >= counts.entities >= counts.correct
    assert all(counts.spans[name] <= number for name, number in counts.candidates.items())


def test_seeds_are_the_windows_of_each_sentence() -> None:
    recognizer, given = untrained("locate-and-label"), documents(5, seed=2)
    lengths = [len(s.words) for d in given for s in d.sentences]
    counts = count_stages(recognizer, given)
    # One window of each length per word, clipped to the sentence; equal windows are one seed.
    wanted = sum(min(n - start, 10) for n in lengths for start in range(n))
    assert counts.spans["seed"] == wanted


def test_entities_are_those_of_predict(folder: Path) -> None:
    recognizer = Recognizer.from_pretrained(folder / "model")
    given = documents(30, seed=3)
    counts = count_stages(recognizer, given)
    micro = evaluate(given, list(recognizer.predict(given))).micro
    assert (counts.entities, counts.gold) == (micro.predicted, micro.gold)
    assert counts.correct == pytest.approx(micro.precision * micro.predicted)
    assert counts.correct > 0
    for name in BOUNDARIES:
        assert counts.correct_moves[name].total() == counts.correct


def test_documents_without_words_are_counted_as_nothing() -> None:
    counts = count_stages(untrained("biaffine"), [Document("")])
    assert counts == StageCounts()


def test_the_command_prints_tables_markdown_and_json(folder: Path, tmp_path: Path) -> None:
    command = ("benchmark", "stages", folder / "model", folder / "dev.jsonl", "--limit", 10)
    facts = json.loads(succeeds(*command, "--json"))
    assert facts["sentences"] == 10
    both = [sum(facts["moves"][name].values()) for name in BOUNDARIES]
    assert both == [facts["entities"]] * 2
    assert list(facts["moves"]["left"]) == list(DISTANCES)
    page = tmp_path / "stages.html"
    text = succeeds(*command, "--markdown", "--html", page)
    number = facts["stages"][0]["candidates"]
    assert f"| {facts['stages'][0]['name']} | {number:,} | {number / 10:.2f} |" in text
    assert "<svg" in page.read_text(encoding="utf-8")
    assert "kept by the detector" in succeeds(*command)
    assert spandet(*command[:3], tmp_path / "absent.jsonl").returncode == 2
