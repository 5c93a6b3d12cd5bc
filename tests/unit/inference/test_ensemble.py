"""Ensembles: the mean of several models, their folder, and the models that are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations, permutations
from pathlib import Path

import pytest

from spandet import generate
from spandet.errors import ConfigError, UsageError
from spandet.inference.ensemble import Ensemble, Member
from spandet.inference.ensemble_folder import MemberRecord
from spandet.inference.ensemble_tuning import tune_ensemble
from spandet.inference.long_sentences import LongSentences
from spandet.inference.manifest import UNCHECKED
from spandet.inference.model_names import ENSEMBLE, find_models, joint_fingerprint, listed
from spandet.inference.recognizer import Recognizer
from spandet.inference.tracing import trace
from spandet.integrations.model_files import packed, unpacked
from spandet.text import Document
from support.random_models import random_recognizer
from support.small_models import DETECTORS

DOCUMENTS = list(generate(25, seed=6))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An untrained model of each detector."""
    place = tmp_path_factory.mktemp("models")
    for detector in DETECTORS:
        random_recognizer(detector, decoding={"threshold": 0.05}).save_pretrained(place / detector)
    return {detector: place / detector for detector in DETECTORS}


def found(recognizer: Recognizer, documents: Sequence[Document] = DOCUMENTS) -> list[Document]:
    return list(recognizer.predict(documents))


def record(recognizer: Recognizer, name: str, weight: float = 1.0) -> Member:
    return Member(recognizer, MemberRecord(Path(name), name, weight))


@pytest.mark.parametrize(("one", "other"), list(combinations(DETECTORS, 2)))
def test_the_order_of_members_does_not_matter(
    models: dict[str, Path], one: str, other: str
) -> None:
    first = found(Recognizer.from_pretrained([models[one], models[other]]))
    second = found(Recognizer.from_pretrained(f"{models[other]}+{models[one]}"))
    assert first == second
    assert any(document.entities for document in first)


def test_sums_are_in_the_order_of_fingerprints() -> None:
    members = [record(random_recognizer("biaffine", seed=seed), f"{seed}") for seed in (1, 2, 3)]
    first, *others = (Ensemble(order) for order in permutations(members))
    expected = found(first)
    for ensemble in others:
        assert [member.name for member in ensemble.members] == ["1", "2", "3"]
        assert found(ensemble) == expected


def test_members_with_one_and_with_several_labels_per_span_give_one() -> None:
    strict = random_recognizer("proposer-regressor", seed=2, decoding={"crossing": "keep"})
    changes = {"crossing": "keep", "one_label": False}
    several = random_recognizer("proposer-regressor", seed=2, decoding=changes)
    assert found(several) != found(strict)
    assert found(Ensemble([record(several, "a"), record(strict, "b")])) == found(strict)


@pytest.mark.parametrize("detector", DETECTORS)
def test_one_member_finds_what_it_finds_alone(models: dict[str, Path], detector: str) -> None:
    alone = Recognizer.from_pretrained(models[detector])
    expected = found(alone)
    assert any(document.entities for document in expected)
    assert found(Ensemble([record(alone, "a")])) == expected
    assert found(Ensemble([record(alone, "a"), record(alone, "b")])) == expected
    twice = Recognizer.from_pretrained([models[detector], models[detector]])
    assert not isinstance(twice, Ensemble)
    assert found(twice) == expected


def test_discontinuous_entities_of_one_and_of_two_members() -> None:
    documents = list(generate(25, seed=3, domain="clinic"))
    one = random_recognizer("boundary-diffusion", fragments=documents, seed=5)
    other = random_recognizer("boundary-diffusion", fragments=documents, seed=6)
    expected = found(one, documents)
    assert any(entity.fragments for document in expected for entity in document.entities)
    assert found(Ensemble([record(one, "a")]), documents) == expected
    assert found(Ensemble([record(one, "a"), record(one, "b")]), documents) == expected
    both = found(Ensemble([record(one, "a"), record(other, "b")]), documents)
    assert any(entity.fragments for document in both for entity in document.entities)
    assert both == found(Ensemble([record(other, "b"), record(one, "a")]), documents)


def test_a_document_alone_and_in_a_batch(models: dict[str, Path]) -> None:
    ensemble = Recognizer.from_pretrained([models["biaffine"], models["boundary-diffusion"]])
    for document, together in zip(DOCUMENTS, found(ensemble), strict=True):
        alone = next(ensemble.predict([document], batch_pieces=1))
        assert [(e.span, e.label) for e in alone.entities] == [
            (e.span, e.label) for e in together.entities
        ]
        scores = [entity.score for entity in together.entities]
        assert [entity.score for entity in alone.entities] == pytest.approx(scores, abs=1e-5)


def test_flat_labels_scores_and_windows_work_as_for_any_model(models: dict[str, Path]) -> None:
    ensemble = Recognizer.from_pretrained([models["biaffine"], models["span-jury"]])
    assert ensemble.labels == ("person", "place", "role")
    text = " ".join(document.text for document in DOCUMENTS).replace(".", ",").replace("?", ",")
    ensemble.long_sentences = LongSentences(words=30, overlap=10)
    document = ensemble(text, flat=True, labels=["place"], min_score=0.1)
    assert document.entities
    assert {entity.label for entity in document.entities} == {"place"}
    assert all(entity.score and entity.score > 0.1 for entity in document.entities)
    ends = [0, *(entity.span.end for entity in document.entities)]
    assert all(e.span.start >= end for e, end in zip(document.entities, ends, strict=False))


def test_a_label_that_a_member_does_not_know_counts_as_zero() -> None:
    one = random_recognizer("biaffine", labels=("person", "place", "role"))
    other = random_recognizer("biaffine", labels=("gene", "role"), seed=2)
    ensemble = Ensemble([record(one, "a", weight=3.0), record(other, "b")])
    assert ensemble.labels == ("gene", "person", "place", "role")
    text = " ".join(document.text for document in DOCUMENTS)
    alone = {(e.span, e.label): e.score for e in one(text).entities}
    own = [e for e in ensemble(text).entities if e.label in ("person", "place")]
    checked = [e for e in own if (e.span, e.label) in alone]
    assert checked
    for entity in checked:
        score = alone[entity.span, entity.label]
        assert score is not None
        assert entity.score == pytest.approx(3 * score / 4)


def test_settings_of_decoding_are_shared_or_default() -> None:
    one = random_recognizer("biaffine", decoding={"threshold": 0.2, "crossing": "keep"})
    other = random_recognizer("span-jury", decoding={"threshold": 0.4, "crossing": "keep"})
    third = random_recognizer("span-jury", decoding={"threshold": 0.6, "flat": True})
    two = Ensemble([record(one, "a"), record(other, "b", weight=3.0)])
    assert two.decoding.crossing == "keep"
    assert two.decoding.threshold == pytest.approx(0.35)
    three = Ensemble([record(one, "a"), record(other, "b"), record(third, "c")])
    assert (three.decoding.crossing, three.decoding.flat) == ("greedy", False)


def test_a_model_named_twice_has_twice_the_weight(models: dict[str, Path]) -> None:
    names = [models["biaffine"], models["span-jury"], models["biaffine"]]
    ensemble = Recognizer.from_pretrained(names)
    assert isinstance(ensemble, Ensemble)
    assert {m.name: m.record.weight for m in ensemble.members} == {"biaffine": 2, "span-jury": 1}


def test_saved_copies_do_not_need_the_members(models: dict[str, Path], tmp_path: Path) -> None:
    ensemble = Recognizer.from_pretrained([models["biaffine"], models["span-jury"]])
    expected = found(ensemble)
    ensemble.save_pretrained(tmp_path / "copy")
    (tmp_path / "copy").rename(tmp_path / "moved")
    assert found(Recognizer.from_pretrained(tmp_path / "moved")) == expected
    assert found(unpacked(packed(ensemble))) == expected


def copied(models: dict[str, Path], place: Path) -> list[Path]:
    for name in ("biaffine", "span-jury"):
        Recognizer.from_pretrained(models[name]).save_pretrained(place / name)
    return [place / "biaffine", place / "span-jury"]


def test_a_tuned_folder_is_a_model(models: dict[str, Path], tmp_path: Path) -> None:
    members = copied(models, tmp_path)
    report = tune_ensemble(members, DOCUMENTS, tmp_path / "both", data="dev.jsonl")
    ensemble = Recognizer.from_pretrained(tmp_path / "both")
    assert ensemble.decoding.threshold == report.threshold
    assert listed(tmp_path / "both").detector == "ensemble of 2"
    assert listed(tmp_path / "both").dev_f1 == report.scores[0].f1
    assert json.loads((tmp_path / "both" / ENSEMBLE).read_text())["threshold"] == report.threshold
    changed = Recognizer.from_pretrained(tmp_path / "both", ["decoding.threshold=0.9"])
    assert changed.decoding.threshold == 0.9
    with pytest.raises(UsageError, match=r"only \[decoding\] can be set, not detector"):
        Recognizer.from_pretrained(tmp_path / "both", ["detector.dim=3"])
    with pytest.raises(ConfigError, match="has no setting treshold"):
        Recognizer.from_pretrained(members, ["decoding.treshold=0.9"])


def test_the_tuned_threshold_is_no_worse_than_the_mean(
    models: dict[str, Path], tmp_path: Path
) -> None:
    from spandet import evaluate  # noqa: PLC0415

    members = copied(models, tmp_path)
    report = tune_ensemble(members, DOCUMENTS, tmp_path / "both")
    untuned = evaluate(gold=DOCUMENTS, predicted=found(Recognizer.from_pretrained(members)))
    assert report.scores[0].f1 >= untuned.micro.f1


def test_changed_and_missing_members_are_refused_by_name(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = copied(models, tmp_path)
    tune_ensemble(members, DOCUMENTS, tmp_path / "both")
    fingerprint = joint_fingerprint([tmp_path / "both"])
    other = random_recognizer("span-jury", seed=9)
    other.save_pretrained(members[1])
    with pytest.raises(UsageError, match=r"span-jury, a member of .*both, has changed"):
        Recognizer.from_pretrained(tmp_path / "both")
    monkeypatch.setenv(UNCHECKED, "1")
    Recognizer.from_pretrained(tmp_path / "both")
    monkeypatch.delenv(UNCHECKED)
    members[1].rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=r"span-jury, a member of .*both, is missing"):
        Recognizer.from_pretrained(tmp_path / "both")
    assert joint_fingerprint([tmp_path / "both"]) == fingerprint
    config = tmp_path / "both" / "config.json"
    config.write_text(config.read_text().replace("biaffine", "biaffinE"))
    with pytest.raises(UsageError, match=r"config\.json is damaged, or was changed"):
        Recognizer.from_pretrained(tmp_path / "both")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], r"config\.json is damaged: it names no members"),
        ({}, r"config\.json is damaged: expected a list of members"),
        ([{"folder": "x"}], r"config\.json is damaged: \[ensemble\] fingerprint"),
        ([{"fingerprint": "x"}], r"config\.json is damaged: a member needs a model or a folder"),
    ],
)
def test_damaged_folders_are_refused(tmp_path: Path, members: object, message: str) -> None:
    config = {"labels": ["a"], "ensemble": members, "decoding": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match=message):
        Recognizer.from_pretrained(tmp_path)


def test_models_that_cannot_be_combined_are_refused(models: dict[str, Path]) -> None:
    one = random_recognizer("biaffine", labels=("gene",))
    other = random_recognizer("biaffine", labels=("place",))
    with pytest.raises(UsageError, match="a and b have no label in common: gene and place"):
        Ensemble([record(one, "a"), record(other, "b")])
    inner = Ensemble([record(one, "a")])
    with pytest.raises(UsageError, match="b is an ensemble itself"):
        Ensemble([record(one, "a"), record(inner, "b")])
    other.detector.links_fragments = True
    with pytest.raises(UsageError, match="b finds discontinuous entities and a does not"):
        Ensemble([record(one, "a"), record(other, "b")])
    with pytest.raises(UsageError, match="at least one model, got an empty list"):
        Recognizer.from_pretrained([])
    with pytest.raises(UsageError, match=r"expected a model on each side of every \+"):
        find_models("bio-en+")
    with pytest.raises(UsageError, match="there is no model 'nothing'"):
        Recognizer.from_pretrained(f"{models['biaffine']}+nothing")


def test_what_needs_a_single_model_says_so(models: dict[str, Path]) -> None:
    ensemble = Recognizer.from_pretrained([models["biaffine"], models["span-jury"]])
    with pytest.raises(UsageError, match="an ensemble cannot be traced"):
        trace(ensemble, DOCUMENTS[0])
    for use in (lambda: ensemble.encoder, ensemble.modules, lambda: ensemble.settings):
        with pytest.raises(UsageError, match="expected a single model, got an ensemble of "):
            use()
    assert not hasattr(ensemble, "nothing")
