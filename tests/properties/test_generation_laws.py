"""Laws of generated documents, for any number of sentences, seed and domain."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spandet.generation import Domain, generate
from spandet.text import Document

samples = st.tuples(
    st.integers(0, 60), st.integers(-(2**70), 2**70), st.sampled_from([str(one) for one in Domain])
)


def sample(sentences: int, seed: int, domain: str) -> list[Document]:
    return list(generate(sentences, seed=seed, domain=domain))


@given(samples)
def test_the_number_of_sentences_is_exact(arguments: tuple[int, int, str]) -> None:
    documents = sample(*arguments)
    assert sum(len(document.sentences) for document in documents) == arguments[0]
    assert all(document.sentences for document in documents)


@given(samples)
def test_the_same_request_gives_the_same_documents(arguments: tuple[int, int, str]) -> None:
    assert sample(*arguments) == sample(*arguments)


@given(samples)
def test_every_word_is_at_its_offset_and_has_a_tag(arguments: tuple[int, int, str]) -> None:
    for document in sample(*arguments):
        covered = 0
        for sentence in document.sentences:
            assert len(sentence.tags) == len(sentence.words)
            assert all(sentence.tags)
            for word, start in zip(sentence.words, sentence.starts, strict=True):
                assert document.text[start : start + len(word)] == word
                assert document.text[covered:start].strip() == ""
                covered = start + len(word)
        assert covered == len(document.text)


@given(samples)
def test_entities_are_whole_words_of_one_sentence_short_shallow_and_never_cross(
    arguments: tuple[int, int, str],
) -> None:
    for document in sample(*arguments):
        for row in document.rows():  # an entity that cuts a word or leaves its sentence is an error
            assert len({(e.spans, e.label) for e in row.entities}) == len(row.entities)
            spans = [entity.span for entity in row.entities if not entity.fragments]
            assert all(len(span) <= 30 for span in spans)
            assert all(sum(other.contains(span) for other in spans) <= 4 for span in spans)
            assert not any(one.crosses(other) for one, other in combinations(spans, 2))


@given(samples)
def test_only_clinical_entities_have_fragments_with_gaps(arguments: tuple[int, int, str]) -> None:
    for document in sample(*arguments):
        in_words = [entity for row in document.rows() for entity in row.entities]
        for entity, counted in zip(document.entities, in_words, strict=True):
            assert len(entity.spans) == len(counted.spans)  # a gap is never only white space
            assert arguments[2] == "clinic" or not entity.fragments
            for piece in entity.spans:
                words = document.text[piece.start : piece.end]
                assert words == words.strip() != ""


@given(samples, st.integers(0, 30))
def test_a_larger_sample_begins_with_the_smaller(
    arguments: tuple[int, int, str], more: int
) -> None:
    sentences, seed, domain = arguments
    short = sample(sentences, seed, domain)
    long = sample(sentences + more, seed, domain)
    assert len(short) <= len(long)
    for cut, whole in zip(short, long, strict=False):
        last = cut is short[-1]  # only that one may have been cut
        assert cut.id == whole.id
        assert whole.text.startswith(cut.text)
        assert whole.sentences[: len(cut.sentences)] == cut.sentences
        assert whole.entities[: len(cut.entities)] == cut.entities
        assert last or cut == whole


@given(st.integers(0, 2**32))
def test_the_domain_both_joins_the_two_domains(seed: int) -> None:
    together = sample(60, seed, "both")[:-1]  # the last one may be cut
    for domain in ("news", "bio"):
        ours = [document for document in together if (document.id or "").startswith(domain)]
        assert ours == sample(60, seed, domain)[: len(ours)]
