"""The notation of grammars, and its error messages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from spandet.generation.grammar import Draft, Memory, Phrase
from spandet.generation.notation import parse


def written(text: str, rule: str = "start", *, times: int = 1, seed: int = 0) -> Iterator[Phrase]:
    """The phrases of a rule, written several times in one document."""
    grammar = parse(text)
    rng = random.Random(seed).random
    memory = Memory()
    for _ in range(times):
        draft = Draft(rng, memory)
        grammar.rules[rule](draft)
        yield draft.phrase()


def test_labels_nest_and_share_spans() -> None:
    text = "start = | <a+b the <c x/NN> y/NN> ."
    (phrase,) = written(text)
    assert phrase.words == ("the", "x", "y", ".")
    assert phrase.marks == ((1, 2, "c", ()), (0, 3, "a", ()), (0, 3, "b", ()))


def test_fragments_with_the_same_letter_are_one_entity() -> None:
    (phrase,) = written("start = | <a:x A> of <a B <a:x C>> or <a:y D> , <b:x E> <a:y F> <b:x G>")
    assert phrase.words == ("A", "of", "B", "C", "or", "D", ",", "E", "F", "G")
    assert phrase.marks == (
        (2, 4, "a", ()),
        (0, 4, "a", ((0, 1), (3, 4))),
        (5, 9, "a", ((5, 6), (8, 9))),
        (7, 10, "b", ((7, 8), (9, 10))),
    )


def test_a_fragment_belongs_to_one_entity_per_letter() -> None:
    (phrase,) = written("start = | <a:xy A> is <a:x B> or <a:y C>")
    assert phrase.marks == ((0, 3, "a", ((0, 1), (2, 3))), (0, 5, "a", ((0, 1), (4, 5))))


def test_letters_belong_to_their_alternative() -> None:
    text = "start = | <a:x A> {inner} {inner@key} <a:x B>\ninner = | <a:x C> or <a:x D>"
    (phrase,) = written(text)
    assert sorted(phrase.marks) == [
        (0, 8, "a", ((0, 1), (7, 8))),
        (1, 4, "a", ((1, 2), (3, 4))),
        (4, 7, "a", ((4, 5), (6, 7))),
    ]


def test_tags_come_from_the_word_its_line_its_list_or_its_shape() -> None:
    words = "tag VBD = ran\nday/NNP = Monday\np- = y\n"
    text = words + "start = | the visit/NN ran on {day} 7 London x{p-}/JJ ."
    (phrase,) = written(text)
    assert phrase.words == ("the", "visit", "ran", "on", "Monday", "7", "London", "xy", ".")
    assert phrase.tags == ("DT", "NN", "VBD", "IN", "NNP", "CD", "NNP", "JJ", ".")


def test_tag_lines_add_up() -> None:
    (phrase,) = written("tag NN = a1\ntag NN = b1\nstart = | a1 b1")
    assert phrase.tags == ("NN", "NN")


def test_a_number_is_a_weight_and_nothing_is_an_alternative() -> None:
    text = "start =\n    |3 A\n    | B\n    |0 C\n    |4\n"
    counts = Counter(" ".join(phrase.words) for phrase in written(text, times=8000))
    assert set(counts) == {"A", "B", ""}
    assert counts["A"] / 8000 == pytest.approx(3 / 8, abs=0.03)
    assert counts["B"] / 8000 == pytest.approx(1 / 8, abs=0.03)


def test_lines_continue_and_comments_are_ignored() -> None:
    (phrase,) = written(
        "# first\nstart =\n    | A B\n        C\n# in between\n\n# last\nother = | D\n"
    )
    assert phrase.words == ("A", "B", "C")


def test_a_key_is_remembered_with_its_labels_and_another_key_is_independent() -> None:
    name = "n- = 1 2 3 4 5 6 7 8 9\nname = | <p N{n-}{n-}{n-}/NN>\n"
    text = name + "start = | x/NN {name@one} {name@two}"
    first, second = written(text, times=2)
    assert first == second
    assert first.marks == ((1, 2, "p", ()), (2, 3, "p", ()))
    assert first.words[1] != first.words[2]


def test_initials_of_a_remembered_phrase() -> None:
    text = "name = | National {kind} Party\nkind/NNP = Reform Labour\nstart = | {^name@a} {name@a}"
    for seed in range(5):
        (phrase,) = written(text, seed=seed)
        short, *words = phrase.words
        assert short == "".join(word[0] for word in words)
        assert phrase.tags[0] == "NNP"


def test_a_starred_rule_uses_all_alternatives_before_it_repeats_one() -> None:
    text = "start* =\n    | A\n    | B\n    | C\n"
    for seed in range(5):
        assert {phrase.words for phrase in written(text, times=3, seed=seed)} == {
            ("A",),
            ("B",),
            ("C",),
        }
        assert len(list(written(text, times=9, seed=seed))) == 9


def test_rules_may_mention_each_other() -> None:
    text = "start =\n    | ( {start} )\n    |2 x/NN\n"
    for phrase in written(text, times=50):
        assert phrase.words.count("(") == phrase.words.count(")")


def test_unused_rules_of_a_grammar_are_listed() -> None:
    grammar = parse("start = | {used}\nused/NN = {part-}\npart- = x\nidle- = y\nlazy = | A")
    assert grammar.unused == {"start", "idle-", "lazy"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start = | {nothing}", r"rule 'start': 'nothing' is not defined"),
        ("start = | {no-}x/NN", r"rule 'start': 'no-' is not defined"),
        ("start = | word", r"rule 'start': the word 'word' has no tag"),
        ("start = | <a x/NN", r"rule 'start': <a is not closed"),
        ("start = | x/NN >", r"rule 'start': a > without an open bracket"),
        ("start = | <a:x A> <a:y B> <a:x C>", r"rule 'start': <a:y is a single fragment"),
        ("start = x/NN", r"rule 'start': the bar is missing before 'x/NN'"),
        ("start =", r"rule 'start': the bar is missing before ''"),
        (
            "start = | {a}{b}/NN",
            r"rule 'start': '\{a\}\{b\}' is not made of letters and \{parts-\}",
        ),
        ("start | A", r"'start | A' is not a definition"),
        ("start = | A\nstart = | B", r"rule 'start' is defined twice"),
    ],
)
def test_mistakes_in_a_grammar_are_errors_with_their_names(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        parse(text)
