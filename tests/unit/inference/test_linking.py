"""Linking: cliques compared with all subsets, and laws of linked entities."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet import generate
from spandet.inference.candidates import Candidates, LinkProbs
from spandet.inference.decoding import DecodingSettings, decode
from spandet.inference.engine import to_numpy
from spandet.inference.linking import DecodedEntity, assemble, maximal_cliques
from spandet.tensors import SpanPredictions
from spandet.text import Entity, WordSpan
from spandet.training.batches import gold_spans

Graph = dict[int, set[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(0, 8))
    pairs = list(combinations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph: Graph = {}
    for one, other in edges:
        graph.setdefault(one, set()).add(other)
        graph.setdefault(other, set()).add(one)
    return graph


def brute_force(graph: Graph) -> set[frozenset[int]]:
    """All subsets that are cliques, except those that another one contains."""
    cliques = [
        frozenset(some)
        for size in range(2, len(graph) + 1)
        for some in combinations(graph, size)
        if all(other in graph[one] for one, other in combinations(some, 2))
    ]
    return {clique for clique in cliques if not any(clique < other for other in cliques)}


@given(graphs())
@settings(max_examples=50)
def test_cliques_equal_brute_force(graph: Graph) -> None:
    found = list(maximal_cliques(graph))
    assert {frozenset(clique) for clique in found} == brute_force(graph)
    assert len(found) == len(brute_force(graph))


def test_a_graph_with_too_many_cliques_ends_early() -> None:
    """Twenty groups of three, each item linked to all other groups: 3^20 cliques."""
    graph = {i: {j for j in range(60) if i // 3 != j // 3} for i in range(60)}
    found = list(maximal_cliques(graph))
    assert 0 < len(found) < 2000
    assert all(len(clique) == 20 for clique in found)
    assert found == list(maximal_cliques(graph))


SEEDS = st.integers(0, 2**32)
COUNT = 6
"""Candidates per sentence."""


def random_candidates(seed: int, sentences: int = 2) -> Candidates:
    """Any spans and probabilities; only fragments with a gap between them are linked."""
    rng = np.random.default_rng(seed)
    shape = (sentences, COUNT)
    starts = rng.integers(0, 9, shape)
    ends = starts + rng.integers(1, 4, shape)
    powers = np.exp(3 * rng.standard_normal((*shape, 3), dtype=np.float32))
    together = np.triu(rng.random((*shape, COUNT), dtype=np.float32), 1)
    apart = ends[:, :, None] < starts[:, None]
    links = (together + together.swapaxes(1, 2)) * (apart | apart.swapaxes(1, 2))
    alone, real = rng.random((2, *shape), dtype=np.float32)
    return Candidates(
        np.stack([starts, ends], axis=-1),
        powers / powers.sum(axis=-1, keepdims=True),
        real > 0.1,
        links=LinkProbs(links, alone),
    )


OPTIONS = st.builds(
    DecodingSettings,
    threshold=st.sampled_from([0.0, 0.4, 0.6]),
    min_odds=st.sampled_from([0.0, 1.0]),
    crossing=st.sampled_from(["keep", "greedy", "both"]),
    nms_decay=st.sampled_from([0.5, 1.0]),
)


def found(given_: Candidates, options: DecodingSettings) -> list[DecodedEntity]:
    result = decode(given_, options)
    rows = zip(
        result.sentence.tolist(),
        result.spans.tolist(),
        result.labels.tolist(),
        result.scores.tolist(),
        result.origin.tolist(),
        strict=True,
    )
    return [DecodedEntity(s, ((a, b),), label, score, (o,)) for s, (a, b), label, score, o in rows]


@given(SEEDS, OPTIONS)
@settings(max_examples=50)
def test_without_links_entities_equal_the_decoded_candidates(
    seed: int, options: DecodingSettings
) -> None:
    given_ = random_candidates(seed)
    assert assemble(replace(given_, links=None), options) == found(given_, options)


@given(SEEDS, OPTIONS)
@settings(max_examples=50)
def test_undecided_links_change_nothing(seed: int, options: DecodingSettings) -> None:
    given_ = random_candidates(seed)
    batch, most = given_.mask.shape
    nothing = LinkProbs(np.full((batch, most, most), 0.5), np.full((batch, most), 0.51))
    assert assemble(replace(given_, links=nothing), options) == found(given_, options)


@given(SEEDS, OPTIONS)
@settings(max_examples=50)
def test_a_threshold_only_removes_entities(seed: int, options: DecodingSettings) -> None:
    given_ = random_candidates(seed)
    everything = assemble(given_, options.model_copy(update={"threshold": 0.0}))
    accepted = [whole for whole in everything if whole.score > options.threshold]
    got = assemble(given_, options)
    # 0.4 and 0.6 are rounded in float32, so scores next to them are left out.
    close = {w for w in everything if abs(w.score - options.threshold) < 1e-6}
    assert set(accepted) ^ set(got) <= close


@given(SEEDS, OPTIONS)
@settings(max_examples=50)
def test_entities_are_cliques_and_single_fragments(seed: int, options: DecodingSettings) -> None:
    given_ = random_candidates(seed)
    options = options.model_copy(update={"threshold": 0.0})
    links = given_.links
    assert links is not None
    fragments = found(given_, options)
    alone = [w for w in fragments if links.alone[w.sentence, w.origins[0]] > 0.5]
    scores = {(w.sentence, w.label, w.spans, w.origins): w.score for w in alone}
    for sentence in range(len(given_.mask)):
        own = {w.origins[0]: w for w in fragments if w.sentence == sentence}
        table = links.together[sentence]
        graph = {
            i: {j for j in own if own[j].label == own[i].label and table[i, j] > 0.5} for i in own
        }
        for clique in brute_force(graph):
            parts = sorted((own[i] for i in clique), key=lambda part: part.spans)
            origins = tuple(part.origins[0] for part in parts)
            link = np.mean([table[i, j] for i, j in combinations(origins, 2)])
            spans = tuple(part.spans[0] for part in parts)
            mean = sum(part.score for part in parts) / len(parts)
            scores[sentence, parts[0].label, spans, origins] = mean * float(link)
    got = assemble(given_, options)
    assert len(got) == len(scores)
    assert {(w.sentence, w.label, w.spans, w.origins): w.score for w in got} == pytest.approx(
        scores
    )
    for whole in got:
        assert 0 < whole.score <= 1
        assert all(a[1] < b[0] for a, b in zip(whole.spans, whole.spans[1:], strict=False))


@given(SEEDS, OPTIONS)
@settings(max_examples=50)
def test_a_sentence_alone_and_in_a_batch_gives_the_same(
    seed: int, options: DecodingSettings
) -> None:
    given_ = random_candidates(seed, sentences=3)
    together = assemble(given_, options)
    assert [whole.sentence for whole in together] == sorted(whole.sentence for whole in together)
    links = given_.links
    assert links is not None
    for i in range(3):
        one = slice(i, i + 1)
        alone = Candidates(
            given_.spans[one],
            given_.label_probs[one],
            given_.mask[one],
            links=LinkProbs(links.together[one], links.alone[one]),
        )
        own = [replace(whole, sentence=0) for whole in together if whole.sentence == i]
        assert assemble(alone, options) == own


def test_entities_to_fragments_and_back() -> None:
    """From entities to fragments and back, on generated sentences."""
    labels = ["symptom", "drug", "procedure"]
    rows = [row for document in generate(300, domain="clinic") for row in document.rows()]
    gold = gold_spans(rows, labels, fragments=True)
    probs = torch.nn.functional.one_hot(gold.labels, 1 + len(labels)).float()
    certain = to_numpy(SpanPredictions(gold.spans, probs, gold.mask, links=gold.links))
    got: list[set[Entity[WordSpan]]] = [set() for _ in rows]
    for whole in assemble(certain, DecodingSettings(crossing="keep")):
        spans = [WordSpan(start, end) for start, end in whole.spans]
        assert whole.score == 1
        got[whole.sentence].add(Entity.from_fragments(spans, labels[whole.label - 1]))
    assert got == [set(row.entities) for row in rows]
    assert sum(bool(entity.fragments) for row in rows for entity in row.entities) > 100
