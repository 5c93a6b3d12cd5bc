"""Slots: those of a training step (section 4.1), their entities (appendix A), and in prediction.

A slot is one of the K noisy spans of a sentence. All random numbers come from one generator per
sentence, in shapes that depend on the sentence only: a sentence gets the same noise alone, in any
batch and in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from spandet.detectors.boundary_diffusion.noise import NoiseSpace
from spandet.spans.assignment import assign, by_sentence
from spandet.spans.flat import count_mask
from spandet.spans.overlap import iou
from spandet.tensors import GoldSpans

_RANDOM_MEAN, _RANDOM_DEVIATION = 0.5, 1 / 6


@dataclass(frozen=True)
class Slots:
    """The slots of a training step: several draws per sentence, at different noise levels."""

    origin: Int[Tensor, "batch draw span"]
    """Index of the entity that a slot is a noisy copy of; -1 for none."""
    fill: Int[Tensor, "batch draw span"]
    """Number of a slot among those without an entity; -1 for the others."""
    random: Float[Tensor, "batch draw span 2"]
    """Random boundaries for slots without an entity, as shares of the sentence."""
    noise: Float[Tensor, "batch draw span 2"]
    """ε"""
    levels: Int[Tensor, "batch draw"]
    """t"""
    mask: Bool[Tensor, "batch span"]


def draw_slots(
    rngs: Sequence[Generator],
    counts: Sequence[int],
    golds: Sequence[int],
    *,
    draws: int,
    copies: int | None,
    levels: int,
) -> Slots:
    """Section 4.1, expansion: K slots from N entities, with noise and noise levels.

    Args:
        rngs: One random generator per sentence.
        counts: Number of slots of each sentence.
        golds: Number of entities of each sentence.
        draws: Number of draws per sentence.
        copies: Slots per entity, if there are enough (the random strategy); None: all slots are
            copies of entities, in equal numbers (the repetition strategy).
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
    random = _RANDOM_MEAN + _RANDOM_DEVIATION * random
    return Slots(origin, fill, random, noise, level, count_mask(counts))


def _copies(gold: int, slots: int, copies: int | None) -> int:
    """Number of slots that are copies of entities."""
    if gold == 0:
        return 0
    return slots if copies is None else min(gold * copies, slots)


def clean_latents(
    slots: Slots,
    gold: GoldSpans,
    proposed: Int[Tensor, "batch proposed 2"] | None,
    lengths: Int[Tensor, "batch 1 1"],
    *,
    space: NoiseSpace,
    expansion: str,
) -> Float[Tensor, "batch _ _ 2"]:
    """x_0 of all slots: their entities, and what the expansion gives slots without one."""
    rows = torch.arange(len(lengths), device=lengths.device)[:, None, None]
    if proposed is not None and expansion == "proposals":
        clean = space.latents(proposed[rows, slots.fill.clamp(min=0)], lengths)
    elif proposed is not None and expansion == "denoised":
        clean = space.latents(proposed.unflatten(1, slots.noise.shape[1:3]), lengths)
    elif expansion == "repeat":  # without entities: copies of the whole sentence
        clean = space.latents(torch.stack([torch.zeros_like(lengths), lengths], dim=-1), lengths)
    else:
        clean = space.from_unit(slots.random)
    if gold.spans.shape[1]:
        copied = space.latents(gold.spans[rows, slots.origin.clamp(min=0)], lengths)
        clean = torch.where((slots.origin >= 0)[..., None], copied, clean)
    return clean


def slot_costs(
    first_probs: Float[Tensor, "batch span word"],
    last_probs: Float[Tensor, "batch span word"],
    label_probs: Float[Tensor, "batch span label"],
    gold: GoldSpans,
) -> Float[Tensor, "batch span gold"]:
    """Appendix A, matching cost: -Σ P^δ(entity), δ ∈ {l, r, c}; that of ∅ is 0."""

    def at(probs: Tensor, index: Tensor) -> Tensor:
        return probs.gather(2, index[:, None].expand(-1, probs.shape[1], -1))

    starts, ends = gold.spans.unbind(dim=-1)
    return -(at(first_probs, starts) + at(last_probs, ends - 1) + at(label_probs, gold.labels))


def match_slots(
    costs: Float[Tensor, "batch span gold"],
    free: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    *,
    per_entity: int | None,
) -> Int[Tensor, "batch span"]:
    """Appendix A, optimal matching: π̂, the entity of each slot at the lowest total cost.

    -1 stands for ∅: slots that are not free, or left over.

    Args:
        costs: Cost of every pair.
        free: Mask of the slots that take part.
        gold: Mask of the entities.
        per_entity: Maximum number of slots per entity (1 in the paper); None: all slots get an
            entity, in equal numbers.
    """

    def solve(own: Float[np.ndarray, "slot entity"]) -> Int[np.ndarray, " slot"]:
        slots, entities = own.shape
        many = slots if per_entity is None else per_entity * entities
        columns = np.resize(np.arange(entities), many)  # 0, 1, …, 0, 1, …
        found = assign(own[:, columns], np.zeros(slots), matching="raw", rest="none")
        return np.where(found < 0, -1, columns[found])

    return by_sentence(solve, free, gold, costs)


def overlapped(
    spans: Int[Tensor, "batch span 2"], free: Bool[Tensor, "batch span"], gold: GoldSpans
) -> Int[Tensor, "batch span"]:
    """The entity with the highest IoU for each free slot; -1 for slots that overlap none."""
    if gold.spans.shape[1] == 0:
        return torch.full(spans.shape[:2], -1, device=spans.device)
    best, index = (iou(spans[:, :, None], gold.spans[:, None]) * gold.mask[:, None]).max(dim=2)
    return torch.where(free & (best > 0), index, -1)


def slot_labels(targets: Int[Tensor, "batch span"], gold: GoldSpans) -> Int[Tensor, "batch span"]:
    """The label of the entity that each slot has to find; 0 for none."""
    if not gold.labels.shape[1]:
        return torch.zeros_like(targets)
    return torch.where(targets >= 0, gold.labels.gather(1, targets.clamp(min=0)), 0)


@dataclass(frozen=True)
class SlotState:
    """The slots between two denoising steps of prediction."""

    latents: Float[Tensor, "batch span 2"]
    """x_τ"""
    spans: Int[Tensor, "batch span 2"]
    """Spans that they point at; before the first step proposals, or -1."""
    slots: Float[Tensor, "batch span dim"]
    """H̄_X"""
    probs: Float[Tensor, "batch span 2"]
    """P^l and P^r of the boundaries."""
    moving: Bool[Tensor, "batch span"]
    """Slots that the next step computes."""

    def moving_index(self) -> tuple[Tensor, Tensor]:
        """Rows and columns of the moving slots, padded with others to equal numbers."""
        most = int(self.moving.sum(dim=1).max())
        order = (~self.moving).byte().argsort(dim=1, stable=True)[:, :most]
        return torch.arange(len(order), device=order.device)[:, None], order

    def updated(
        self, index: tuple[Tensor, Tensor], spans: Tensor, slots: Tensor, probs: Tensor, on: Tensor
    ) -> "SlotState":
        """New values for the moving slots of an index; `on`: those that are to move on."""
        moving = self.moving[index]

        def put(old: Tensor, new: Tensor) -> Tensor:
            kept = torch.where(moving[..., None], new.to(old.dtype), old[index])
            return old.index_put(index, kept)

        return replace(
            self,
            spans=put(self.spans, spans),
            slots=put(self.slots, slots),
            probs=put(self.probs, probs),
            moving=self.moving.index_put(index, on),
        )
