"""Random documents for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan

LABELS = st.sampled_from(["protein", "DNA", "cell type", "Ünïcode", "PER.NAM"])
WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8
).filter(lambda word: not any(c.isspace() for c in word))
SCORES = st.none() | st.floats(0, 1, allow_subnormal=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
IDS = st.text("abcXYZ0123456789-_.", min_size=1, max_size=8)
OPTIONAL_IDS = st.none() | IDS
JSON = st.dictionaries(
    st.sampled_from(["source", "year", "note"]), st.none() | st.integers(0, 9999) | TEXT
)


@st.composite
def char_spans(draw: st.DrawFn, length: int) -> CharSpan:
    """Any span of a text with `length` > 0 characters."""
    start = draw(st.integers(0, length - 1))
    return CharSpan(start, draw(st.integers(start + 1, length)))


@st.composite
def raw_documents(
    draw: st.DrawFn,
    *,
    text: st.SearchStrategy[str] = TEXT,
    scores: st.SearchStrategy[float | None] = SCORES,
    discontinuous: bool = True,
    ids: st.SearchStrategy[str | None] = OPTIONAL_IDS,
    metadata: st.SearchStrategy[dict[str, Any]] = JSON,
) -> Document:
    """A raw text with entities anywhere: nested, crossing, repeated, inside words."""
    body = draw(text)
    entities = []
    for _ in range(draw(st.integers(0, 5)) if body else 0):
        fragments = draw(
            st.lists(char_spans(len(body)), min_size=1, max_size=3 if discontinuous else 1)
        )
        entities.append(Entity.from_fragments(fragments, draw(LABELS), draw(scores)))
    return Document(body, tuple(entities), draw(ids), draw(metadata))


@st.composite
def word_rows(
    draw: st.DrawFn,
    *,
    words: st.SearchStrategy[str] = WORDS,
    labels: st.SearchStrategy[str] = LABELS,
    scores: st.SearchStrategy[float | None] = SCORES,
    min_words: int = 0,
) -> WordRow:
    """A pre-tokenised sentence with entities anywhere: nested, crossing, repeated."""
    own = draw(st.lists(words, min_size=min_words, max_size=8))
    entities = []
    for _ in range(draw(st.integers(0, 4)) if own else 0):
        start = draw(st.integers(0, len(own) - 1))
        span = WordSpan(start, draw(st.integers(start + 1, len(own))))
        entities.append(Entity(span, draw(labels), draw(scores)))
    tags = draw(st.just(()) | st.tuples(*[st.sampled_from(["NN", "VB", "DT"])] * len(own)))
    return WordRow(tuple(own), tuple(entities), tags)


@st.composite
def worded_documents(
    draw: st.DrawFn,
    *,
    rows: st.SearchStrategy[WordRow] | None = None,
    ids: st.SearchStrategy[str | None] = OPTIONAL_IDS,
    max_sentences: int = 3,
) -> Document:
    """A pre-tokenised document of one sentence or more."""
    own = draw(st.lists(word_rows() if rows is None else rows, min_size=1, max_size=max_sentences))
    return Document.from_rows(own, id=draw(ids))
