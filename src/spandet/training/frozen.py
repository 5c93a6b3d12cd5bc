"""While the transformer does not learn, what it says is computed once and kept."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from spandet.encoding import Encoder
from spandet.training.batches import fill
from spandet.training.data import TrainingSentences
from spandet.training.settings import TrainingSettings


class FrozenOutputs:
    """What the transformer says of each sentence of the training data, in main memory."""

    def __init__(self) -> None:
        self._rows: dict[int, Tensor] = {}

    @staticmethod
    def batches(
        sentences: TrainingSentences, settings: TrainingSettings
    ) -> Iterator[tuple[int, ...]]:
        """All sentences in batches that depend on the data alone: a resumed run gets equal bits."""
        return fill(sentences.runs, sentences, settings)

    def add(
        self,
        batch: tuple[int, ...],
        encoder: Encoder,
        sentences: TrainingSentences,
        device: torch.device,
    ) -> None:
        """Compute and keep what it says of these sentences."""
        prepared = encoder.prepare([sentences.examples[i] for i in batch])
        said = encoder.transformer_words(prepared.to(device)).cpu()
        self._rows |= dict(zip(batch, said.split(prepared.cached_rows), strict=True))

    def of(self, batch: tuple[int, ...]) -> Tensor:
        """What it says of these sentences, as `EncoderBatch.cached` wants it."""
        return torch.cat([self._rows[i] for i in batch])

    @property
    def megabytes(self) -> int:
        """How much memory it takes."""
        return sum(rows.nbytes for rows in self._rows.values()) // 2**20
