"""Tracing: traced entities equal predicted ones, and each missed entity has a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from typing import Any

import pytest
import torch

from spandet import generate
from spandet.detectors import DETECTORS
from spandet.encoding import Example
from spandet.inference.decoding import DecodingSettings
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.inference.tracing import Reason, TracedDocument, TracedSentence, trace
from spandet.tensors import Links, SpanPredictions, Stage
from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan

DECODING = {"threshold": 0.3, "nms_decay": 0.7, "nms_overlap": 0.4, "crossing": "greedy"}


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(generate(12, seed=5))


def untrained(documents: Sequence[Document], name: str, **detector: Any) -> Recognizer:
    """An untrained recognizer that finds entities everywhere."""
    torch.manual_seed(1)
    sections = {
        "encoder": {"hashed": {"dim": 16, "rows": 64}, "fusion": {"dim": 16}},
        "detector": {"name": name, **detector},
        "decoding": DECODING,
    }
    made = Recognizer.build(ModelSettings.resolve(sections), documents)
    with torch.no_grad():
        for parameter in made.modules().parameters():
            parameter.normal_(std=0.4)
    return made


@pytest.fixture(scope="module", params=DETECTORS)
def recognizer(documents: list[Document], request: pytest.FixtureRequest) -> Recognizer:
    return untrained(documents, request.param)


@pytest.fixture(scope="module")
def traced(recognizer: Recognizer, documents: list[Document]) -> list[TracedDocument]:
    return [trace(recognizer, document, gold=True) for document in documents]


Key = tuple[CharSpan, str]


def keys(document: Document, sentence: TracedSentence) -> list[Key]:
    return [(sentence.sentence.chars_of(f.entity.span), f.entity.label) for f in sentence.found]


def test_traced_entities_equal_predicted_entities(
    recognizer: Recognizer, documents: list[Document], traced: list[TracedDocument]
) -> None:
    assert sum(len(s.found) for t in traced for s in t.sentences) > 10
    for document, predicted in zip(traced, recognizer.predict(documents), strict=True):
        assert document.document.id == predicted.id
        found = [key for s in document.sentences for key in keys(predicted, s)]
        assert found == [(e.span, e.label) for e in predicted.entities]
        scores = [f.entity.score for s in document.sentences for f in s.found]
        assert scores == pytest.approx([e.score for e in predicted.entities], abs=1e-4)


@pytest.mark.parametrize("min_score", [0.0, 0.9])
def test_a_minimum_score_acts_as_in_prediction(
    recognizer: Recognizer, documents: list[Document], min_score: float
) -> None:
    changed = False
    for document, tuned, predicted in zip(
        documents,
        recognizer.predict(documents),
        recognizer.predict(documents, min_score=min_score),
        strict=True,
    ):
        traced = trace(recognizer, document, min_score=min_score)
        found = [key for s in traced.sentences for key in keys(predicted, s)]
        assert found == [(e.span, e.label) for e in predicted.entities]
        changed = changed or predicted.entities != tuned.entities
    assert changed


def test_every_gold_entity_is_found_or_missed(traced: list[TracedDocument]) -> None:
    for document in traced:
        for sentence in document.sentences:
            assert sentence.gold is not None
            gold = {(e.span, e.label) for e in sentence.gold}
            hits = {(f.entity.span, f.entity.label) for f in sentence.found if f.right}
            wrong = {(f.entity.span, f.entity.label) for f in sentence.found if not f.right}
            missed = {(m.entity.span, m.entity.label) for m in sentence.missed}
            assert hits | missed == gold
            assert not hits & missed
            assert not wrong & gold
            assert all(bool(f.remark) != f.right for f in sentence.found)


def test_without_gold_there_are_no_outcomes(
    recognizer: Recognizer, documents: list[Document]
) -> None:
    for sentence in trace(recognizer, documents[0]).sentences:
        assert sentence.gold is None
        assert not sentence.missed
        assert all(found.right is None and not found.remark for found in sentence.found)


def test_the_nearest_overlaps_no_less_than_any_other(
    recognizer: Recognizer, traced: list[TracedDocument]
) -> None:
    for document in traced:
        examples = recognizer.examples_of(document.document)
        for sentence, example in zip(document.sentences, examples, strict=True):
            everything = recognizer.engine.candidates([example])
            kept = [set(range(*span)) for span in everything.spans[everything.mask].tolist()]
            for missed in sentence.missed:
                gold = set(range(missed.entity.span.start, missed.entity.span.end))
                overlaps = [len(words & gold) / len(words | gold) for words in kept]
                if missed.nearest is None:
                    assert max(overlaps, default=0) == 0
                else:
                    span = missed.nearest.span
                    own = set(range(span.start, span.end))
                    assert len(own & gold) / len(own | gold) >= max(overlaps, default=0)


def test_the_trace_has_every_stage(recognizer: Recognizer, traced: list[TracedDocument]) -> None:
    examples = recognizer.examples_of(traced[0].document)
    predictions = recognizer.engine.detect(examples, keep_all=True)
    names = tuple(stage.name for stage in predictions.trace)
    for document in traced:
        assert document.stages == names
        for sentence in document.sentences:
            for candidate in sentence.candidates:
                assert tuple(step.name for step in candidate.steps) == names


def test_stages_of_locate_and_label_lead_from_seeds_to_entities(documents: list[Document]) -> None:
    recognizer = untrained(documents, "locate-and-label")
    for sentence in trace(recognizer, documents[0]).sentences:
        for found in sentence.found:
            seed, adjusted = found.candidate.steps
            assert (seed.name, adjusted.name) == ("seed", "adjusted")
            assert seed.score is not None
            assert adjusted.label_probs == found.candidate.label_probs
            length = len(sentence.sentence)
            start = min(max(floor(adjusted.start + 0.5), 0), length - 1)
            end = min(max(floor(adjusted.end + 0.5), 1), length)
            expected = (seed.start, seed.end) if start >= end else (start, end)
            assert (found.entity.span.start, found.entity.span.end) == expected


@pytest.mark.parametrize("label_view", ["pointed", "slot"])
def test_inverted_slots_are_never_the_nearest_candidate(
    documents: list[Document], label_view: str
) -> None:
    recognizer = untrained(
        documents, "boundary-diffusion", pair="independent", label_view=label_view
    )
    seen = 0
    for document in documents:
        for sentence in trace(recognizer, document, gold=True).sentences:
            for missed in sentence.missed:
                if missed.nearest is not None:
                    last, span = missed.nearest.steps[-1], missed.nearest.span
                    assert (last.start, last.end) == (span.start, span.end)
                    seen += 1
    assert seen


def predicted(recognizer: Recognizer, document: Document, **decoding: object) -> Document:
    usual = recognizer.decoding
    recognizer.decoding = usual.model_copy(update=decoding)
    (found,) = recognizer.predict([document])
    recognizer.decoding = usual
    return found


@pytest.mark.slow
def test_without_the_rule_that_dropped_it_an_entity_is_found(documents: list[Document]) -> None:
    recognizer = untrained(documents, "locate-and-label")
    relaxed: dict[Reason, dict[str, object]] = {
        Reason.THRESHOLD: {"threshold": 0.0, "crossing": "keep", "nms_decay": 1.0},
        Reason.CROSSING: {"crossing": "keep", "nms_decay": 1.0},
        Reason.SUPPRESSED: {"nms_decay": 1.0},
    }
    seen = set()
    for document in documents:
        gold = predicted(recognizer, document, **relaxed[Reason.THRESHOLD])
        found = {
            reason: {(e.span, e.label) for e in predicted(recognizer, gold, **changes).entities}
            for reason, changes in relaxed.items()
        }
        for sentence in trace(recognizer, gold, gold=True).sentences:
            for missed in sentence.missed:
                seen.add(missed.reason)
                place = sentence.sentence.chars_of(missed.entity.span)
                assert (place, missed.entity.label) in found[missed.reason]
    assert seen == set(relaxed)


# A candidate in the sentence "a b c d e f": span, kept, score, and the probabilities of
# "no entity", X and Y.
ScriptedCandidate = tuple[tuple[int, int], bool, float | None, tuple[float, float, float]]
NOT_HERE = "no candidate ended on exactly these words"
LIKELY_X: ScriptedCandidate = ((0, 3), True, 0.9, (0.05, 0.9, 0.05))


class Scripted(Recognizer):
    """A recognizer with given candidates."""

    def __init__(
        self, scripted: Sequence[ScriptedCandidate], links: Links | None = None, **decoding: Any
    ) -> None:
        self.labels = ("X", "Y")
        self.decoding = DecodingSettings(**decoding)
        self.scripted = scripted
        self.links = links

    def tagged(self, examples: Sequence[Example]) -> Sequence[Example]:
        return examples

    def examples_of(self, document: Document) -> list[Example]:
        return [Example(sentence.words) for sentence in document.sentences]

    @property
    def engine(self) -> Any:
        return self

    def detect(self, examples: Sequence[Example], *, keep_all: bool = False) -> SpanPredictions:
        spans = torch.tensor([[span for span, *_ in self.scripted]]).reshape(1, -1, 2).long()
        probs = torch.tensor([[probs for *_, probs in self.scripted]]).reshape(1, -1, 3)
        mask = torch.tensor([[kept for _, kept, *_ in self.scripted]]).reshape(1, -1).bool()
        scores = [score for _, _, score, _ in self.scripted]
        known = None if None in scores else torch.tensor([scores])
        stages = (Stage("guess", spans + 0.25, known),)
        return SpanPredictions(spans, probs, mask, stages, self.links)


def missed_by(
    scripted: Sequence[ScriptedCandidate], gold: Entity[WordSpan], **decoding: Any
) -> tuple[str, str]:
    document = Document.from_rows([WordRow("abcdef", [gold])])
    (sentence,) = trace(Scripted(scripted, **decoding), document, gold=True).sentences
    (missed,) = sentence.missed
    return missed.reason.value, missed.why


@pytest.mark.parametrize(
    ("scripted", "gold", "decoding", "expected"),
    [
        ([], (0, 2, "X"), {}, ("no-candidate", "no candidate overlaps it")),
        ([LIKELY_X], (4, 5, "X"), {}, ("no-candidate", "no candidate overlaps it")),
        ([LIKELY_X], (0, 3, "Z"), {}, ("unknown-label", "the model does not know the label Z")),
        (
            [((0, 2), False, 0.1, (0.2, 0.7, 0.1))],
            (0, 2, "X"),
            {},
            ("dropped", "dropped early (guess score 0.10)"),
        ),
        (
            [((0, 2), False, None, (0.8, 0.15, 0.05))],
            (0, 2, "X"),
            {},
            ("no-entity", "“no entity” was more probable (0.80 against 0.15)"),
        ),
        (
            [((0, 2), True, 0.9, (0.8, 0.15, 0.05))],
            (0, 2, "X"),
            {},
            ("no-entity", "“no entity” was more probable (0.80 against 0.15)"),
        ),
        (
            [((0, 2), True, 0.9, (0.4, 0.3, 0.3))],
            (0, 2, "X"),
            {"min_odds": 0.5},
            ("threshold", "below the threshold (0.30, needed more than 0.50)"),
        ),
        ([LIKELY_X], (0, 3, "Y"), {}, ("other-label", "taken for X (0.90 against 0.05)")),
        (
            [LIKELY_X, ((0, 3), True, 0.9, (0.2, 0.2, 0.6))],
            (0, 3, "Y"),
            {},
            ("same-span", "another candidate on the same words won, as X"),
        ),
        (
            [LIKELY_X, ((2, 4), True, 0.9, (0.2, 0.7, 0.1))],
            (2, 4, "X"),
            {},
            ("crossing", "it crosses another candidate"),
        ),
        (
            [LIKELY_X, ((0, 2), True, 0.9, (0.2, 0.7, 0.1))],
            (0, 2, "X"),
            {"nms_decay": 0.5},
            ("suppressed", "Soft-NMS: it overlaps a higher-scoring candidate too much"),
        ),
        (
            [LIKELY_X],
            (0, 4, "X"),
            {},
            ("boundaries", f"{NOT_HERE}; this one was emitted"),
        ),
        (
            [((0, 3), False, 0.1, (0.2, 0.7, 0.1))],
            (0, 4, "X"),
            {},
            (
                "boundaries",
                f"{NOT_HERE}; this one: dropped early (guess score 0.10)",
            ),
        ),
    ],
)
def test_why_an_entity_was_missed(
    scripted: list[ScriptedCandidate],
    gold: tuple[int, int, str],
    decoding: dict[str, Any],
    expected: tuple[str, str],
) -> None:
    start, end, label = gold
    assert missed_by(scripted, Entity(WordSpan(start, end), label), **decoding) == expected


def test_discontinuous_entities_are_unreachable_without_linker() -> None:
    apart = Entity.from_fragments([WordSpan(0, 1), WordSpan(2, 3)], "X")
    assert missed_by([LIKELY_X], apart) == ("gap", "it has a gap, and a candidate has none")


def links(count: int, *linked: tuple[int, int, float], alone: Sequence[float] = ()) -> Links:
    together = torch.zeros(1, count, count)
    for one, other, prob in linked:
        together[0, one, other] = together[0, other, one] = prob
    return Links(together, torch.tensor([list(alone) or [0.1] * count]))


def fragment_candidate(start: int, end: int, prob: float = 0.9) -> ScriptedCandidate:
    return ((start, end), True, 0.9, (0.9 - prob, prob, 0.1))


APART = Entity.from_fragments([WordSpan(0, 1), WordSpan(2, 3)], "X")


def test_a_discontinuous_entity_has_a_candidate_per_fragment() -> None:
    scripted = [fragment_candidate(2, 3), fragment_candidate(0, 1)]
    recognizer = Scripted(scripted, links(2, (0, 1, 0.8)))
    document = Document.from_rows([WordRow("abcdef", [APART])])
    (sentence,) = trace(recognizer, document, gold=True).sentences
    assert not sentence.missed
    (found,) = sentence.found
    assert found.right
    assert found.entity.spans == APART.spans
    assert found.entity.score == pytest.approx(0.9 * 0.8)
    assert [each.span for each in found.candidates] == [WordSpan(0, 1), WordSpan(2, 3)]
    assert found.candidate == found.candidates[0]
    (without_gold,) = trace(recognizer, document).sentences[0].found
    assert without_gold.candidates == found.candidates


@pytest.mark.parametrize(
    ("scripted", "linked", "expected"),
    [
        (
            [fragment_candidate(0, 1)],
            links(1),
            ("no-candidate", "its fragment “c”: no candidate overlaps it"),
        ),
        (
            [fragment_candidate(0, 1), ((2, 3), True, 0.9, (0.8, 0.1, 0.1))],
            links(2, (0, 1, 0.9)),
            ("no-entity", "its fragment “c”: “no entity” was more probable (0.80 against 0.10)"),
        ),
        (
            [fragment_candidate(0, 1), fragment_candidate(2, 3)],
            links(2, (0, 1, 0.3)),
            ("links", "its fragments were not linked (0.30)"),
        ),
        (
            [fragment_candidate(0, 1), fragment_candidate(2, 3), fragment_candidate(5, 6)],
            links(3, (0, 1, 0.9), (0, 2, 0.8), (1, 2, 0.7)),
            ("links", "its fragments were linked with others as well"),
        ),
        (
            [fragment_candidate(0, 1, 0.45), fragment_candidate(2, 3)],
            links(2, (0, 1, 0.6)),
            ("threshold", "below the threshold (0.41, needed more than 0.50)"),
        ),
    ],
)
def test_why_a_discontinuous_entity_was_missed(
    scripted: list[ScriptedCandidate], linked: Links, expected: tuple[str, str]
) -> None:
    document = Document.from_rows([WordRow("abcdef", [APART])])
    recognizer = Scripted(scripted, linked, min_odds=0.5)
    (sentence,) = trace(recognizer, document, gold=True).sentences
    (missed,) = sentence.missed
    assert (missed.reason.value, missed.why) == expected


def test_an_entity_predicted_as_a_fragment_is_missed() -> None:
    document = Document.from_rows([WordRow("abcdef", [Entity(WordSpan(0, 1), "X")])])
    (sentence,) = trace(
        Scripted([fragment_candidate(0, 1)], links(1)), document, gold=True
    ).sentences
    (missed,) = sentence.missed
    assert (missed.reason, missed.why) == (Reason.PART, "taken for a part of something else")
    alone = Scripted([fragment_candidate(0, 1)], links(1, alone=[0.9]))
    assert trace(alone, document, gold=True).is_flawless


def test_of_equally_near_candidates_a_kept_one_is_the_nearest() -> None:
    dropped: ScriptedCandidate = ((0, 3), False, 0.1, (0.1, 0.9, 0.0))
    kept: ScriptedCandidate = ((0, 3), True, 0.9, (0.7, 0.3, 0.0))
    likelier: ScriptedCandidate = ((0, 3), True, 0.9, (0.6, 0.4, 0.0))
    document = Document.from_rows([WordRow("abc", [Entity(WordSpan(0, 3), "X")])])
    for order in ([dropped, kept, likelier], [likelier, kept, dropped]):
        (sentence,) = trace(Scripted(order), document, gold=True).sentences
        nearest = sentence.missed[0].nearest
        assert nearest is not None
        assert nearest.label_probs["X"] == pytest.approx(0.4)
        (step,) = nearest.steps
        assert (step.name, step.start, step.end) == ("guess", 0.25, 3.25)


@pytest.mark.parametrize(
    ("span", "last", "reason"),
    [
        ((4, 4), (4.0, 2.0), Reason.NO_CANDIDATE),
        ((0, 0), (0.0, 0.0), Reason.NO_CANDIDATE),
        ((0, 1), (0.9, 0.8), Reason.DROPPED),  # start after end, inside one word
    ],
)
def test_an_inverted_candidate_has_no_position_unless_it_has_a_span(
    span: tuple[int, int],
    last: tuple[float, float],
    reason: Reason,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recognizer = Scripted([(span, False, 0.1, (0.1, 0.9, 0.0))])
    usual = recognizer.detect

    def turned(examples: Sequence[Example], **options: Any) -> SpanPredictions:
        inside_out = torch.tensor([[last]])
        return replace(usual(examples, **options), trace=(Stage("guess", inside_out),))

    monkeypatch.setattr(recognizer, "detect", turned)
    document = Document.from_rows([WordRow("abc", [Entity(WordSpan(0, 1), "X")])])
    (sentence,) = trace(recognizer, document, gold=True).sentences
    assert sentence.missed[0].reason is reason


def test_errors_of_false_positives() -> None:
    def remark(*gold: Entity[WordSpan]) -> str:
        document = Document.from_rows([WordRow("abcdef", gold)])
        (sentence,) = trace(Scripted([LIKELY_X]), document, gold=True).sentences
        (found,) = sentence.found
        assert found.right is (not found.remark)
        return found.remark

    assert remark(Entity(WordSpan(0, 3), "X")) == ""
    two = (Entity(WordSpan(0, 3), "Y"), Entity(WordSpan(0, 3), "Z"))
    assert remark(*two) == "right span, wrong type: gold is Y and Z"
    assert remark(Entity(WordSpan(2, 4), "X")) == "right type, wrong boundaries"
    assert remark(Entity(WordSpan(2, 4), "Y")) == "nothing like it in gold"
    apart = Entity.from_fragments([WordSpan(0, 1), WordSpan(2, 3)], "X")
    assert remark(apart) == "right type, wrong boundaries"


def test_an_entity_given_twice_is_missed_once() -> None:
    twice = [Entity(WordSpan(4, 5), "X")] * 2
    document = Document.from_rows([WordRow("abcdef", twice)])
    (sentence,) = trace(Scripted([LIKELY_X]), document, gold=True).sentences
    assert len(sentence.missed) == 1


def test_gold_inside_words_is_listed_separately() -> None:
    document = Document("abc def", (Entity(CharSpan(1, 2), "X"), Entity(CharSpan(0, 3), "X")))
    traced = trace(Scripted([((0, 1), True, 0.9, (0.9, 0.1, 0.0))]), document, gold=True)
    assert traced.misfits == (Entity(CharSpan(1, 2), "X"),)
    assert not traced.is_flawless
    assert trace(Scripted([]), document).misfits == ()


@pytest.mark.parametrize("text", ["", "  ", ".", "\x00", "\ud800", "日本"])
def test_unusual_texts_are_traced(recognizer: Recognizer, text: str) -> None:
    traced = trace(recognizer, Document(text))
    assert traced.document.text == text
    assert len(traced.sentences) == len(Document(text).sentences)
