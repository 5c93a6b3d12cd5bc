"""Evaluation compared with a naive second implementation, and laws of any scorer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.evaluation import Report, Score, compare, describe, evaluate
from spandet.evaluation.items import Envelope
from spandet.evaluation.structure import (
    count_crossing_pairs,
    crossing,
    nested_depths,
    sweep_for_crossing,
)
from spandet.text import CharSpan, Document, Entity, Sentence

LABELS = ("A", "B", "C")

# Strategies: a document is planned in words and then laid out with any spacing.


@dataclass(frozen=True)
class Plan:
    """An entity in words: separate fragments and a label. A cut drops its first character."""

    fragments: tuple[tuple[int, int], ...]
    label: str
    cut: bool = False


@st.composite
def plans(draw: st.DrawFn, words: int) -> Plan:
    borders = sorted(draw(st.sets(st.integers(0, words), min_size=2, max_size=4)))
    pairs = zip(borders[::2], borders[1::2], strict=True) if len(borders) == 4 else ()
    fragments = tuple(pairs) or ((borders[0], borders[-1]),)
    return Plan(
        fragments, draw(st.sampled_from(LABELS)), draw(st.sampled_from((False,) * 5 + (True,)))
    )


@dataclass(frozen=True)
class Case:
    """The words of a document and the entities of each side."""

    words: tuple[str, ...]
    gold: tuple[Plan, ...]
    predicted: tuple[Plan, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    words = tuple(draw(st.lists(st.sampled_from(("ab", "xyz", "βγ")), min_size=1, max_size=9)))
    sides = st.lists(plans(len(words)), max_size=7)
    gold = draw(sides)
    # Half of the predictions repeat gold, so that hits, duplicates and other labels are frequent.
    kept = draw(st.lists(st.sampled_from(gold), max_size=5)) if gold else []
    renamed = [replace(plan, label=draw(st.sampled_from(LABELS))) for plan in kept[::2]]
    return Case(words, tuple(gold), (*kept[1::2], *renamed, *draw(sides)))


def laid_out(
    words: Sequence[str],
    entities: Sequence[Plan],
    gaps: Sequence[str] | None = None,
    name: str | None = None,
) -> Document:
    """Words with a space, or with the given white space, before each of them but the first."""
    text, starts = "", []
    for number, word in enumerate(words):
        text += "" if number == 0 else " " if gaps is None else gaps[number]
        starts.append(len(text))
        text += word
    middle = len(words) // 2
    sentences = tuple(
        Sentence(tuple(words[part]), tuple(starts[part]))
        for part in (slice(0, middle), slice(middle, None))
    )
    placed = tuple(_placed(plan, words, starts) for plan in entities)
    return Document(text, placed, id=name, own_sentences=sentences)


def _placed(plan: Plan, words: Sequence[str], starts: Sequence[int]) -> Entity[CharSpan]:
    fragments = [
        CharSpan(starts[first] + (plan.cut and number == 0), starts[end - 1] + len(words[end - 1]))
        for number, (first, end) in enumerate(plan.fragments)
    ]
    return Entity.from_fragments(fragments, plan.label)


def corpora(case_list: Sequence[Case], *, ids: bool = False) -> tuple[list[Document], ...]:
    names = [f"d{number}" if ids else None for number in range(len(case_list))]
    both = list(zip(case_list, names, strict=True))
    return (
        [laid_out(case.words, case.gold, name=name) for case, name in both],
        [laid_out(case.words, case.predicted, name=name) for case, name in both],
    )


# The oracle: sets, double loops, and nothing from spandet.evaluation.

Key = tuple[tuple[CharSpan, ...], str]


@dataclass(frozen=True)
class Naive:
    """One side of one document."""

    document: Document

    @property
    def keys(self) -> set[Key]:
        return {(entity.spans, entity.label) for entity in self.document.entities}


def words_of(gold: Document) -> list[CharSpan]:
    return [
        CharSpan(start, start + len(word))
        for sentence in gold.sentences
        for start, word in zip(sentence.starts, sentence.words, strict=True)
    ]


def envelope(key: Key) -> CharSpan:
    return CharSpan(key[0][0].start, key[0][-1].end)


def length(key: Key, gold: Document) -> int:
    return sum(any(word.overlaps(piece) for piece in key[0]) for word in words_of(gold))


def is_nested(key: Key, side: set[Key]) -> bool:
    own = envelope(key)
    return any(
        envelope(other) != own and (envelope(other).contains(own) or own.contains(envelope(other)))
        for other in side
    )


def is_nested_with(key: Key, side: set[Key], *, same_label: bool) -> bool:
    return is_nested(key, {other for other in side if (other[1] == key[1]) == same_label})


def depth(key: Key, side: set[Key]) -> int:
    own = envelope(key)
    around = [o for o in side if envelope(o) != own and envelope(o).contains(own)]
    return 1 + max((depth(other, side) for other in around), default=0)


Group = Callable[[Key, set[Key], Document], object]


def naive_counts(
    gold: Sequence[Document], predicted: Sequence[Document], group: Group
) -> dict[object, tuple[int, int, int, int]]:
    """Correct, predicted, found and gold entities of every group."""
    counts: dict[object, Counter[str]] = {}
    for ours, theirs in zip(gold, predicted, strict=True):
        wanted, predicted_keys = Naive(ours).keys, Naive(theirs).keys
        for key in predicted_keys:
            own = counts.setdefault(group(key, predicted_keys, ours), Counter())
            own["predicted"] += 1
            own["correct"] += key in wanted
        for key in wanted:
            own = counts.setdefault(group(key, wanted, ours), Counter())
            own["gold"] += 1
            own["found"] += key in predicted_keys
    return {
        name: (own["correct"], own["predicted"], own["found"], own["gold"])
        for name, own in counts.items()
    }


def check(score: Score, counts: tuple[int, int, int, int]) -> None:
    correct, predicted, found, gold = counts
    assert (score.correct, score.predicted, score.found, score.gold) == counts
    precision = correct / predicted if predicted else 0.0
    recall = found / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert (score.precision, score.recall) == (precision, recall)
    assert score.f1 == pytest.approx(f1)
    assert score.support == gold


def check_groups(scores: dict[Any, Score], counts: dict[Any, tuple[int, int, int, int]]) -> None:
    for name, own in counts.items():
        check(scores[name], own)
    for name in scores.keys() - counts.keys():
        check(scores[name], (0, 0, 0, 0))


def length_group(number: int) -> str:
    return next(name for least, name in ((10, "10+"), (5, "5-9"), (0, "1-4")) if number >= least)


many = st.lists(cases(), max_size=3)


@given(many)
def test_every_group_equals_the_oracle(case_list: list[Case]) -> None:
    gold, predicted = corpora(case_list)
    report = evaluate(gold, predicted, resamples=0)

    def oracle(group: Group) -> dict[Any, tuple[int, int, int, int]]:
        return naive_counts(gold, predicted, group)

    check(report.micro, oracle(lambda *_: 0).get(0, (0, 0, 0, 0)))
    check_groups(dict(report.labels), oracle(lambda key, *_: key[1]))
    check_groups(
        {True: report.nested, False: report.flat}, oracle(lambda key, side, _: is_nested(key, side))
    )
    for score, same_label in ((report.nested_same_label, True), (report.nested_other_label, False)):

        def group(key: Key, side: set[Key], _: Document, same: bool = same_label) -> bool:
            return is_nested_with(key, side, same_label=same)

        check(score, oracle(group).get(True, (0, 0, 0, 0)))
    check_groups(dict(report.depths), oracle(lambda key, side, _: depth(key, side)))
    check_groups(dict(report.exact_lengths), oracle(lambda key, _, ours: length(key, ours)))
    check_groups(dict(report.lengths), oracle(lambda key, _, ours: length_group(length(key, ours))))
    labels = oracle(lambda key, *_: key[1])
    assert report.labels.keys() == labels.keys()
    if labels:
        mean = sum(report.labels[label].f1 for label in labels) / len(labels)
        assert report.macro.f1 == pytest.approx(mean)
    assert report.documents == len(gold)
    assert report.sentences == 2 * len(gold)


@given(many)
def test_boundary_and_labelling_equal_the_oracle(case_list: list[Case]) -> None:
    gold, predicted = corpora(case_list)
    report = evaluate(gold, predicted, resamples=0)
    spans, labels = Counter[str](), Counter[str]()
    for ours, theirs in zip(gold, predicted, strict=True):
        wanted, predicted_keys = Naive(ours).keys, Naive(theirs).keys
        wanted_spans, predicted_spans = (
            {key[0] for key in wanted},
            {key[0] for key in predicted_keys},
        )
        spans["gold"] += len(wanted_spans)
        spans["predicted"] += len(predicted_spans)
        spans["correct"] += len(wanted_spans & predicted_spans)
        labels["gold"] += sum(key[0] in predicted_spans for key in wanted)
        labels["predicted"] += sum(key[0] in wanted_spans for key in predicted_keys)
        labels["correct"] += len(wanted & predicted_keys)
    for score, own in ((report.boundary, spans), (report.labelling, labels)):
        check(score, (own["correct"], own["predicted"], own["correct"], own["gold"]))


def naive_cause(key: Key, others: set[Key], gold: Document, otherwise: str) -> str:
    def borders(one: Key) -> tuple[int, int]:
        own = envelope(one)
        words = words_of(gold)
        return sum(w.end <= own.start for w in words), sum(w.start < own.end for w in words)

    if any(other[0] == key[0] for other in others):
        return "label"
    for other in others:
        (a, b), (c, d) = borders(key), borders(other)
        if other[1] == key[1] and abs(a - c) <= 1 and abs(b - d) <= 1:
            return "boundary"
    crossed = any(envelope(key).crosses(envelope(other)) for other in others)
    return "crossing" if crossed else otherwise


@given(many)
def test_every_error_has_the_cause_that_the_oracle_finds(case_list: list[Case]) -> None:
    gold, predicted = corpora(case_list)
    report = evaluate(gold, predicted, resamples=0)
    wrong, lost = Counter[str](), Counter[str]()
    confusion: Counter[tuple[str, str]] = Counter()
    for ours, theirs in zip(gold, predicted, strict=True):
        wanted, predicted_keys = Naive(ours).keys, Naive(theirs).keys
        wrong.update(naive_cause(key, wanted, ours, "spurious") for key in predicted_keys - wanted)
        lost.update(
            naive_cause(key, predicted_keys, ours, "missed") for key in wanted - predicted_keys
        )
        confusion.update(
            (right[1], false[1])
            for right in wanted - predicted_keys
            for false in predicted_keys - wanted
            if right[0] == false[0]
        )
    assert +Counter(report.errors.false_positives) == wrong
    assert +Counter(report.errors.false_negatives) == lost
    assert report.errors.confusion == confusion
    assert wrong.total() == report.micro.predicted - report.micro.correct
    assert lost.total() == report.micro.gold - report.micro.correct
    for example in report.errors.examples:
        both = example.gold is not None and example.predicted is not None
        assert both is (example.cause not in {"spurious", "missed"})


def without_examples(report: Report) -> dict[str, Any]:
    plain = report.to_json()
    del plain["errors"]["examples"]  # the first ones in the order of the documents
    return plain


@given(many, st.randoms(use_true_random=False))
def test_neither_the_order_of_documents_nor_of_entities_matters(
    case_list: list[Case], rng: random.Random
) -> None:
    gold, predicted = corpora(case_list, ids=True)
    first = without_examples(evaluate(gold, predicted, resamples=20))
    for documents in (gold, predicted):
        rng.shuffle(documents)
        for number, document in enumerate(documents):
            entities = list(document.entities)
            rng.shuffle(entities)
            documents[number] = replace(document, entities=tuple(entities))
    assert without_examples(evaluate(gold, predicted, resamples=20)) == first


@given(many)
def test_a_corpus_has_a_perfect_score_against_itself(case_list: list[Case]) -> None:
    gold, _ = corpora(case_list)
    report = evaluate(gold, gold, resamples=0)
    expected = 1.0 if any(document.entities for document in gold) else 0.0
    for score in (report.micro, report.macro, report.boundary, report.labelling):
        assert (score.precision, score.recall, score.f1) == (expected,) * 3
    assert report.labelling == report.micro
    assert report.boundary.gold == sum(len({key[0] for key in Naive(one).keys}) for one in gold)
    assert sum(report.errors.false_positives.values()) == 0
    assert sum(report.errors.false_negatives.values()) == 0


@given(cases(), st.integers(0, 8))
def test_one_more_wrong_prediction_never_raises_precision(case: Case, place: int) -> None:
    place %= len(case.words)
    more = Plan(((place, place + 1),), "not a label of gold")
    gold = [laid_out(case.words, case.gold)]
    before = evaluate(gold, [laid_out(case.words, case.predicted)], resamples=0).micro
    after = evaluate(gold, [laid_out(case.words, (*case.predicted, more))], resamples=0).micro
    assert after.precision <= before.precision
    assert (after.recall, after.predicted) == (before.recall, before.predicted + 1)


@given(cases(), st.lists(st.sampled_from(("", " ", "\n", " \u3000")), min_size=9, max_size=9))
def test_spacing_changes_nothing(case: Case, gaps: list[str]) -> None:
    gold = [laid_out(case.words, case.gold)]
    same = evaluate(gold, [laid_out(case.words, case.predicted)], resamples=0)
    spaced = evaluate(gold, [laid_out(case.words, case.predicted, gaps)], resamples=0)
    assert spaced == same


@given(many)
def test_a_system_compared_with_itself_has_no_difference(case_list: list[Case]) -> None:
    gold, predicted = corpora(case_list)
    plain = compare(gold, predicted, predicted, resamples=30).to_json()
    assert plain["delta"] == 0
    if len(gold) > 1:
        assert plain["interval"] == [0, 0]
        assert plain["p_value"] == 1
        assert plain["wins"] == {"a": 0, "b": 0, "ties": 30}
    else:
        assert (plain["interval"], plain["p_value"], plain["wins"]) == (None, None, None)


@given(many)
def test_compare_scores_each_system_as_evaluate_does(case_list: list[Case]) -> None:
    gold, predicted = corpora(case_list)
    found = compare(gold, predicted, gold, resamples=10)
    assert found.a == evaluate(gold, predicted, resamples=0).micro
    assert found.b == evaluate(gold, gold, resamples=0).micro
    assert found.delta == found.b.f1 - found.a.f1 >= 0


@given(many)
def test_statistics_equal_the_oracle(case_list: list[Case]) -> None:
    gold, _ = corpora(case_list)
    found = describe(gold)
    everything = [
        ((entity.spans, entity.label), document)
        for document in gold
        for entity in document.entities
    ]
    distinct = [list(Naive(document).keys) for document in gold]
    pairs = [pair for keys in distinct for pair in combinations(keys, 2)]
    assert found.documents == len(gold)
    assert found.words == sum(len(case.words) for case in case_list)
    assert found.entities == len(everything)
    assert found.labels == Counter(key[1] for key, _ in everything)
    assert found.nested == sum(is_nested(key, Naive(own).keys) for key, own in everything)
    assert found.depths == Counter(depth(key, Naive(own).keys) for key, own in everything)
    assert found.exact_lengths == Counter(length(key, own) for key, own in everything)
    assert +Counter(found.lengths) == Counter(
        length_group(length(key, own)) for key, own in everything
    )
    assert found.duplicates == len(everything) - sum(map(len, distinct))
    assert found.same_span_pairs == sum(a[0] == b[0] for a, b in pairs)
    assert found.crossing_pairs == sum(envelope(a).crosses(envelope(b)) for a, b in pairs)
    assert found.discontinuous == sum(len(key[0]) > 1 for key, _ in everything)
    longest = max((length(key, own) for key, own in everything), default=None)
    assert (found.longest.words if found.longest else None) == longest


# Geometry alone, with more envelopes than a document of the other tests has.

envelopes = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda x: (x[0], x[0] + x[1]))


def span(one: Envelope) -> CharSpan:
    return CharSpan(*one)


@given(st.lists(envelopes, max_size=40), st.lists(envelopes, max_size=40))
def test_crossing_equals_a_comparison_of_all_pairs(
    one: list[Envelope], other: list[Envelope]
) -> None:
    expected = {a for a in one if any(span(a).crosses(span(b)) for b in other)}
    assert crossing(one, other) == expected
    # Small groups as well, because among many spans nearly all cross another one.
    for few in (other[:1], other[:3]):
        expected = {a for a in one if any(span(a).crosses(span(b)) for b in few)}
        assert crossing(one, few) == sweep_for_crossing(one, few) == expected


@given(st.lists(envelopes, max_size=40))
def test_crossing_pairs_equal_a_comparison_of_all_pairs(one: list[Envelope]) -> None:
    expected = sum(span(a).crosses(span(b)) for a, b in combinations(one, 2))
    assert count_crossing_pairs(one) == expected


@given(st.lists(envelopes, max_size=40))
def test_depths_equal_the_longest_chain(one: list[Envelope]) -> None:
    side: set[Key] = {((span(envelope),), "A") for envelope in one}
    expected = {
        (key[0][0].start, key[0][0].end): depth(key, side) for key in side if is_nested(key, side)
    }
    assert nested_depths(sorted(one)) == expected
