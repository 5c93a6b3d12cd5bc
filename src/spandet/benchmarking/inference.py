"""What prediction costs beside the bare encoder's forward pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from spandet.benchmarking.batches import Batch, read_at_once, runs_from, sorted_batches
from spandet.benchmarking.clock import Timing, Work, best_times
from spandet.encoding import Encoder, Example
from spandet.inference.recognizer import Recognizer
from spandet.text import Document


def bare_forward(encoder: Encoder, examples: Sequence[Example], device: torch.device) -> Work:
    """The bare encoder's forward pass on a batch that is ready for it.

    That is the transformer and nothing else. A model without one has only its encoder as a whole.
    """
    batch = encoder.prepare(examples).to(device)
    transformer = encoder.transformer
    if transformer is None or batch.pieces is None:
        return lambda: encoder(batch).features
    ids, mask = batch.pieces.ids, batch.pieces.mask.long()
    return lambda: transformer.model(input_ids=ids, attention_mask=mask).last_hidden_state


def bare_name(encoder: Encoder) -> str:
    """What `bare_forward` runs, in words."""
    return "encoder, which has no transformer" if encoder.transformer is None else "transformer"


class Inference:
    """The bare encoder's forward pass against detection down to entities."""

    def __init__(self, recognizer: Recognizer, documents: Sequence[Document]) -> None:
        self._recognizer = recognizer
        examples = [e for d in documents for e in recognizer.examples_of(d)]
        self._examples = recognizer.tagged(examples)
        self._runs = recognizer.encoder.together(self._examples)
        self.lengths = read_at_once(self._runs, [len(example.words) for example in self._examples])
        """Words that are read at once with each sentence."""
        recognizer.modules().eval()

    def batches(self, group: Sequence[int], size: int) -> list[Batch]:
        """Some sentences in batches of one size."""
        return sorted_batches(runs_from(self._runs, group), self.lengths, size)

    def works(self, batch: Batch) -> tuple[Work, Work]:
        """The bare encoder and everything, on the same batch."""
        recognizer, examples = self._recognizer, [self._examples[number] for number in batch]
        forward = bare_forward(recognizer.encoder, examples, recognizer.device)

        @torch.inference_mode()
        def bare() -> None:
            forward()

        def whole() -> None:
            for _ in recognizer.entities(recognizer.detect(examples), recognizer.decoding):
                pass

        return bare, whole


@dataclass(frozen=True)
class PredictPace:
    """How fast `Recognizer.predict` is, from documents to documents, in batches of its own."""

    sentences: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Sentences."""
        return self.sentences / self.seconds


def predict_pace(
    recognizer: Recognizer, documents: Sequence[Document], timing: Timing
) -> PredictPace:
    """Measured on the first documents that have enough sentences together."""
    counts = list(accumulate(len(document.sentences) for document in documents))
    some = documents[: 1 + bisect_left(counts, timing.sentences)]
    (seconds,) = best_times([lambda: list(recognizer.predict(some))], timing)
    return PredictPace(counts[len(some) - 1], seconds)
