"""The linker of fragments: scores, losses, and no links before training."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.nn import functional as F

from spandet.detectors.boundary_diffusion.linker import FragmentLinker
from spandet.tensors import GoldSpans, Links, total_loss
from support.sentence_toys import gold_spans, word_features

DIM = 6
SPANS = [(0, 1), (2, 4), (2, 3), (5, 7), (1, 3)]


def linker(*, trained: bool = True) -> FragmentLinker:
    torch.manual_seed(0)
    made = FragmentLinker(dim=DIM, dropout=0.1).eval()
    if trained:
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.normal_(std=0.5)
    return made


def links_of(made: FragmentLinker, *rows: list[tuple[int, int]], lengths: tuple[int, ...]) -> Links:
    with torch.no_grad():
        links: Links = made(word_features(*lengths, dim=DIM), torch.tensor(rows)).links()
    return links


def test_only_fragments_with_a_gap_between_them_are_linked() -> None:
    together = links_of(linker(), SPANS, lengths=(8,)).together[0]
    assert torch.equal(together, together.T)
    for (i, one), (j, other) in product(enumerate(SPANS), repeat=2):
        apart = one[1] < other[0] or other[1] < one[0]
        assert (together[i, j] > 0) == apart, (one, other)


def test_the_score_of_a_pair_does_not_depend_on_others() -> None:
    made = linker()
    together = links_of(made, SPANS, lengths=(8,)).together[0]
    for i, j in product(range(len(SPANS)), repeat=2):
        pair = links_of(made, [SPANS[i], SPANS[j]], lengths=(8,)).together[0, 0, 1]
        torch.testing.assert_close(pair, together[i, j])


def test_padding_and_other_sentences_change_nothing() -> None:
    made = linker()
    alone = links_of(made, SPANS, lengths=(8,))
    batch = links_of(made, [(0, 1)] * len(SPANS), SPANS, lengths=(13, 8))
    torch.testing.assert_close(batch.together[1], alone.together[0])
    torch.testing.assert_close(batch.alone[1], alone.alone[0])


def test_links_depend_on_the_words_in_the_gap() -> None:
    made, words = linker(), word_features(8, dim=DIM)
    features = words.features.clone()
    features[0, 4] += 3
    spans = torch.tensor([SPANS])
    with torch.no_grad():
        one = made(words, spans).links().together[0]
        other = made(replace(words, features=features), spans).links().together[0]
    assert not torch.allclose(one[0, 3], other[0, 3])  # word 4 is between words 0 and 5
    torch.testing.assert_close(one[0, 1], other[0, 1])


def test_before_training_nothing_is_linked_and_every_fragment_is_an_entity_alone() -> None:
    links = links_of(linker(trained=False), SPANS, lengths=(8,))
    assert links.together.max() < 0.1
    assert links.alone.min() > 0.9


def linked_gold() -> GoldSpans:
    """(0, 1) and (5, 7) are one entity, (2, 4) another; pairs of two labels have no target."""
    gold = gold_spans([(0, 1, 1), (5, 7, 1), (2, 4, 1), (2, 3, 2)], [(0, 1, 1)])
    together, alone = torch.zeros(2, 4, 4), torch.zeros(2, 4)
    together[0, 0, 1] = together[0, 1, 0] = 1
    alone[0, 2:] = alone[1, 0] = 1
    return replace(gold, links=Links(together, alone))


def test_losses_equal_those_of_a_loop() -> None:
    made, words, gold = linker(), word_features(8, 3, dim=DIM), linked_gold()
    losses = made.losses(words, gold)
    links = made(words, gold.spans).links()
    pairs = [(0, 1, 1.0), (0, 2, 0.0), (1, 2, 0.0)]
    expected = sum(
        F.binary_cross_entropy(links.together[0, i, j], torch.tensor(target))
        for i, j, target in pairs
    )
    torch.testing.assert_close(losses["link"].total, expected)
    assert losses["link"].count == len(pairs)
    assert gold.links is not None
    mask = gold.mask
    alone = F.binary_cross_entropy(links.alone[mask], gold.links.alone[mask], reduction="sum")
    torch.testing.assert_close(losses["alone"].total, alone)
    assert losses["alone"].count == 5


def test_gold_without_links_has_entities_alone() -> None:
    made, words, gold = linker(), word_features(8, 3, dim=DIM), linked_gold()
    whole = replace(gold, links=Links(torch.zeros(2, 4, 4), torch.ones(2, 4)))
    given = made.losses(words, whole)
    for name, loss in made.losses(words, replace(gold, links=None)).items():
        torch.testing.assert_close(loss.mean, given[name].mean)


def test_it_learns_and_every_parameter_has_a_gradient() -> None:
    made, words, gold = linker(trained=False), word_features(8, 3, dim=DIM), linked_gold()
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    gradients = {name: torch.zeros(()) for name, _ in made.named_parameters()}
    for _ in range(60):
        optimizer.zero_grad()
        total_loss(made.losses(words, gold)).backward()
        for name, parameter in made.named_parameters():
            gradients[name] += (
                torch.zeros(()) if parameter.grad is None else parameter.grad.abs().sum()
            )
        optimizer.step()
    links = made(words, gold.spans).links()
    assert gold.links is not None
    assert torch.equal(links.alone[gold.mask] > 0.5, gold.links.alone[gold.mask] > 0.5)
    assert links.together[0, 0, 1] > 0.5
    assert links.together[0, 0, 2] < 0.5
    assert all(total > 0 for total in gradients.values()), gradients


@pytest.mark.parametrize("rows", [[[]], [[], []]])
def test_sentences_without_entities(rows: list[list[tuple[int, int, int]]]) -> None:
    losses = linker().losses(word_features(*[4] * len(rows), dim=DIM), gold_spans(*rows))
    assert [float(loss.count) for loss in losses.values()] == [0, 0]
    assert total_loss(losses).item() == 0
