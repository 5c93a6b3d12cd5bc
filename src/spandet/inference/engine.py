"""The computation of a prediction with torch: examples in, candidates out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from spandet.detectors import Detector
from spandet.encoding import Encoder, Example
from spandet.inference.batching import batches
from spandet.inference.candidates import Candidates, LinkProbs
from spandet.seeding import generator
from spandet.tensors import SpanPredictions, WordFeatures, at_least_float32


class TorchEngine:
    """Encoder and detector. `predict` uses `prepare`, `batches` and `candidates` only."""

    def __init__(
        self, encoder: Encoder, detector: Detector, *, device: torch.device, seed: int = 0
    ) -> None:
        """Take encoder and detector, and switch their dropout off.

        Args:
            encoder: Computes word vectors.
            detector: Computes scored spans from them.
            device: Device of the weights.
            seed: Seed of the random generators; each sentence has its own generator.
        """
        self.encoder = encoder.eval()
        self.detector = detector.eval()
        self._device = device
        self._seed = seed

    def prepare(self, examples: Sequence[Example]) -> Sequence[Example]:
        """The examples with their sub-word pieces."""
        return self.encoder.with_pieces(examples)

    def batches(self, examples: Sequence[Example], pieces: int) -> Iterable[tuple[int, ...]]:
        """Batches of indices of prepared examples, each of at most `pieces` pieces."""
        words = [len(example.words) for example in examples]
        encoder = self.encoder
        return batches(encoder.together(examples), encoder.sizes(examples), words, pieces)

    def candidates(self, examples: Sequence[Example]) -> Candidates:
        """The scored spans of one batch."""
        return to_numpy(self.detect(examples))

    @torch.inference_mode()
    def detect(self, examples: Sequence[Example], *, keep_all: bool = False) -> SpanPredictions:
        """The predictions of the detector for one batch, with their trace.

        Args:
            examples: The batch.
            keep_all: Keep candidates that an early stage of the detector would drop.
        """
        rngs = [generator(self._seed, *example.words) for example in examples]
        return self.detector.detect(self.encode(examples), rngs, keep_all=keep_all)

    @torch.inference_mode()
    def encode(self, examples: Sequence[Example]) -> WordFeatures:
        """The word vectors of one batch."""
        words: WordFeatures = self.encoder(self.encoder.prepare(examples).to(self._device))
        return words


def to_numpy(predictions: SpanPredictions) -> Candidates:
    """Copy the predictions of a detector to the CPU, as NumPy arrays; the trace is left out."""
    links, type_probs = predictions.links, predictions.type_probs
    return Candidates(
        _array(predictions.spans),
        _probs(predictions.label_probs),
        _array(predictions.mask),
        None if links is None else LinkProbs(_probs(links.together), _probs(links.alone)),
        None if type_probs is None else _probs(type_probs),
    )


def _probs(values: torch.Tensor) -> np.ndarray:
    return _array(at_least_float32(values))


def _array(values: torch.Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().numpy()
    return array
