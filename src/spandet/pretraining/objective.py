"""Training objectives for text without labels: which pieces are predicted, and the loss of that."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from spandet.pretraining.corpus import Block
from spandet.pretraining.settings import PretrainingSettings
from spandet.tensors import Loss


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


_NAME = "spandet-full-precision"


def use_fp32_attention(model: Any) -> None:
    """Compute an encoder's attention in fp32, whatever the precision of the rest.

    On a CPU, torch's attention needs several times as long to go backward in bf16 as in fp32, which
    is a fifth of a training step. Encoders with an attention of their own are left as they are.
    """
    if model.config._attn_implementation == "sdpa":  # noqa: SLF001 (transformers has no other name)
        AttentionInterface.register(_NAME, _attend)
        model.set_attn_implementation(_NAME)


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    with torch.autocast(query.device.type, enabled=False):
        return sdpa_attention_forward(
            module, query.float(), key.float(), value.float(), mask, **options
        )


@dataclass(frozen=True)
class Batch:
    """Blocks as an objective wants the encoder to read them."""

    ids: Int[Tensor, "batch piece"]
    places: Int[Tensor, " target"]
    """Where something is predicted, counted over all blocks."""
    targets: Int[Tensor, " target"]
    """What is right there."""


@dataclass(frozen=True)
class TextStatistics:
    """What an objective may know of the texts."""

    counts: np.ndarray
    """How often each piece of the vocabulary occurs in the training text."""
    occurring: np.ndarray
    """Is it in any text, held-out text included?"""
    special: np.ndarray
    """Is it a special piece, which stands for no text?"""
    mask: int
    """The mask piece."""


class Objective(nn.Module, ABC):
    """An encoder with what is needed to train it, and to measure it on held-out text."""

    encoder: Any

    @abstractmethod
    def prepare(
        self, blocks: Sequence[Block], chance: Sequence[Generator], *, measured: bool = False
    ) -> Batch:
        """Blocks of equal length as tensors, for `forward` or to be `measured`.

        Each depends on its own generator only.
        """

    @abstractmethod
    def forward(self, batch: Batch) -> dict[str, Loss]:
        """Train: the parts of the loss, in full precision."""

    @abstractmethod
    def measure(self, batch: Batch) -> dict[str, Loss]:
        """Evaluate: "loss", and "accuracy" as the number of right predictions."""

    def states(self, ids: Int[Tensor, "batch piece"]) -> Float[Tensor, "item dim"]:
        """The encoder's last vectors, one block after another. Without padding there is no mask."""
        states: Tensor = self.encoder(input_ids=ids).last_hidden_state
        return states.flatten(0, 1)


class MaskedPieces(Objective):
    """Masked language modelling: predict pieces from what is around them (BERT, section 3.1).

    Only the vectors at masked places go through the output layer, whose matrix is that of the
    input embeddings. Its bias begins as the logarithm of how often a piece occurs, and the
    transform before it as the identity.
    """

    _classes: Tensor
    """The pieces that can be predicted."""
    _numbers: Tensor
    """The place of each piece among them."""

    def __init__(
        self, encoder: Any, statistics: TextStatistics, settings: PretrainingSettings
    ) -> None:
        super().__init__()
        self.encoder = encoder
        size = int(encoder.config.hidden_size)
        self.dense = nn.Linear(size, size)
        nn.init.zeros_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)
        self.norm = nn.LayerNorm(size)
        frequencies = torch.from_numpy(np.log((statistics.counts + 1) / statistics.counts.sum()))
        kept = torch.from_numpy(np.flatnonzero(statistics.occurring))
        self._all = settings.vocabulary == "all"
        classes = torch.arange(len(frequencies)) if self._all else kept
        self.bias = nn.Parameter(frequencies[classes].float())
        numbers = torch.zeros(len(frequencies), dtype=torch.long)
        numbers[classes] = torch.arange(len(classes))
        self.register_buffer("_classes", classes, persistent=False)
        self.register_buffer("_numbers", numbers, persistent=False)
        common = statistics.occurring & ~statistics.special
        self._masking = Masking(
            settings, statistics.mask, statistics.special, np.flatnonzero(common)
        )

    def prepare(
        self, blocks: Sequence[Block], chance: Sequence[Generator], *, measured: bool = False
    ) -> Batch:
        """Mask some pieces of each block; none of them stays visible when it is measured."""
        masked = [
            self._masking.apply(block, one, cover_all=measured)
            for block, one in zip(blocks, chance, strict=True)
        ]
        width = len(masked[0].ids)
        places = [one.places + number * width for number, one in enumerate(masked)]
        return Batch(
            torch.from_numpy(np.stack([one.ids for one in masked])),
            torch.from_numpy(np.concatenate(places)),
            torch.from_numpy(np.concatenate([one.targets for one in masked])),
        )

    def forward(self, batch: Batch) -> dict[str, Loss]:
        """Cross-entropy of the masked pieces."""
        return {"masked": self._loss(self.logits(batch), batch)}

    def measure(self, batch: Batch) -> dict[str, Loss]:
        """Cross-entropy of the masked pieces, and how many are predicted."""
        logits = self.logits(batch)
        loss = self._loss(logits, batch)
        right = (logits.argmax(dim=1) == self._numbers[batch.targets]).sum()
        return {"loss": loss, "accuracy": Loss(right.float(), loss.count)}

    def logits(self, batch: Batch) -> Float[Tensor, "target class"]:
        """Of the pieces that can be predicted, at each masked place."""
        states = self.states(batch.ids)[batch.places]
        states = self.norm(states + F.gelu(self.dense(states)))
        table: Tensor = self.encoder.get_input_embeddings().weight
        return F.linear(states, table if self._all else table[self._classes], self.bias).float()

    def _loss(self, logits: Float[Tensor, "target class"], batch: Batch) -> Loss:
        numbers = self._numbers[batch.targets]
        total = F.cross_entropy(logits, numbers, reduction="sum")
        return Loss(total, torch.tensor(float(len(numbers)), device=total.device))


OBJECTIVES: Mapping[str, Callable[[Any, TextStatistics, PretrainingSettings], Objective]] = {
    "masked": MaskedPieces,
}
