"""Distributions over all spans: the fast computation equals a list of all spans."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spandet.detectors.proposer_regressor import head
from spandet.detectors.proposer_regressor.head import SpanPointer, SpanScores
from support.sentence_toys import word_features

DIM = 6


def pointer(*, tied: bool = False, max_width: int | None = None, seed: int = 0) -> SpanPointer:
    torch.manual_seed(seed)
    made = SpanPointer(dim=DIM, tied=tied, max_width=max_width)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)
    return made


def inputs(*lengths: int, width: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries (one per word), places, words, lengths."""
    words = word_features(*lengths, dim=DIM, width=width)
    torch.manual_seed(7)
    queries = torch.randn(*words.mask.shape, DIM)
    places = torch.arange(words.mask.shape[1])[:, None] + torch.tensor([-0.4, 1.7])
    return queries, places.expand(len(lengths), -1, -1).clone(), words.features, words.lengths


def listed(length: int, max_width: int | None) -> list[tuple[int, int]]:
    pairs = itertools.combinations(range(length + 1), 2)
    return [(s, e) for s, e in pairs if e - s <= (max_width or length)]


def by_the_book(
    made: SpanPointer, query: Tensor, place: Tensor, words: Tensor, span: tuple[int, int]
) -> Tensor:
    """Eq. 22 for one span: two scaled dot products and the Gaussian's quadratic form."""
    answers = made.ask if made.answer is None else made.answer
    asks = made.ask(query).view(2, DIM)
    first, last = answers(words[span[0]]).view(2, DIM)[0], answers(words[span[1] - 1])[DIM:]
    values = made.locator.net(query)
    root = values[2:].view(2, 2)
    away = torch.tensor(span) - (place + values[:2])
    form = root @ root.T + 1e-4 * torch.eye(2)
    score: Tensor = (asks[0] @ first + asks[1] @ last) / DIM**0.5 - away @ form @ away
    return score


@pytest.mark.parametrize("tied", [False, True])
def test_scores_equal_the_equations(tied: bool) -> None:
    made = pointer(tied=tied)
    queries, places, words, lengths = inputs(5, 3)
    scores = made(queries, places, words, lengths)
    assert (made.answer is None) == tied
    for row, length in enumerate((5, 3)):
        spans = listed(length, None)
        got = scores.at(torch.tensor(spans).expand(2, 5, -1, -1))[row]
        for number in range(length):
            wanted = [
                by_the_book(made, queries[row, number], places[row, number], words[row], span)
                for span in spans
            ]
            torch.testing.assert_close(got[number], torch.stack(wanted), atol=1e-4, rtol=1e-4)


def flat_scores(lengths: list[int], max_width: int | None, seed: int) -> SpanScores:
    made = pointer(max_width=max_width, seed=seed)
    queries, places, words, counts = inputs(*lengths)
    scores: SpanScores = made(queries, places, words, counts)
    return scores.where(torch.arange(words.shape[1]) < counts[:, None])


def check(scores: SpanScores, lengths: list[int], max_width: int | None, count: int) -> None:
    """Totals and best spans of every proposal against a list of all spans."""
    totals = scores.log_totals()
    spans, log_probs = scores.best(count)
    owners = [length for length in lengths for _ in range(length)]
    assert len(totals) == len(spans) == len(owners)
    for number, length in enumerate(owners):
        every = torch.tensor(listed(length, max_width))
        one = scores.where(torch.arange(len(owners)) == number)
        values = one.at(every[None])[0]
        torch.testing.assert_close(totals[number], values.logsumexp(dim=0), atol=1e-4, rtol=1e-4)
        real = log_probs[number] > -torch.inf
        assert int(real.sum()) == min(count, len(every))
        order = values.sort(descending=True, stable=True)
        torch.testing.assert_close(
            log_probs[number][real],
            values.log_softmax(dim=0)[order.indices[:count]],
            atol=1e-4,
            rtol=1e-4,
        )
        assert spans[number][real].tolist() == every[order.indices[:count]].tolist()


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=3).filter(any),
    st.sampled_from([None, 1, 2, 3, 9]),
    st.integers(1, 4),
    st.integers(0, 50),
)
@settings(max_examples=30)
def test_totals_and_best_spans_equal_a_list_of_all_spans(
    lengths: list[int], max_width: int | None, count: int, seed: int
) -> None:
    check(flat_scores(lengths, max_width, seed), lengths, max_width, count)


@pytest.mark.parametrize("cells", [1, 20, 64])
def test_results_do_not_depend_on_the_size_of_chunks(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = flat_scores([7, 3, 5], 4, seed=1)
    totals, (spans, log_probs) = scores.log_totals(), scores.best(3)
    monkeypatch.setattr(head, "_CHUNK_CELLS", cells)
    assert len(list(scores._bands())) > 1
    torch.testing.assert_close(scores.log_totals(), totals)
    assert torch.equal(scores.best(3)[0], spans)
    torch.testing.assert_close(scores.best(3)[1], log_probs)


def test_spans_never_exceed_the_sentence() -> None:
    made = pointer(max_width=3)
    alone, padded = inputs(4), inputs(4, width=9)
    changed = padded[2].clone()
    changed[0, 4:] = 50.0  # a high score in the padding, which must be ignored
    mask = torch.arange(9) < 4
    before = made(*alone).where(torch.ones(1, 4, dtype=torch.bool))
    longer = (torch.zeros(1, 9, DIM), torch.zeros(1, 9, 2))
    for own, given_ in zip(longer, alone[:2], strict=True):
        own[:, :4] = given_
    after = made(*longer, changed, padded[3]).where(mask[None])
    torch.testing.assert_close(after.log_totals(), before.log_totals())
    assert torch.equal(after.best(2)[0], before.best(2)[0])


def test_no_proposals_and_no_words() -> None:
    scores = flat_scores([3], None, seed=0)
    empty = scores.where(torch.zeros(3, dtype=torch.bool))
    assert empty.log_totals().shape == (0,)
    assert empty.best(2)[0].shape[::2] == (0, 2)
    without = pointer()(*inputs(0)).where(torch.zeros(1, 0, dtype=torch.bool))
    assert without.log_totals().shape == (0,)
    assert without.best(1)[0].shape == (0, 1, 2)


def test_totals_have_the_gradient_of_a_softmax() -> None:
    made = pointer(max_width=2)
    queries, places, words, lengths = inputs(3)
    leaf = queries.clone().requires_grad_()
    scores = made(leaf, places, words, lengths).where(torch.tensor([[True, False, True]]))
    spans = torch.tensor(listed(3, 2))
    (fast,) = torch.autograd.grad(scores.log_totals().sum(), leaf, retain_graph=True)
    every = scores.at(spans.expand(2, -1, -1)).logsumexp(dim=1)
    (slow,) = torch.autograd.grad(every.sum(), leaf)
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-4)
    assert not fast[0, 1].any()
