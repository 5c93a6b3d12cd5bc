"""Gold as tensors: discontinuous entities as linked fragments, others as one span."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from spandet.text import Entity, WordRow, WordSpan
from spandet.training.batches import gold_spans

LABELS = ["x", "y"]


def pieces(label: str, *spans: tuple[int, int]) -> Entity[WordSpan]:
    return Entity.from_fragments([WordSpan(*span) for span in spans], label)


def entities(*, gaps: bool) -> st.SearchStrategy[Entity[WordSpan]]:
    borders = st.lists(st.integers(0, 12), min_size=2, max_size=6, unique=True).map(sorted)
    spans = borders.map(lambda b: list(zip(b[::2], b[1::2], strict=False)))
    label = st.sampled_from([*LABELS, "unknown"])
    return st.builds(lambda own, name: pieces(name, *(own if gaps else own[:1])), spans, label)


def rows(*, gaps: bool) -> st.SearchStrategy[list[WordRow]]:
    row = st.lists(entities(gaps=gaps), max_size=5).map(lambda own: WordRow(["w"] * 12, own))
    return st.lists(row, max_size=3)


@given(rows(gaps=False))
def test_contiguous_entities_are_the_same_with_and_without_fragments(found: list[WordRow]) -> None:
    usual, linked = gold_spans(found, LABELS), gold_spans(found, LABELS, fragments=True)
    assert usual.links is None
    assert linked.links is not None
    assert torch.equal(usual.spans, linked.spans)
    assert torch.equal(usual.labels, linked.labels)
    assert torch.equal(usual.mask, linked.mask)
    assert linked.links.together.sum() == 0
    assert torch.equal(linked.links.alone, linked.mask.float())


@given(rows(gaps=True))
def test_only_fragments_of_one_entity_are_linked(found: list[WordRow]) -> None:
    gold = gold_spans(found, LABELS, fragments=True)
    assert gold.links is not None
    assert torch.equal(gold.links.together, gold.links.together.transpose(1, 2))
    for i, row in enumerate(found):
        known = [entity for entity in row.entities if entity.label in LABELS]
        items = [
            (WordSpan(start, end), LABELS[label - 1])
            for (start, end), label in zip(
                gold.spans[i, gold.mask[i]].tolist(),
                gold.labels[i, gold.mask[i]].tolist(),
                strict=True,
            )
        ]
        assert set(items) == {(piece, e.label) for e in known for piece in e.spans}
        for a, (one, label) in enumerate(items):
            whole = any(e.spans == (one,) and e.label == label for e in known)
            assert gold.links.alone[i, a] == whole
            for b, (other, same) in enumerate(items):
                linked = one != other and any(
                    e.label == label == same and {one, other} <= set(e.fragments) for e in known
                )
                assert gold.links.together[i, a, b] == linked


def test_an_entity_that_is_given_twice_is_not_linked_to_itself() -> None:
    whole = pieces("x", (0, 1))
    gold = gold_spans(
        [WordRow(["w"] * 3, [whole, whole, pieces("x", (0, 1), (2, 3))])], LABELS, fragments=True
    )
    assert gold.links is not None
    assert gold.links.together.tolist() == [[[0, 0, 1], [0, 0, 1], [1, 1, 0]]]


def test_a_shared_fragment_is_listed_once() -> None:
    row = WordRow(
        ["left", "and", "right", "knee", "pain"],
        [pieces("x", (0, 1), (3, 5)), pieces("x", (2, 5)), pieces("y", (0, 1), (3, 5))],
    )
    gold = gold_spans([row], LABELS, fragments=True)
    assert gold.spans.tolist() == [[[2, 5], [0, 1], [3, 5], [0, 1], [3, 5]]]
    assert gold.labels.tolist() == [[1, 1, 1, 2, 2]]
    assert gold.links is not None
    assert gold.links.alone.tolist() == [[1, 0, 0, 0, 0]]
    assert gold.links.together[0].nonzero().tolist() == [[1, 2], [2, 1], [3, 4], [4, 3]]


def test_padding_is_the_first_word_without_a_label() -> None:
    found = [WordRow(["w"] * 4, [pieces("y", (1, 3)), pieces("x", (3, 4))]), WordRow(["w"], [])]
    for fragments in (False, True):
        gold = gold_spans(found, LABELS, fragments=fragments)
        assert gold.spans.tolist() == [[[1, 3], [3, 4]], [[0, 1], [0, 1]]]
        assert gold.labels.tolist() == [[2, 1], [0, 0]]
        assert gold.mask.tolist() == [[True, True], [False, False]]
        assert gold.counts.tolist() == [2, 0]


def test_without_fragments_a_span_includes_the_gap() -> None:
    gold = gold_spans([WordRow(["w"] * 6, [pieces("x", (0, 1), (4, 6))])], LABELS)
    assert (gold.spans.tolist(), gold.links) == ([[[0, 6]]], None)


def test_no_sentences_and_no_entities() -> None:
    for rows_, shape in (([], (0, 0, 2)), ([WordRow(["w"], [])] * 2, (2, 0, 2))):
        gold = gold_spans(rows_, LABELS, fragments=True)
        assert gold.spans.shape == shape
        assert gold.links is not None
        assert gold.links.together.shape == (shape[0], 0, 0)
