"""Weights with the names of the paper, and nets: for the transcription of proposer-regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, exp, sqrt, tanh

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """x ↦ W x + b."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        return self.weight @ x + self.bias


@dataclass(frozen=True)
class Mlp:
    """What the paper calls MLP."""

    first: Linear
    second: Linear

    def __call__(self, x: Array) -> Array:
        return self.second(gelu(self.first(x)))


@dataclass(frozen=True)
class Norm:
    """Layer normalization."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        centred = x - np.mean(x)
        deviation = sqrt(float(np.mean(centred**2)) + 1e-5)
        return np.asarray(self.weight * centred / deviation + self.bias)


@dataclass(frozen=True)
class GateWeights:
    """The six maps of eq. 18."""

    x_r: Linear
    x_z: Linear
    x_n: Linear
    h_r: Linear
    h_z: Linear
    h_n: Linear


@dataclass(frozen=True)
class BiGru:
    """A GRU for each direction."""

    ahead: GateWeights
    back: GateWeights

    def __call__(self, xs: Sequence[Array]) -> list[Array]:
        left = _gru(self.ahead, xs)
        right = _gru(self.back, xs[::-1])[::-1]
        return [np.concatenate(both) for both in zip(left, right, strict=True)]


@dataclass(frozen=True)
class Convolution:
    """A map for each of its k places, and one bias."""

    weights: list[Array]
    bias: Array


@dataclass(frozen=True)
class ForwardWeights:
    """A level on the way up (eq. 6); `convolution` leads to it, so the lowest has none."""

    norm: Norm
    gru: BiGru
    out: Linear
    convolution: Convolution | None


@dataclass(frozen=True)
class BackwardWeights:
    """A level on the way down (eq. 7); `transposed` leads down from it."""

    norm: Norm
    gru: BiGru
    out: Linear
    finish: Norm
    transposed: Convolution | None


@dataclass(frozen=True)
class RegressorWeights:
    """One layer of the regressor; lists have an item for each head m."""

    categories: Array | None
    """H^c of eq. 11; None is the ablation "-Category embedding"."""
    query: list[Linear]
    key: list[Linear]
    value: list[Linear]
    locator: Mlp
    head_scores: Mlp
    out: list[Linear]
    gate: GateWeights
    label_change: Mlp | None
    """Eq. 20; None is the ablation "-Logarithms iteration"."""


@dataclass(frozen=True)
class HeadWeights:
    """The prediction head (eqs. 21 and 22)."""

    label_change: Mlp
    start: Linear
    end: Linear
    locator: Mlp


@dataclass(frozen=True)
class Model:
    """All of it, after the sentence encoder."""

    kernels: Sequence[int]
    forward: list[ForwardWeights]
    backward: list[BackwardWeights] | None
    """None is the ablation "-Backward block"."""
    scores: Mlp
    first_labels: Mlp
    layers: list[RegressorWeights]
    head: HeadWeights
    spatial: bool = True
    """False is the ablation "-Spatial modulation"."""
    move: bool = True
    """False is the ablation "-Locations iteration"."""


@dataclass(frozen=True)
class Proposal:
    """Query q, location n = (start, end), category logarithms c."""

    q: Array
    n: Array
    c: Array


@dataclass(frozen=True)
class Distributions:
    """The head's output for a proposal: p^c of every category, p^n of every span."""

    p_c: Array
    p_n: dict[tuple[int, int], float]


def gelu(x: Array) -> Array:
    return np.array([0.5 * value * (1 + erf(value / sqrt(2))) for value in x])


def sigmoid(x: Array) -> Array:
    return np.array([1 / (1 + exp(-value)) for value in x])


def softmax(r: Array) -> Array:
    powers = np.exp(r - r.max())
    return np.asarray(powers / powers.sum())


def gate(weights: GateWeights, h: Array, x: Array) -> Array:
    """Eq. 18, the gate of a GRU; the printed "c" in its second line is h."""
    r = sigmoid(weights.x_r(x) + weights.h_r(h))
    z = sigmoid(weights.x_z(x) + weights.h_z(h))
    n = np.array([tanh(value) for value in weights.x_n(x) + r * weights.h_n(h)])
    return np.asarray((1 - z) * n + z * h)


def _gru(weights: GateWeights, xs: Sequence[Array]) -> list[Array]:
    """A GRU in one direction: the gate of eq. 18 at every step, from zeros on."""
    states = [np.zeros(len(weights.h_r.bias))]
    for x in xs:
        states.append(gate(weights, states[-1], x))
    return states[1:]
