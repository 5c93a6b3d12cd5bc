"""End-to-End Entity Detection with Proposer and Regressor (Wen et al., 2023), equation by equation.

To be read beside the paper: one sentence, plain loops, float64. `test_proposer_regressor.py`
compares the fast code in `spandet` with it.

Words are counted from 0, and a span (s, e) has both its ends inside, as in the paper. Levels of the
pyramid are counted from 0 as well (the paper's query "h of level 1" is the lowest). Category 0 is
None. An "MLP" is a map, GELU, and another map.

Misprints of the paper are corrected, with a remark: eqs. 6, 12, 14 and 18, and algorithm 2. What
the paper leaves open: the highest level has no level above it, and gets its own features.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import log, sqrt

import numpy as np

from papers.proposer_regressor_parts import (
    Array,
    BackwardWeights,
    BiGru,
    Convolution,
    Distributions,
    ForwardWeights,
    GateWeights,
    HeadWeights,
    Linear,
    Mlp,
    Model,
    Proposal,
    RegressorWeights,
    gate,
    gelu,
    softmax,
)

Entity = tuple[int, int, int]
"""First word s, last word e, category t."""
NONE = 0


# 3.1 Sentence encoder


def token_embedding(h_char: Array, h_bert: Array, h_word: Array, h_pos: Array) -> Array:
    """Eq. 1: the embeddings of a token side by side."""
    return np.concatenate([h_char, h_bert, h_word, h_pos])


def character_embedding(gru: BiGru, characters: Sequence[Array]) -> Array:
    """Eq. 2: the mean of a BiGRU's states at the token's D characters."""
    return np.asarray(np.mean(gru(characters), axis=0))


def piece_embedding(pieces: Sequence[Array]) -> Array:
    """Eq. 3: the mean of the token's O subtokens."""
    return np.asarray(np.mean(pieces, axis=0))


def sentence_representation(gru: BiGru, out: Linear, tokens: Sequence[Array]) -> list[Array]:
    """Eq. 4: H = W BiGRU(H') + b."""
    return [out(state) for state in gru(tokens)]


# 3.2 Proposer


def vision(kernels: Sequence[int], level: int) -> int:
    """Eq. 5: how many tokens v_l a feature of level l represents."""
    return 1 - level + sum(kernels[:level])


def forward_block(weights: ForwardWeights, arriving: Sequence[Array]) -> list[Array]:
    """Eq. 6, first line: H^f_l = W BiGRU(LayerNorm(H'_l)) + b."""
    return [weights.out(state) for state in weights.gru([weights.norm(h) for h in arriving])]


def convolved(weights: Convolution, below: Sequence[Array]) -> list[Array]:
    """Eq. 6, second line: H'_{l+1} = σ(Conv1D(H^f_l)); printed without its f."""
    k = len(weights.weights)
    return [
        gelu(sum((weights.weights[j] @ below[i + j] for j in range(k)), weights.bias))
        for i in range(len(below) - k + 1)
    ]


def backward_block(
    weights: BackwardWeights, pooled: Sequence[Array], own: Sequence[Array], above: Sequence[Array]
) -> list[Array]:
    """Eq. 7, first two lines: LayerNorm(Pool(H) + W (H^f ⊕ BiGRU(LayerNorm(H^b))) + b)."""
    received = weights.gru([weights.norm(h) for h in above])
    return [
        weights.finish(pool + weights.out(np.concatenate([h_f, h_b])))
        for pool, h_f, h_b in zip(pooled, own, received, strict=True)
    ]


def transposed(weights: Convolution, above: Sequence[Array]) -> list[Array]:
    """Eq. 7, third line: H^b = σ(TransposedConv1D(H_l)), for the level below."""
    k = len(weights.weights)
    total = [weights.bias.copy() for _ in range(len(above) + k - 1)]
    for i, h in enumerate(above):
        for j in range(k):
            total[i + j] += weights.weights[j] @ h
    return [gelu(h) for h in total]


def pyramid(model: Model, words: Sequence[Array]) -> list[list[Array]]:
    """Eqs. 6 and 7: the features h_{i,l} of each level l that fits into the sentence."""
    up: list[list[Array]] = []
    for level, weights in enumerate(model.forward):
        if len(words) < vision(model.kernels, level):
            break
        arriving = list(words)
        if weights.convolution is not None:
            arriving = convolved(weights.convolution, up[-1])
        up.append(forward_block(weights, arriving))
    if model.backward is None:
        return up
    finished: list[list[Array]] = []
    above = up[-1]
    for level in reversed(range(len(up))):
        own, wide = model.backward[level], vision(model.kernels, level)
        pooled = [np.mean(words[i : i + wide], axis=0) for i in range(len(words) - wide + 1)]
        finished.insert(0, backward_block(own, pooled, up[level], above))
        if own.transposed is not None:
            above = transposed(own.transposed, finished[0])
    return finished


def covering(kernels: Sequence[int], counts: Sequence[int], j: int) -> list[tuple[int, int]]:
    """N_j of eq. 8: the features (i, l) whose span [i, i + v_l - 1] contains token j."""
    return [
        (i, level)
        for level, count in enumerate(counts)
        for i in range(count)
        if i <= j <= i + vision(kernels, level) - 1
    ]


def fusion_weights(scores: Mlp, features: Sequence[Array]) -> Array:
    """Eq. 8: α^j, a row for each feature of N_j, a column for start and one for end."""
    r = np.array([scores(h) for h in features])
    return np.stack([softmax(r[:, 0]), softmax(r[:, 1])], axis=1)


def initial_location(alpha: Array, spans: Sequence[tuple[int, int]]) -> Array:
    """Eq. 9: n_j, the mean of the spans' ends with these weights."""
    return np.asarray(sum(alpha[k] * np.array(span) for k, span in enumerate(spans)))


def initial_logarithms(first_labels: Mlp, q: Array) -> Array:
    """Eq. 10: c_j = MLP(q_j)."""
    return first_labels(q)


def propose(model: Model, words: Sequence[Array]) -> list[Proposal]:
    """Section 3.2.3: one proposal for each token; its query is the lowest level's feature."""
    levels = pyramid(model, words)
    proposals = []
    for j in range(len(words)):
        cells = covering(model.kernels, [len(level) for level in levels], j)
        alpha = fusion_weights(model.scores, [levels[level][i] for i, level in cells])
        spans = [(i, i + vision(model.kernels, level) - 1) for i, level in cells]
        q = levels[0][j]
        c = initial_logarithms(model.first_labels, q)
        proposals.append(Proposal(q, initial_location(alpha, spans), c))
    return proposals


# 3.3 Regressor


def category_embedded(weights: RegressorWeights, proposal: Proposal) -> Array:
    """Eq. 11: h'_i = q_i + softmax(c_i)ᵀ H^c."""
    if weights.categories is None:
        return proposal.q
    return np.asarray(proposal.q + softmax(proposal.c) @ weights.categories)


def log_g(mu: Array, precision: Array, x: Array) -> float:
    """Eq. 12: log G(x) = -(x - μ)ᵀ Θ (x - μ); printed without the minus sign."""
    return float(-(x - mu) @ precision @ (x - mu))


def spatial_map(locator: Mlp, h: Array, n: Array) -> tuple[Array, Array]:
    """Eq. 13: Δn and θ from the query; μ = n + Δn, Θ = θ θᵀ."""
    output = locator(h)
    theta = output[2:].reshape(2, 2)
    return n + output[:2], theta @ theta.T


def attend(
    weights: RegressorWeights, m: int, hs: Sequence[Array], i: int, spatial: Sequence[float]
) -> Array:
    """Eq. 14: o_{i,m}; `spatial` is log G_{i,m}(n_j) for each j. The printed key is h'_i."""
    query = weights.query[m](hs[i])
    r = [
        query @ weights.key[m](h) / sqrt(len(query)) + weight
        for h, weight in zip(hs, spatial, strict=True)
    ]
    alpha = softmax(np.array(r))
    return np.asarray(sum(alpha[j] * weights.value[m](h) for j, h in enumerate(hs)))


def head_weights(head_scores: Mlp, outputs: Sequence[Array]) -> Array:
    """Eq. 15: α_{i,m}, a row for each head m, a column for start and one for end."""
    r = np.array([head_scores(o) for o in outputs])
    return np.stack([softmax(r[:, 0]), softmax(r[:, 1])], axis=1)


def new_location(alpha: Array, centres: Sequence[Array]) -> Array:
    """Eq. 16: n_i = Σ_m α_{i,m} · μ_{i,m}."""
    return np.asarray(sum(alpha[m] * mu for m, mu in enumerate(centres)))


def merged_heads(out: Sequence[Linear], outputs: Sequence[Array]) -> Array:
    """Eq. 17: q'_i = Σ_m (W_m o_{i,m} + b_m)."""
    return np.asarray(sum(own(o) for own, o in zip(out, outputs, strict=True)))


def updated_query(weights: GateWeights, h: Array, q: Array) -> Array:
    """Eq. 19: q_i = Gate(h'_i, q'_i)."""
    return gate(weights, h, q)


def updated_logarithms(label_change: Mlp | None, q: Array, c: Array) -> Array:
    """Eq. 20: c_i + MLP(q_i)."""
    return c if label_change is None else c + label_change(q)


def regress(
    model: Model, weights: RegressorWeights, proposals: Sequence[Proposal]
) -> list[Proposal]:
    """Section 3.3: one layer, from eq. 11 to eq. 20."""
    hs = [category_embedded(weights, proposal) for proposal in proposals]
    refined = []
    for i, own in enumerate(proposals):
        outputs, centres = [], []
        for m, query in enumerate(weights.query):
            mu, precision = spatial_map(weights.locator, query(hs[i]), own.n)
            spatial = [log_g(mu, precision, p.n) if model.spatial else 0.0 for p in proposals]
            outputs.append(attend(weights, m, hs, i, spatial))
            centres.append(mu)
        alpha = head_weights(weights.head_scores, outputs)
        n = new_location(alpha, centres) if model.move else own.n
        q = updated_query(weights.gate, hs[i], merged_heads(weights.out, outputs))
        refined.append(Proposal(q, n, updated_logarithms(weights.label_change, q, own.c)))
    return refined


# 3.4 Prediction head


def category_distribution(weights: HeadWeights, proposal: Proposal) -> Array:
    """Eq. 21: p^c_i = softmax(c_i + MLP(q_i))."""
    return softmax(proposal.c + weights.label_change(proposal.q))


def span_distribution(
    weights: HeadWeights, proposal: Proposal, words: Sequence[Array]
) -> dict[tuple[int, int], float]:
    """Eq. 22: p^n_i over all spans s ≤ e; h_s and h_e are the encoder's words."""
    mu, precision = spatial_map(weights.locator, proposal.q, proposal.n)
    start, end = weights.start(proposal.q), weights.end(proposal.q)
    spans = [(s, e) for s in range(len(words)) for e in range(s, len(words))]
    r = []
    for s, e in spans:
        g = start @ weights.start(words[s]) + end @ weights.end(words[e])
        r.append(log_g(mu, precision, np.array([s, e])) + g / sqrt(len(proposal.q)))
    return dict(zip(spans, softmax(np.array(r)).tolist(), strict=True))


def states(model: Model, words: Sequence[Array]) -> list[list[Proposal]]:
    """Proposals after the proposer and after each layer of the regressor."""
    found = [propose(model, words)]
    for layer in model.layers:
        found.append(regress(model, layer, found[-1]))
    return found


def outputs(model: Model, words: Sequence[Array]) -> list[Distributions]:
    """The whole model: (p^c, p^n) of each proposal."""
    head = model.head
    return [
        Distributions(category_distribution(head, last), span_distribution(head, last, words))
        for last in states(model, words)[-1]
    ]


# 3.4.1 Training


def matching_cost(output: Distributions, target: Entity | None) -> float:
    """Eq. 24: the cost of assigning an entity, or None, to a proposal."""
    if target is None:
        return -log(output.p_c[NONE])
    s, e, t = target
    return -log(output.p_c[t]) - log(output.p_n[s, e])


def hungarian(costs: Array) -> dict[int, int]:
    """HUG(C) of algorithm 1, by trying everything: pairs (i, j), as many as fit, of least cost."""
    rows, columns = costs.shape
    if rows >= columns:
        ways = [dict(zip(own, range(columns), strict=True)) for own in _orders(rows, columns)]
    else:
        ways = [dict(zip(range(rows), own, strict=True)) for own in _orders(columns, rows)]
    return min(ways, key=lambda pairs: sum(costs[i, j] for i, j in pairs.items()))


def assignment(every: Sequence[Distributions], entities: Sequence[Entity]) -> list[Entity | None]:
    """Algorithm 1, for eq. 23: the target of each proposal.

    A proposal that the Hungarian algorithm leaves takes the cheapest of all entities and None.
    """
    costs = [[matching_cost(own, entity) for entity in entities] for own in every]
    pairs = hungarian(np.array(costs).reshape(len(every), len(entities)))
    targets: list[Entity | None] = []
    for i, own in enumerate(every):
        if i in pairs:
            targets.append(entities[pairs[i]])
        else:
            targets.append(_cheapest(own, entities))
    return targets


def loss(every: Sequence[Distributions], targets: Sequence[Entity | None]) -> float:
    """Eq. 25: the sum of the costs of all proposals."""
    return sum(matching_cost(own, target) for own, target in zip(every, targets, strict=True))


# 3.4.2 Predict


def prediction(every: Sequence[Distributions]) -> set[Entity]:
    """Algorithm 2; its p^t(s, e) is p^n(s, e)."""
    found = set()
    for own in every:
        t = int(np.argmax(own.p_c))
        s, e = max(own.p_n, key=lambda span: own.p_n[span])
        if t != NONE and own.p_c[t] * own.p_n[s, e] >= own.p_c[NONE]:
            found.add((s, e, t))
    return found


def _orders(count: int, chosen: int) -> list[tuple[int, ...]]:
    return list(permutations(range(count), chosen))


def _cheapest(output: Distributions, entities: Sequence[Entity]) -> Entity | None:
    targets: list[Entity | None] = [None, *entities]
    return min(targets, key=lambda target: matching_cost(output, target))
