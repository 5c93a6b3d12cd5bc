"""DiffusionNER (Shen et al., ACL 2023) in plain loops, in the order of the paper.

Every function is one equation or one paragraph, in the paper's symbols spelled out:

    M words, N entities (l, r, c) with r inclusive, K noisy spans, T timesteps, C types and c = 0
    for no entity (∅); λ (`scale`), γ denoising steps, φ (`threshold`).
    H_S (`words`, M × h), H_X (`pooled`, K × h), H̄ (`spans`, K × h), E_t (`time_embedding`).

Timesteps are counted from 1 to T as in the paper. What the paper leaves open is marked "open:",
with the reading chosen here, which is that of the released code unless stated otherwise. The two
algorithms are given their random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Entity(NamedTuple):
    """(l, r, c): both boundaries inclusive."""

    left: int
    right: int
    kind: int


# Section 3: preliminary


def cosine_variances(timesteps: int) -> list[float]:
    """β_1, …, β_T of the cosine scheduler (section 6.3; open: Nichol and Dhariwal, 2021)."""

    def curve(t: int) -> float:
        return math.cos((t / timesteps + 0.008) / 1.008 * math.pi / 2) ** 2

    return [min(1 - curve(t) / curve(t - 1), 0.999) for t in range(1, timesteps + 1)]


def linear_variances(timesteps: int) -> list[float]:
    """β_1, …, β_T of the linear scheduler (section 6.3; open: Ho et al., 2020, for any T)."""
    low, high = (end * 1000 / timesteps for end in (1e-4, 0.02))
    step = (high - low) / (timesteps - 1)
    return [min(low + step * (t - 1), 0.999) for t in range(1, timesteps + 1)]


def forward_step(x: Array, beta: float, noise: Array) -> Array:
    """Eq. 2: x_t ~ N(√(1 − β_t) x_{t−1}, β_t I)."""
    return math.sqrt(1 - beta) * x + math.sqrt(beta) * noise


def forward_chain(x: Array, betas: Sequence[float], noises: Sequence[Array]) -> Array:
    """Eq. 1: x_t after all steps of the chain, one after the other."""
    for beta, noise in zip(betas, noises, strict=True):
        x = forward_step(x, beta, noise)
    return x


def signal_left(betas: Sequence[float]) -> list[float]:
    """Eq. 3: ᾱ_1, …, ᾱ_T, the products of α_s = 1 − β_s up to t."""
    left, product = [], 1.0
    for beta in betas:
        product *= 1 - beta
        left.append(product)
    return left


# Section 4.1: boundary denoising diffusion model


def expanded_by_repetition(entities: Sequence[Entity], count: int) -> list[Entity]:
    """Section 4.1, expansion by repetition: N entities become K by duplication (open: in turn)."""
    return [entities[k % len(entities)] for k in range(count)]


def normalized(left: float, right: float, length: int, scale: float) -> tuple[float, float]:
    """Section 4.1, normalization: boundaries divided by M and scaled to (−λ, λ)."""
    return scale * (2 * left / length - 1), scale * (2 * right / length - 1)


def expanded_randomly(
    entities: Sequence[Entity], shares: Sequence[tuple[float, float]], length: int, scale: float
) -> Array:
    """Section 4.1, expansion by random spans: x_0 of N entities and of K − N random spans.

    `shares` are normally distributed pairs, as shares of the sentence (open: mean 1/2, deviation
    1/6).
    """
    own = [normalized(entity.left, entity.right, length, scale) for entity in entities]
    others = [(scale * (2 * left - 1), scale * (2 * right - 1)) for left, right in shares]
    return np.array([*own, *others])


def noisy_spans(x0: Array, left: float, noise: Array) -> Array:
    """Eq. 4: x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε."""
    return math.sqrt(left) * x0 + math.sqrt(1 - left) * noise


def denoising_times(timesteps: int, steps: int) -> list[int]:
    """Section 4.1, timesteps: τ, an arithmetic subsequence of [1, …, T] of length γ with τ_γ = T.

    Open: rounded down.
    """
    return [timesteps * i // steps for i in range(1, steps + 1)]


def predicted_noise(x: Array, clean: Array, left: float) -> Array:
    """Eq. 6: ε̂ = (x_τ − √ᾱ_τ x̂_0) / √(1 − ᾱ_τ)."""
    return (x - math.sqrt(left) * clean) / math.sqrt(1 - left)


def refined(clean: Array, noise: Array, left_before: float) -> Array:
    """Eq. 7: x of the timestep before, √ᾱ x̂_0 + √(1 − ᾱ) ε̂."""
    return math.sqrt(left_before) * clean + math.sqrt(1 - left_before) * noise


# Section 4.2: network architecture


@dataclass(frozen=True)
class Linear:
    """x ↦ W x + b."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        return self.weight @ x + self.bias


@dataclass(frozen=True)
class Norm:
    """Layer normalization."""

    gain: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        spread = math.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
        centred: Array = (x - x.mean()) / spread
        return self.gain * centred + self.bias


@dataclass(frozen=True)
class Attention:
    """Attention with several heads, its residual connection and norm (open: after it)."""

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    norm: Norm
    heads: int

    def __call__(self, asking: Array, seen: Array) -> Array:
        """Each row of `asking` after looking at the rows of `seen`."""
        size = len(self.query.bias) // self.heads
        rows = []
        for row in asking:
            query, parts = self.query(row), []
            for head in range(self.heads):
                own = slice(head * size, (head + 1) * size)
                scores = [query[own] @ self.key(other)[own] / math.sqrt(size) for other in seen]
                weights = softmax(np.array(scores))
                values = [self.value(other)[own] for other in seen]
                parts.append(sum(w * value for w, value in zip(weights, values, strict=True)))
            rows.append(self.norm(row + self.out(np.concatenate(parts))))
        return np.array(rows)


@dataclass(frozen=True)
class FeedForward:
    """The net after both attentions (appendix C), with its residual connection and norm."""

    first: Linear
    second: Linear
    norm: Norm

    def __call__(self, rows: Array) -> Array:
        return np.array([self.norm(x + self.second(relu(self.first(x)))) for x in rows])


@dataclass(frozen=True)
class Pointer:
    """One boundary pointer: two matrices, and a perceptron of two layers (open: with ReLU)."""

    of_words: Array
    """W_S^δ"""
    of_spans: Array
    """W_X^δ"""
    first: Linear
    second: Linear


@dataclass(frozen=True)
class Network:
    """The weights of the entity decoder; without an attention for the ablations of table 4."""

    self_attention: Attention | None
    cross_attention: Attention | None
    feed_forward: FeedForward
    left: Pointer
    right: Pointer
    classifier: tuple[Linear, Linear]


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def gelu(x: Array) -> Array:
    return np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x])


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max())
    shares: Array = powers / powers.sum()
    return shares


def discretized(x: Array, length: int, scale: float) -> list[tuple[int, int]]:
    """Section 4.2, discretization: word indexes, by rescaling, multiplying by M and rounding.

    Open: what lies outside (−λ, λ) or the sentence is pulled to its border, and boundaries in the
    wrong order are exchanged (the released code has the width in place of the right boundary).
    """
    spans = []
    for pair in x:
        shares = [(min(max(value, -scale), scale) / scale + 1) / 2 for value in pair]
        left, right = sorted(min(round(share * length), length - 1) for share in shares)
        spans.append((left, right))
    return spans


def mean_pooled(words: Array, spans: Sequence[tuple[int, int]]) -> Array:
    """Section 4.2, mean pooling: H_X, the mean of the words inside each noisy span."""
    return np.array([words[left : right + 1].mean(axis=0) for left, right in spans])


def time_embedding(t: int, size: int) -> Array:
    """Section 4.2, timestep embedding: E_t, the sinusoids of Vaswani et al. (2017)."""
    values = []
    for index in range(size):
        angle = t / 10000 ** (2 * (index // 2) / size)
        values.append(math.cos(angle) if index % 2 else math.sin(angle))
    return np.array(values)


def span_encoder(network: Network, words: Array, pooled: Array) -> Array:
    """Section 4.2, span encoder: self-attention, cross-attention to words, feed-forward."""
    spans = pooled
    if network.self_attention is not None:
        spans = network.self_attention(spans, spans)
    if network.cross_attention is not None:
        spans = network.cross_attention(spans, words)
    return network.feed_forward(spans)


def span_representations(network: Network, words: Array, pooled: Array, t: int) -> Array:
    """Section 4.2, span encoder: H̄_X = SpanEncoder(H_S, H_X) + E_t."""
    return span_encoder(network, words, pooled) + time_embedding(t, words.shape[1])


def boundary_probabilities(pointer: Pointer, words: Array, spans: Array) -> Array:
    """Section 4.2, boundary pointers: P^δ = sigmoid(MLP(H_SX^δ)), K × M.

    H_SX^δ = H_S W_S^δ + H̄_X W_X^δ is the fusion of words and spans.
    """
    probabilities = np.zeros((len(spans), len(words)))
    for k, span in enumerate(spans):
        for i, word in enumerate(words):
            fused = pointer.of_words @ word + pointer.of_spans @ span
            probabilities[k, i] = sigmoid(pointer.second(relu(pointer.first(fused)))[0])
    return probabilities


def type_probabilities(network: Network, spans: Array) -> Array:
    """Section 4.2, entity classifier: P^c = Classifier(H̄_X).

    A perceptron of two layers (open: with GELU) and softmax.
    """
    first, second = network.classifier
    return np.array([softmax(second(gelu(first(span)))) for span in spans])


@dataclass(frozen=True)
class Predicted:
    """P^l, P^r (K × M) and P^c (K × (1 + C))."""

    left: Array
    right: Array
    kind: Array


def denoised(network: Network, words: Array, x: Array, t: int, scale: float) -> Predicted:
    """Eq. 5: f(x_t, S, t), as the probabilities from which x̂_0 is taken."""
    pooled = mean_pooled(words, discretized(x, len(words), scale))
    spans = span_representations(network, words, pooled, t)
    return Predicted(
        boundary_probabilities(network.left, words, spans),
        boundary_probabilities(network.right, words, spans),
        type_probabilities(network, spans),
    )


# Appendix A: optimal matching


def matching_cost(predicted: Predicted, k: int, entity: Entity) -> float:
    """Appendix A, matching cost: −Σ_δ P_k^δ(entity), δ ∈ {l, r, c}; the cost of ∅ is 0."""
    return -float(
        predicted.left[k, entity.left]
        + predicted.right[k, entity.right]
        + predicted.kind[k, entity.kind]
    )


def optimal_matching(predicted: Predicted, entities: Sequence[Entity]) -> list[Entity | None]:
    """Appendix A, optimal matching: π̂, the entity of each noisy span, None for ∅.

    All permutations are tried.
    """
    count = len(predicted.kind)
    ways = permutations(range(count), len(entities))

    def cost(way: Sequence[int]) -> float:
        return sum(matching_cost(predicted, k, e) for k, e in zip(way, entities, strict=True))

    best = min(ways, key=cost)
    return [entities[best.index(k)] if k in best else None for k in range(count)]


# Section 4.2: training objective


def likelihood(probabilities: Array, right: int) -> float:
    """−log P(right)."""
    return -math.log(probabilities[right])


def likelihood_of_all_words(probabilities: Array, right: int) -> float:
    """−log of P(right) and of 1 − P of every other word: open in the paper, which prints P(right).

    That alone is least where P is 1 everywhere. The released code has this sum.
    """
    others = [1 - p for i, p in enumerate(probabilities) if i != right]
    return -math.log(probabilities[right]) - sum(math.log(p) for p in others)


def training_objective(
    predicted: Predicted,
    matched: Sequence[Entity | None],
    boundary: Callable[[Array, int], float] = likelihood,
) -> float:
    """Section 4.2, training objective: L = −Σ_k Σ_δ log P_k^δ(π̂(k)), δ ∈ {l, r, c}.

    ∅ has a type, no entity, but no boundaries.
    """
    total = 0.0
    for k, entity in enumerate(matched):
        total -= math.log(predicted.kind[k, 0 if entity is None else entity.kind])
        if entity is not None:
            total += boundary(predicted.left[k], entity.left)
            total += boundary(predicted.right[k], entity.right)
    return total


def training_loss(
    network: Network,
    words: Array,
    entities: Sequence[Entity],
    x0: Array,
    noise: Array,
    t: int,
    *,
    left: Sequence[float],
    scale: float,
    boundary: Callable[[Array, int], float] = likelihood,
) -> float:
    """Algorithm 1 for one encoded sentence, after its entities were expanded to x_0."""
    x = noisy_spans(x0, left[t - 1], noise)
    predicted = denoised(network, words, x, t, scale)
    return training_objective(predicted, optimal_matching(predicted, entities), boundary)


# Section 4.3: inference


@dataclass(frozen=True)
class Candidate:
    """(l, r, c) and the probabilities of the three."""

    entity: Entity
    boundaries: float
    """P^l(l) + P^r(r)"""
    kind: float
    """P^c(c)"""


def candidates(predicted: Predicted) -> list[Candidate]:
    """Section 4.3, candidates: δ = argmax P^δ for δ ∈ {l, r, c}."""
    found = []
    for left, right, kind in zip(predicted.left, predicted.right, predicted.kind, strict=True):
        entity = Entity(int(left.argmax()), int(right.argmax()), int(kind.argmax()))
        found.append(Candidate(entity, float(left.max() + right.max()), float(kind.max())))
    return found


def without_duplicates(found: Sequence[Candidate]) -> list[Candidate]:
    """Section 4.3, de-duplication: of identical boundaries, the maximum type probability.

    Before it, what is no entity leaves (open): no type, or boundaries in the wrong order.
    """
    best: dict[tuple[int, int], Candidate] = {}
    for one in found:
        left, right, kind = one.entity
        if not kind or left > right:
            continue
        if (left, right) not in best or one.kind > best[left, right].kind:
            best[left, right] = one
    return list(best.values())


def filtered(found: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Section 4.3, filtering: a sum of probabilities less than φ is discarded."""
    return [one for one in found if one.boundaries + one.kind >= threshold]


def generated(
    network: Network,
    words: Array,
    x: Array,
    *,
    left: Sequence[float],
    steps: int,
    scale: float,
) -> list[Predicted]:
    """Algorithm 2 up to its post-processing: what is predicted at each denoising step."""
    times, length = denoising_times(len(left), steps), len(words)
    history = []
    for before, t in zip(reversed([0, *times[:-1]]), reversed(times), strict=True):
        predicted = denoised(network, words, x, t, scale)  # eq. 5
        history.append(predicted)
        if before:  # not the last denoising step
            entities = [one.entity for one in candidates(predicted)]
            clean = np.array([normalized(e.left, e.right, length, scale) for e in entities])
            noise = predicted_noise(x, clean, left[t - 1])
            x = refined(clean, noise, left[before - 1])
    return history


def inferred(predicted: Predicted, threshold: float) -> set[Entity]:
    """The end of algorithm 2: the entities of the last step's predictions."""
    kept = filtered(without_duplicates(candidates(predicted)), threshold)
    return {one.entity for one in kept}
