"""Training objectives for text without labels: the choice of predicted pieces, and the loss."""

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
    """A block with masked pieces."""

    ids: np.ndarray
    """Input of the encoder."""
    places: np.ndarray
    """Places of the predicted pieces, in order."""
    targets: np.ndarray
    """The original pieces at these places."""


@dataclass(frozen=True)
class Masking:
    """Chooses and masks pieces; the result depends on the block and its random generator only."""

    settings: PretrainingSettings
    mask: int
    """The mask piece."""
    never: np.ndarray
    """Whether a piece of the vocabulary is special; special pieces are never masked."""
    random: np.ndarray
    """Pieces that may replace a masked piece."""

    def apply(self, block: Block, rng: Generator, *, cover_all: bool = False) -> Masked:
        """Choose pieces (or whole words) of a block and mask them.

        Args:
            block: The block to mask.
            rng: Random generator of the block.
            cover_all: Replace every chosen piece by the mask. A piece that stays visible can be
                copied, which would make the measured loss too low.
        """
        places = self._choose(block, rng)
        targets = block.ids[places]
        ids = block.ids.copy()
        draw = torch.rand(len(places), generator=rng, dtype=torch.float64).numpy()
        drawn = torch.randint(len(self.random), (len(places),), generator=rng).numpy()
        kept = 0.0 if cover_all else self.settings.kept_share
        random = 0.0 if cover_all else self.settings.random_share
        covered = np.where(draw < kept + random, self.random[drawn], self.mask)
        ids[places] = np.where(draw < kept, targets, covered)
        return Masked(ids, places, targets)

    def _choose(self, block: Block, rng: Generator) -> np.ndarray:
        """Places of random pieces or words, as close to the wanted share as whole units allow."""
        maskable = np.flatnonzero(~self.never[block.ids])
        if not len(maskable):
            return maskable
        words = np.cumsum(block.starts)[maskable]
        units = words if self.settings.whole_words else np.arange(len(maskable))
        _, units, sizes = np.unique(units, return_inverse=True, return_counts=True)
        order = torch.randperm(len(sizes), generator=rng).numpy()
        covered = np.cumsum(sizes[order])
        wanted = self.settings.mask_share * len(maskable)
        count = int(np.abs(covered - wanted).argmin()) + 1
        return maskable[np.isin(units, order[:count])]


_NAME = "spandet-full-precision"


def use_fp32_attention(model: Any) -> None:
    """Compute an encoder's attention in fp32, whatever the precision of the rest.

    On a CPU, the backward pass of torch's attention takes several times as long in bf16 as in fp32,
    a fifth of a training step. Encoders with their own attention implementation are not changed.
    """
    if model.config._attn_implementation == "sdpa":  # noqa: SLF001 (there is no public name)
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
    """Masked blocks as tensors."""

    ids: Int[Tensor, "batch piece"]
    places: Int[Tensor, " target"]
    """Places of the predicted pieces, counted over all blocks."""
    targets: Int[Tensor, " target"]
    """The original pieces at these places."""


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of the texts that an objective may use."""

    counts: np.ndarray
    """How often each piece of the vocabulary occurs in the training text."""
    occurring: np.ndarray
    """Whether a piece occurs in any text, held-out text included."""
    special: np.ndarray
    """Whether a piece is special."""
    mask: int
    """The mask piece."""


class Objective(nn.Module, ABC):
    """An encoder with a loss to train it and a measure for held-out text."""

    encoder: Any

    @abstractmethod
    def prepare(
        self, blocks: Sequence[Block], rngs: Sequence[Generator], *, measured: bool = False
    ) -> Batch:
        """Blocks of equal length as tensors, for `forward` or, if `measured`, for `measure`.

        Each block has its own random generator.
        """

    @abstractmethod
    def forward(self, batch: Batch) -> dict[str, Loss]:
        """Train: the parts of the loss, in fp32."""

    @abstractmethod
    def measure(self, batch: Batch) -> dict[str, Loss]:
        """Evaluate: "loss", and "accuracy" as the number of correct predictions."""

    def states(self, ids: Int[Tensor, "batch piece"]) -> Float[Tensor, "item dim"]:
        """The encoder's output vectors of all blocks. There is no padding and no attention mask."""
        states: Tensor = self.encoder(input_ids=ids).last_hidden_state
        return states.flatten(0, 1)


class MaskedPieces(Objective):
    """Masked language modelling: predict masked pieces from their context (BERT, section 3.1).

    The output layer is computed at masked places only, and shares its matrix with the input
    embeddings. Its bias is initialised with the log frequencies of the pieces, and the transform
    before it with the identity.
    """

    _classes: Tensor
    """The pieces that can be predicted."""
    _numbers: Tensor
    """The number of each piece among them."""

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
        self, blocks: Sequence[Block], rngs: Sequence[Generator], *, measured: bool = False
    ) -> Batch:
        """Mask some pieces of each block; if `measured`, no masked piece stays visible."""
        masked = [
            self._masking.apply(block, rng, cover_all=measured)
            for block, rng in zip(blocks, rngs, strict=True)
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
        """Cross-entropy of the masked pieces, and the number of correct predictions."""
        logits = self.logits(batch)
        loss = self._loss(logits, batch)
        correct = (logits.argmax(dim=1) == self._numbers[batch.targets]).sum()
        return {"loss": loss, "accuracy": Loss(correct.float(), loss.count)}

    def logits(self, batch: Batch) -> Float[Tensor, "target class"]:
        """Logits of the pieces that can be predicted, at each masked place."""
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
