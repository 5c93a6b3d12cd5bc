"""Slots: the points of noise space that a diffusion detector starts from.

All random numbers come from one generator per sentence, in shapes that depend on the sentence
alone: a sentence gets the same noise by itself, in any batch and in any order.
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
    """The slots of a training step: every sentence several times, at different noise levels."""

    origin: Int[Tensor, "batch draw span"]
    """The entity that a slot is made of; -1 for none."""
    fill: Int[Tensor, "batch draw span"]
    """The number of a slot among those made of no entity; -1 for the others."""
    random: Float[Tensor, "batch draw span 2"]
    """What a slot made of nothing could be: a normally distributed pair, as shares of a sentence
    (the random strategy of section 4.1)."""
    noise: Float[Tensor, "batch draw span 2"]
    levels: Int[Tensor, "batch draw"]
    mask: Bool[Tensor, "batch span"]


def slot_counts(
    lengths: Int[Tensor, " batch"], fixed: int | None, per_word: float, extra: int
) -> list[int]:
    """Slots of each sentence: a fixed number, or one that follows its length.

    The second kind is never larger than the number of spans in the sentence. Without words there
    are no slots.
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
    """Slots for training: the expansion of N entities to K slots (section 4.1), levels and noise.

    Args:
        rngs: One generator per sentence.
        counts: Slots of each sentence.
        golds: Entities of each sentence.
        draws: How often every sentence is noised.
        copies: How many slots each entity gets, as far as there are enough; None: equally many, so
            that none are left for anything else.
        levels: Noise levels; the draws of a sentence take one each from equal parts of them.
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
    """How many slots are made of entities?"""
    if gold == 0:
        return 0
    return slots if copies is None else min(gold * copies, slots)


def slot_mask(counts: Sequence[int]) -> Bool[Tensor, "batch span"]:
    """Which slots are real? There is room for one even where nobody has any."""
    most = max([1, *counts])
    return torch.arange(most) < torch.tensor(counts, dtype=torch.long)[:, None]


class KeyedNoise:
    """Gaussian noise for prediction, by sentence, step and slot: more slots only add to it."""

    def __init__(self, rngs: Sequence[Generator]) -> None:
        self._keys = [int(torch.randint(_KEYS, (), generator=rng)) for rng in rngs]

    def at(self, step: int, counts: Sequence[int]) -> Float[Tensor, "batch span 2"]:
        """The noise of one step for so many slots of each sentence."""
        most = max([1, *counts])
        noise = torch.zeros(len(counts), most, 2)
        for row, (key, count) in enumerate(zip(self._keys, counts, strict=True)):
            rng = generator(key, "step", step)
            # Whole blocks, because torch draws few numbers in another way than many.
            blocks = [torch.randn(_BLOCK, 2, generator=rng) for _ in range(0, count, _BLOCK)]
            if blocks:
                noise[row, :count] = torch.cat(blocks)[:count]
        return noise
