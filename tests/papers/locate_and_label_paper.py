"""Locate and Label (Shen et al., ACL 2021), equation by equation, in plain loops.

To be read beside the paper. Symbols are the paper's: h are the word vectors of one sentence, a span
(st, ed) includes its last word, γ, η, α1, α2, λ1 to λ3, u, k and δ have their names spelled out.
"Not in the paper" marks what the paper leaves open, with the choice made here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Span = tuple[int, int]
"""First and last word: (st, ed)."""
Entity = tuple[int, int, int]
"""First word, last word, category; category 0 is NONE."""
Proposal = tuple[int, int, int, float]
"""First word, last word, category, score: (l, r, y, score)."""
NONE = 0


@dataclass(frozen=True)
class Mlp:
    """Two linear layers with a GELU between them."""

    w_1: Array
    """3d × d"""
    b_1: Array
    w_2: Array
    """d × outputs"""
    b_2: Array

    def __call__(self, x: Array) -> Array:
        """W2 · GELU(W1 x + b1) + b2, as in eq. 5."""
        hidden = np.array([gelu(value) for value in x @ self.w_1 + self.b_1])
        output: Array = hidden @ self.w_2 + self.b_2
        return output


@dataclass(frozen=True)
class Model:
    """What is learnt. The ablations are models without a filter or without a regressor."""

    filter: Mlp | None
    regressor: Mlp | None
    classifier: Mlp


@dataclass(frozen=True)
class Settings:
    """Table 6, for ACE 2004; filter_threshold is not in the paper."""

    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 9, 11, 13, 15)
    gamma: float = 2.0
    alpha_1: float = 0.7
    alpha_2: float = 1.0
    eta: float = 1.0
    lambda_1: float = 1.0
    lambda_2: float = 0.1
    lambda_3: float = 1.0
    u: float = 0.9
    k: float = 0.6
    delta: float = 0.5
    filter_threshold: float = 1 / 6


def gelu(x: float) -> float:
    """x times the probability that a standard normal variable is below x."""
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


# Section 2.2: seed spans and what they should become


def seed_spans(n: int, lengths: Iterable[int]) -> list[Span]:
    """Section 2.2: every span of a sentence with one of the lengths."""
    return [(st, st + length - 1) for length in lengths for st in range(n - length + 1)]


def iou(a: Span, b: Span) -> float:
    """Section 2.2: words in both spans over words in either."""
    words_a, words_b = set(range(a[0], a[1] + 1)), set(range(b[0], b[1] + 1))
    return len(words_a & words_b) / len(words_a | words_b)


def paired_entity(b: Span, entities: Sequence[Entity]) -> Entity | None:
    """Section 2.2: the entity with the largest IoU.

    Of equal ones we take the first; a span that shares no word with any has none.
    """
    best: Entity | None = None
    for entity in entities:
        if iou(b, entity[:2]) > (0 if best is None else iou(b, best[:2])):
            best = entity
    return best


def paired_iou(b: Span, entity: Entity | None) -> float:
    """IoU(b_i, e_i), which is 0 without an entity."""
    return 0.0 if entity is None else iou(b, entity[:2])


def is_positive(b: Span, entity: Entity | None, alpha_1: float) -> bool:
    """Section 2.2: above α1. The paper does not say what exactly α1 is; we say negative."""
    return paired_iou(b, entity) > alpha_1


def target_offsets(b: Span, entity: Entity) -> tuple[int, int]:
    """Section 2.2: t̂, from the boundaries of a seed to those of its entity."""
    return entity[0] - b[0], entity[1] - b[1]


def number_of_negatives(positives: int, negatives: int) -> int:
    """Section 2.2: five per positive. Not in the paper: two on top, as in the released code."""
    return min(negatives, 5 * positives + 2)


def injected_entities(seeds: Sequence[Span], entities: Sequence[Entity]) -> list[Entity]:
    """Not in the paper, but in the released code: entities that no seed equals are seeds, too.

    A span with two categories comes once, with the first.
    """
    found: dict[Span, Entity] = {}
    for entity in entities:
        if entity[:2] not in seeds:
            found.setdefault(entity[:2], entity)
    return list(found.values())


# Section 2.3: span proposal module


def max_pooling(h: Array, span: Span) -> Array:
    """Eqs. 1 and 8: h^p, the largest value of each dimension over the words of a span."""
    pooled: Array = np.array(
        [max(h[st, j] for st in range(span[0], span[1] + 1)) for j in range(h.shape[1])]
    )
    return pooled


def inner_state(h: Array, span: Span) -> Array:
    """Eqs. 2 and 9: [h^p; h_st; h_ed], for the filter and the classifier."""
    return np.concatenate([max_pooling(h, span), h[span[0]], h[span[1]]])


def filter_probability(model: Mlp, h: Array, b: Span) -> float:
    """Eq. 3: p^filter, the probability that a seed is a span proposal."""
    (logit,) = model(inner_state(h, b))
    return 1 / (1 + math.exp(-logit))


def outer_state(h: Array, b: Span) -> Array:
    """Eq. 4: [h^p; h_{st-1}; h_{ed+1}].

    The paper does not say what is outside a sentence; we repeat its first and its last word.
    """
    left, right = max(0, b[0] - 1), min(len(h) - 1, b[1] + 1)
    return np.concatenate([max_pooling(h, b), h[left], h[right]])


def offsets(model: Mlp | None, h: Array, b: Span) -> tuple[float, float]:
    """Eq. 5: t, how far the left and the right boundary move (ablation: not at all)."""
    if model is None:
        return 0.0, 0.0
    left, right = model(outer_state(h, b))
    return float(left), float(right)


# Section 2.4: entity classifier module


def adjusted_start(st: int, t_left: float) -> int:
    """Eq. 6."""
    return max(0, st + math.floor(t_left + 0.5))


def adjusted_end(ed: int, t_right: float, n: int) -> int:
    """Eq. 7, where L must be the length of the sentence."""
    return min(n - 1, ed + math.floor(t_right + 0.5))


def adjusted_span(b: Span, t: tuple[float, float], n: int) -> Span:
    """Eqs. 6 and 7.

    Not in the paper: a start behind the sentence is its last word, an end before it its first word,
    and a seed whose boundaries change places stays where it is.
    """
    start = min(n - 1, adjusted_start(b[0], t[0]))
    end = max(0, adjusted_end(b[1], t[1], n))
    return (start, end) if start <= end else b


def category_probabilities(model: Mlp, h: Array, span: Span) -> Array:
    """Eq. 10: p, over NONE and the categories."""
    logits = model(inner_state(h, span))
    powers = np.exp(logits - logits.max())
    probabilities: Array = powers / powers.sum()
    return probabilities


def reassigned_category(span: Span, entity: Entity | None, alpha_2: float) -> int:
    """Section 2.4: the entity's category if the IoU is high enough, or NONE.

    The paper says "higher than α2", which is 1 and never exceeded: it must be "at least".
    """
    if entity is None or iou(span, entity[:2]) < alpha_2:
        return NONE
    return entity[2]


# Section 2.5: training objective


def soft_weight(overlap: float, *, positive: bool, eta: float) -> float:
    """Eq. 11: w. Whether a span is positive is decided by `is_positive` or by the IoU with α2."""
    return math.pow(overlap if positive else 1 - overlap, eta)


def filter_loss(p_filter: float, weight: float, *, positive: bool, gamma: float) -> float:
    """Eq. 12: one term of L_filter; the minus goes for both lines."""
    if positive:
        return -weight * math.pow(1 - p_filter, gamma) * math.log(p_filter)
    return -weight * math.pow(p_filter, gamma) * math.log(1 - p_filter)


def smooth_l1(x: float) -> float:
    """Quadratic below 1, linear above."""
    return 0.5 * x * x if abs(x) < 1 else abs(x) - 0.5


def boundary_loss(target: tuple[float, float], t: tuple[float, float]) -> float:
    """Eq. 14: one term of L_f1, over the left and the right boundary."""
    return sum(smooth_l1(wanted - got) for wanted, got in zip(target, t, strict=True))


def printed_overlap_loss(span: Span, entity: Span) -> float:
    """Eq. 15 as it is printed: whole words, last words included."""
    d, e = (span[1], entity[1]), (span[0], entity[0])
    return 1 - (min(d) - max(e)) / (max(d) - min(e))


def overlap_loss(b: Span, t: tuple[float, float], entity: Span) -> float:
    """Eq. 15: one term of L_olp, on real-valued boundaries that lie between words.

    As printed, a word that is hit exactly gives 0/0, and rounding leaves no gradient. So d are ends
    one past the last word, and nothing is rounded. Not in the paper: a span whose end is before its
    start is empty, in the middle between them.
    """
    st, ed = b[0] + t[0], b[1] + 1 + t[1]
    if ed < st:
        st = ed = (st + ed) / 2
    d, e = (ed, entity[1] + 1), (st, entity[0])
    return 1 - (min(d) - max(e)) / (max(d) - min(e))


def regression_loss(b: Span, t: tuple[float, float], entity: Entity) -> float:
    """Eq. 13: one term of L_reg."""
    return boundary_loss(target_offsets(b, entity), t) + overlap_loss(b, t, entity[:2])


def classifier_loss(p: Array, category: int, weight: float) -> float:
    """Eq. 16: one term of L_cls."""
    return -weight * math.log(p[category])


def total_loss(filter_: float, regression: float, classifier: float, settings: Settings) -> float:
    """Eq. 17: L."""
    return (
        settings.lambda_1 * filter_
        + settings.lambda_2 * regression
        + settings.lambda_3 * classifier
    )


def sentence_losses(
    model: Model,
    h: Array,
    examples: Sequence[tuple[Span, Entity | None]],
    settings: Settings,
) -> tuple[float, float, float]:
    """Eqs. 12, 13 and 16: L_filter, L_reg and L_cls of the seeds of a sentence.

    Args:
        model: What is learnt.
        h: Word vectors.
        examples: The seeds that are trained on, each with its paired entity.
        settings: The numbers.
    """
    filtered = regressed = classified = 0.0
    for b, entity in examples:
        overlap = paired_iou(b, entity)
        positive = is_positive(b, entity, settings.alpha_1)
        if model.filter is not None:
            weight = soft_weight(overlap, positive=positive, eta=settings.eta)
            p_filter = filter_probability(model.filter, h, b)
            filtered += filter_loss(p_filter, weight, positive=positive, gamma=settings.gamma)
        t = offsets(model.regressor, h, b)
        if model.regressor is not None and positive and entity is not None:
            regressed += regression_loss(b, t, entity)
        span = adjusted_span(b, t, len(h))
        overlap = paired_iou(span, entity)
        weight = soft_weight(overlap, positive=overlap >= settings.alpha_2, eta=settings.eta)
        category = reassigned_category(span, entity, settings.alpha_2)
        classified += classifier_loss(
            category_probabilities(model.classifier, h, span), category, weight
        )
    return filtered, regressed, classified


# Section 2.6: entity decoding


def proposals(model: Model, h: Array, settings: Settings) -> list[Proposal]:
    """Sections 2.2 to 2.6: what the model makes of each seed that passes the filter."""
    found = []
    for b in seed_spans(len(h), settings.lengths):
        p_filter = 1.0 if model.filter is None else filter_probability(model.filter, h, b)
        if p_filter <= settings.filter_threshold:
            continue
        span = adjusted_span(b, offsets(model.regressor, h, b), len(h))
        p = category_probabilities(model.classifier, h, span)
        found.append((*span, int(p.argmax()), float(p.max())))
    return found


def decayed(s_i: Proposal, s_j: Proposal, u: float, k: float) -> float:
    """Eq. 18: f(s_i, s_j), the score of s_j once s_i is taken."""
    return s_j[3] * u if iou(s_i[:2], s_j[:2]) >= k else s_j[3]


def soft_nms(spans: Iterable[Proposal], settings: Settings) -> list[Proposal]:
    """Algorithm 1: proposals by falling scores, with the scores that they end with.

    What is labelled NONE is no entity, and takes no part.
    """
    left = [s for s in spans if s[2] != NONE]
    output: list[Proposal] = []
    while left:
        left.sort(key=lambda s: -s[3])
        s_i = left.pop(0)
        output.append(s_i)
        left = [(*s_j[:3], decayed(s_i, s_j, settings.u, settings.k)) for s_j in left]
    return [s for s in output if s[3] > settings.delta]


def entities_of(spans: Iterable[Proposal], settings: Settings) -> dict[Entity, float]:
    """Algorithm 1, as a set: what several proposals say is one entity, with the best score."""
    found: dict[Entity, float] = {}
    for st, ed, category, score in soft_nms(spans, settings):
        found.setdefault((st, ed, category), score)
    return found
