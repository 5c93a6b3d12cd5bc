"""Which pieces of a block are predicted, and what the encoder reads in their place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator

from spandet.pretraining.blocks import Block
from spandet.pretraining.settings import PretrainingSettings


@dataclass(frozen=True)
class Masked:
    """A block of which some pieces are to be predicted."""

    ids: np.ndarray
    """What the encoder reads."""
    places: np.ndarray
    """Where pieces are predicted, in order."""
    targets: np.ndarray
    """The pieces that were there."""


@dataclass(frozen=True)
class Masking:
    """The law by which pieces are masked: it depends on the block and its generator alone."""

    settings: PretrainingSettings
    mask: int
    """The mask piece."""
    never: np.ndarray
    """Of each piece of the vocabulary: is it special, so that it is never masked?"""
    random: np.ndarray
    """Pieces that may stand in for another."""

    def apply(self, block: Block, chance: Generator, *, cover_all: bool = False) -> Masked:
        """Choose pieces of a block, or words of it, and cover them.

        Args:
            block: What to mask.
            chance: All that the choice depends on besides the block.
            cover_all: Replace every chosen piece by the mask. A piece that is left as it is can be
                copied, so that a loss with such pieces does not say how well others are predicted.
        """
        places = self._choose(block, chance)
        targets = block.ids[places]
        ids = block.ids.copy()
        fate = torch.rand(len(places), generator=chance, dtype=torch.float64).numpy()
        drawn = torch.randint(len(self.random), (len(places),), generator=chance).numpy()
        kept = 0.0 if cover_all else self.settings.kept_share
        random = 0.0 if cover_all else self.settings.random_share
        covered = np.where(fate < kept + random, self.random[drawn], self.mask)
        ids[places] = np.where(fate < kept, targets, covered)
        return Masked(ids, places, targets)

    def _choose(self, block: Block, chance: Generator) -> np.ndarray:
        """As near to the share of all pieces that can be masked as whole units come."""
        can = np.flatnonzero(~self.never[block.ids])
        if not len(can):
            return can
        alone = not self.settings.whole_words
        units = np.arange(len(can)) if alone else np.cumsum(block.starts)[can]
        _, units, sizes = np.unique(units, return_inverse=True, return_counts=True)
        order = torch.randperm(len(sizes), generator=chance).numpy()
        covered = np.cumsum(sizes[order])
        wanted = self.settings.mask_share * len(can)
        count = int(np.abs(covered - wanted).argmin()) + 1
        return can[np.isin(units, order[:count])]
