"""Slots: candidate spans of each sentence; for diffusion, points of noise space.

All random numbers come from one generator per sentence, in shapes that depend on the sentence
only: a sentence gets the same noise alone, in any batch and in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from spandet.seeding import generator

_BLOCK = 64
_RANDOM_CENTRE, _RANDOM_SPREAD = 0.5, 1 / 6
_KEYS = 2**62


@dataclass(frozen=True)
class Slots:
    """The slots of a training step: several draws per sentence, at different noise levels."""

    origin: Int[Tensor, "batch draw span"]
    """Index of the entity that a slot is a noisy copy of; -1 for none."""
    fill: Int[Tensor, "batch draw span"]
    """Number of a slot among those without an entity; -1 for the others."""
    random: Float[Tensor, "batch draw span 2"]
    """Normally distributed boundaries from 0 to 1 for slots without an entity (DiffusionNER,
    section 4.1: the random strategy)."""
    noise: Float[Tensor, "batch draw span 2"]
    levels: Int[Tensor, "batch draw"]
    mask: Bool[Tensor, "batch span"]


def slot_counts(
    lengths: Int[Tensor, " batch"], fixed: int | None, per_word: float, extra: int
) -> list[int]:
    """Number of slots of each sentence: fixed, or by its length and at most its number of spans.

    A sentence without words has no slots.
    """
    if fixed is not None:
        return [fixed if words else 0 for words in lengths.tolist()]
    return [
        min(int(per_word * words) + extra, words * (words + 1) // 2) for words in lengths.tolist()
    ]


def draw_slots(
    rngs: Sequence[Generator],
    counts: Sequence[int],
    golds: Sequence[int],
    *,
    draws: int,
    copies: int | None,
    levels: int,
) -> Slots:
    """Draw the slots of a training step (DiffusionNER, section 4.1: expand N entities to K slots).

    Args:
        rngs: One random generator per sentence.
        counts: Number of slots of each sentence.
        golds: Number of entities of each sentence.
        draws: Number of draws per sentence.
        copies: Slots per entity, if there are enough; None: all slots are copies of entities, in
            equal numbers.
        levels: Number of noise levels; the draws of a sentence have one each from equal ranges.
    """
    most = max([1, *counts])
    origin = torch.full((len(counts), draws, most), -1)
    fill = torch.full_like(origin, -1)
    random, noise = (torch.zeros(len(counts), draws, most, 2) for _ in range(2))
    level = torch.zeros(len(counts), draws, dtype=torch.long)
    for row, (rng, slots, gold) in enumerate(zip(rngs, counts, golds, strict=True)):
        jitter = torch.rand(draws, generator=rng)
        level[row] = ((torch.arange(draws) + jitter) / draws * levels).long().clamp(max=levels - 1)
        made = _copies(gold, slots, copies)
        order = torch.rand(draws, max(gold, 1), generator=rng).argsort(dim=1)
        origin[row, :, :made] = order[:, torch.arange(made) % max(gold, 1)]
        fill[row, :, made:slots] = torch.arange(slots - made)
        random[row, :, :slots] = torch.randn(draws, slots, 2, generator=rng)
        noise[row, :, :slots] = torch.randn(draws, slots, 2, generator=rng)
    random = _RANDOM_CENTRE + _RANDOM_SPREAD * random
    return Slots(origin, fill, random, noise, level, slot_mask(counts))


def _copies(gold: int, slots: int, copies: int | None) -> int:
    """Number of slots that are copies of entities."""
    if gold == 0:
        return 0
    return slots if copies is None else min(gold * copies, slots)


def slot_mask(counts: Sequence[int]) -> Bool[Tensor, "batch span"]:
    """Mask of the slots, with at least one column."""
    most = max([1, *counts])
    return torch.arange(most) < torch.tensor(counts, dtype=torch.long)[:, None]


class KeyedNoise:
    """Gaussian noise for prediction; that of a slot does not depend on the number of slots."""

    def __init__(self, rngs: Sequence[Generator]) -> None:
        self._keys = [int(torch.randint(_KEYS, (), generator=rng)) for rng in rngs]

    def at(self, step: int, counts: Sequence[int]) -> Float[Tensor, "batch span 2"]:
        """The noise of one step, for `counts` slots of each sentence."""
        most = max([1, *counts])
        noise = torch.zeros(len(counts), most, 2)
        for row, (key, count) in enumerate(zip(self._keys, counts, strict=True)):
            rng = generator(key, "step", step)
            # Whole blocks, because torch uses another algorithm for few numbers than for many.
            blocks = [torch.randn(_BLOCK, 2, generator=rng) for _ in range(0, count, _BLOCK)]
            if blocks:
                noise[row, :count] = torch.cat(blocks)[:count]
        return noise
