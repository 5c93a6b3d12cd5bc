"""Properties of samples: variety, nesting depth and ambiguity."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from types import ModuleType

import pytest

from spandet.errors import UsageError
from spandet.generation import Domain, bio, clinic, generate, news
from spandet.generation.notation import parse
from spandet.text import Document, Entity, Sentence, WordRow, WordSpan
from spandet.text.segmentation import segment

NEWS_LABELS = {"person", "role", "organisation", "place", "facility", "event"}
CLINIC_LABELS = {"symptom", "drug", "procedure"}
BIO_LABELS = {"protein", "gene", "rna", "cell_type", "cell_line", "disease", "chemical"}


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(generate(3000))


@pytest.fixture(scope="module")
def rows(documents: list[Document]) -> list[WordRow]:
    return [row for document in documents for row in document.rows()]


@pytest.fixture(scope="module")
def entities(rows: list[WordRow]) -> list[Entity[WordSpan]]:
    return [entity for row in rows for entity in row.entities]


def test_the_same_seed_gives_the_same_sample_on_every_machine() -> None:
    digest = hashlib.sha256()
    for document in generate(40, seed=7):
        digest.update(f"{document.id}\n{document.text}\n".encode())
        for sentence in document.sentences:
            digest.update(f"{sentence.starts} {' '.join(sentence.tags)}\n".encode())
        for entity in document.entities:
            digest.update(f"{entity.span.start}:{entity.span.end} {entity.label}\n".encode())
    assert digest.hexdigest() == "df2e7de7555569d80c951a07993a97d7fdb798c7e4ef1c9d05d15d1a1bfe9a89"


def test_the_clinic_is_the_same_on_every_machine() -> None:
    digest = hashlib.sha256()
    for document in generate(40, seed=7, domain="clinic"):
        digest.update(f"{document.id}\n{document.text}\n".encode())
        for entity in document.entities:
            pieces = " ".join(f"{piece.start}:{piece.end}" for piece in entity.spans)
            digest.update(f"{pieces} {entity.label}\n".encode())
    assert digest.hexdigest() == "02fac959b29211a33066258ec25d2494ef4da3237182417a8d0d75f37f0836b0"


def test_half_of_the_symptoms_are_discontinuous_and_some_fragments_are_shared() -> None:
    found: Counter[int] = Counter()
    shared = nested = 0
    for document in generate(1000, domain="clinic"):
        for row in document.rows():
            pieces = [(piece, e.label) for e in row.entities for piece in e.fragments]
            shared += len(set(pieces)) < len(pieces)
            whole = [e.span for e in row.entities if not e.fragments]
            nested += any(span.contains(piece) for span in whole for piece, _ in pieces)
            found.update(len(e.spans) for e in row.entities if e.label == "symptom")
    assert 0.3 < found[1] / found.total() < 0.7
    assert found[3] > 10
    assert set(found) == {1, 2, 3}
    assert shared > 30
    assert nested > 100


FORMS = {
    r"(?<!the )\b(left|right) and (left|right) (\w+ \w+)": ["{0} … {2}", "{1} {2}"],
    r"the (\w+) and the (\w+) were (\w+) and (\w+)": [
        "{0} … {2}",
        "{0} … {3}",
        "{1} … {2}",
        "{1} … {3}",
    ],
    r"felt in the (left|right) and (left|right) (\w+)": ["{0} … {2}", "… {1} {2}"],
}


@pytest.mark.parametrize("pattern", FORMS)
def test_fragments_follow_from_the_words(pattern: str) -> None:
    """Parse the most frequent forms with a pattern, and compare."""
    seen = 0
    for document in generate(500, domain="clinic"):
        texts = [document.text_of(entity).lower() for entity in document.entities]
        for match in re.finditer(pattern, document.text.lower()):
            seen += 1
            for form in FORMS[pattern]:
                words = form.format(*match.groups())
                assert any(text.endswith(words) for text in texts), (words, texts)
    assert seen > 5


def test_another_seed_gives_other_documents() -> None:
    one, other = next(generate(5, seed=1)), next(generate(5, seed=-1))
    assert one.id == other.id == "news-0001"
    assert one.text != other.text


def test_both_domains_take_turns(documents: list[Document]) -> None:
    assert [document.id for document in documents[:4]] == [
        "news-0001",
        "bio-0001",
        "news-0002",
        "bio-0002",
    ]


@pytest.mark.parametrize(
    ("domain", "labels"), [("news", NEWS_LABELS), ("bio", BIO_LABELS), ("clinic", CLINIC_LABELS)]
)
def test_every_label_of_a_domain_is_common(domain: str, labels: set[str]) -> None:
    counts = Counter(
        entity.label for doc in generate(600, domain=domain) for entity in doc.entities
    )
    assert set(counts) == labels
    assert min(counts.values()) > 0.02 * counts.total()


def test_no_sentences_is_no_documents() -> None:
    assert list(generate(0)) == []


def test_a_negative_number_of_sentences_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="number of sentences must be 0 or more, not -1"):
        generate(-1)


def test_an_unknown_domain_is_a_mistake() -> None:
    with pytest.raises(
        UsageError, match="domain must be one of news, bio, both, clinic, not 'law'"
    ):
        generate(1, domain="law")


def test_a_domain_is_its_name() -> None:
    assert list(generate(9, domain=Domain.BIO)) == list(generate(9, domain="bio"))


def test_entities_are_1_to_30_words_long_and_mostly_short(entities: list[Entity[WordSpan]]) -> None:
    lengths = [len(entity.span) for entity in entities]
    assert min(lengths) == 1
    assert max(lengths) == 30
    assert 0.80 < _share(length <= 4 for length in lengths) < 0.92
    assert 0.05 < _share(5 <= length <= 9 for length in lengths) < 0.12
    assert 0.015 < _share(length >= 10 for length in lengths) < 0.035


def test_entities_nest_up_to_four_levels(rows: list[WordRow]) -> None:
    depths = Counter(depth for row in rows for depth in _depths(row))
    assert set(depths) == {1, 2, 3, 4}
    assert depths[4] > 30


def test_a_third_to_a_half_of_the_entities_is_nested(rows: list[WordRow]) -> None:
    nested = [
        any(_nest(entity.span, other.span) for other in row.entities)
        for row in rows
        for entity in row.entities
    ]
    assert 0.3 < _share(nested) < 0.5


def test_some_spans_have_two_labels(rows: list[WordRow]) -> None:
    pairs: Counter[frozenset[str]] = Counter()
    for row in rows:
        labels: dict[WordSpan, set[str]] = defaultdict(set)
        for entity in row.entities:
            labels[entity.span].add(entity.label)
        pairs.update(frozenset(some) for some in labels.values() if len(some) > 1)
    assert {" ".join(sorted(pair)) for pair in pairs} == {
        "chemical protein",
        "facility organisation",
        "gene rna",
        "person role",
    }
    assert min(pairs.values()) > 10


def test_some_sentences_have_no_entity(rows: list[WordRow]) -> None:
    assert 0.04 < _share(not row.entities for row in rows) < 0.15


def test_sentences_hardly_repeat(rows: list[WordRow]) -> None:
    counts = Counter(" ".join(row.words) for row in rows)
    assert max(counts.values()) < 10
    assert len(counts) > 0.97 * len(rows)


def test_the_same_name_means_different_things(documents: list[Document]) -> None:
    labels: dict[str, set[str]] = defaultdict(set)
    for document in documents:
        for entity in document.entities:
            labels[document.text_of(entity)].add(entity.label)
    assert sum({"person", "place"} <= some for some in labels.values()) > 10
    assert sum({"organisation", "place"} <= some for some in labels.values()) > 10
    assert sum({"protein", "gene"} <= some for some in labels.values()) > 10


def test_a_fresh_sample_has_unseen_names(documents: list[Document]) -> None:
    seen = {document.text_of(entity) for document in documents for entity in document.entities}
    unseen = [
        document.text_of(entity) not in seen
        for document in generate(500, seed=1)
        for entity in document.entities
    ]
    assert 0.4 < _share(unseen) < 0.9


def test_documents_repeat_their_first_entities(documents: list[Document]) -> None:
    assert _share(map(_comes_back, documents)) > 0.8


def test_words_outside_entities_have_capitals_and_digits(rows: list[WordRow]) -> None:
    outside: Counter[str] = Counter()
    for row in rows:
        inside = {i for entity in row.entities for i in range(entity.span.start, entity.span.end)}
        outside.update(
            tag
            for i, (word, tag) in enumerate(zip(row.words, row.tags, strict=True))
            if i and i not in inside and (word[0].isupper() or word[0].isdigit())
        )
    assert outside["NNP"] > 300
    assert outside["JJ"] > 50
    assert outside["CD"] > 500


def test_our_own_tokeniser_finds_the_same_words(documents: list[Document]) -> None:
    own = {(d.id, *place) for d in documents for s in d.sentences for place in _places(s)}
    found = {(d.id, *place) for d in documents for s in segment(d.text) for place in _places(s)}
    assert len(own & found) > 0.99 * len(own | found)


@pytest.mark.parametrize("source", [news, bio, clinic])
def test_every_rule_of_a_grammar_is_used(source: ModuleType) -> None:
    kinds = ("title", "opening", "body")
    entries = {f"{topic}_{kind}" for topic in source.TOPICS for kind in kinds}
    assert parse(source.GRAMMAR).unused == entries


def _share(found: Iterable[bool]) -> float:
    values = list(found)
    return sum(values) / len(values)


def _depths(row: WordRow) -> list[int]:
    """How many entities of the row contain each of them; two on one span contain each other."""
    spans = [entity.span for entity in row.entities]
    return [sum(other.contains(span) for other in spans) for span in spans]


def _nest(one: WordSpan, other: WordSpan) -> bool:
    return one != other and (one.contains(other) or other.contains(one))


def _comes_back(document: Document) -> bool:
    """Whether a later entity is the short form of an earlier longer one."""
    texts = [document.text_of(entity) for entity in document.entities]
    return any(_is_short(text, old) for i, text in enumerate(texts) for old in texts[:i])


def _is_short(text: str, old: str) -> bool:
    words = old.split()
    initials = "".join(word[0].upper() for word in words)
    return len(words) > 1 and (text.removeprefix("the ") in {*words, initials} or text in old)


def _places(sentence: Sentence) -> Iterator[tuple[str, int]]:
    return zip(sentence.words, sentence.starts, strict=True)
