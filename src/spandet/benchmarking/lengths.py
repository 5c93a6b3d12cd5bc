"""What the detector alone costs per word, for sentences of growing length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, cycle, islice

import torch
from torch import Tensor, nn

from spandet.benchmarking.clock import Timing, best_times
from spandet.encoding import Example
from spandet.errors import UsageError
from spandet.inference.recognizer import Recognizer
from spandet.seeding import generator
from spandet.tensors import GoldSpans, WordFeatures, total_loss
from spandet.text import Document, Entity, WordRow, WordSpan
from spandet.training.batches import gold_spans

_EVERY = 8
"""Words from one made-up entity to the next."""
_KEYS = ("benchmark", "length")


@dataclass(frozen=True, kw_only=True)
class LengthCost:
    """The detector alone on one sentence, its encoder not counted."""

    words: int
    seconds: float
    """Per word, in prediction or in training (forward and backward)."""
    kept: int | None = None
    """Bytes per word that training keeps from the forward for the backward pass."""


def parse_lengths(text: str) -> list[int]:
    """From `16,64,256`.

    Raises:
        UsageError: not all of them are numbers of words.
    """
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--lengths {text}: expected numbers of words such as 16,64,256")
    return [int(part) for part in parts]


def prediction_by_length(
    recognizer: Recognizer, documents: Iterable[Document], lengths: Sequence[int], timing: Timing
) -> Iterator[LengthCost]:
    """What prediction costs, from word vectors to entities."""
    recognizer.modules().eval()
    for sentence in _sentences(documents, lengths):
        words = _encoded(recognizer, sentence)

        def find(words: WordFeatures = words) -> None:
            with torch.inference_mode():
                believed = recognizer.detector.detect(words, [generator(*_KEYS)])
            for _ in recognizer.entities(believed, recognizer.decoding):
                pass

        (seconds,) = best_times([find], timing)
        yield LengthCost(words=len(sentence), seconds=seconds / len(sentence))


def training_by_length(
    recognizer: Recognizer, documents: Iterable[Document], lengths: Sequence[int], timing: Timing
) -> Iterator[LengthCost]:
    """What training costs, forward and backward, with an entity in every few words."""
    recognizer.modules().train()
    for sentence in _sentences(documents, lengths):
        words, gold = _encoded(recognizer, sentence), _gold(recognizer, sentence)
        forward = partial(_loss, recognizer, words, gold)
        (seconds,) = best_times([partial(_forward_and_backward, forward)], timing)
        kept = kept_bytes(recognizer.detector, forward)
        yield LengthCost(
            words=len(sentence), seconds=seconds / len(sentence), kept=kept // len(sentence)
        )
        recognizer.detector.zero_grad()


def kept_bytes(module: nn.Module, forward: Callable[[], object]) -> int:
    """How much memory a forward pass keeps until the backward pass, weights excluded."""
    sizes: dict[int, int] = {}
    weights = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()  # held, so that no two tensors have one place in turn
    del result
    return sum(sizes.values())


def _sentences(documents: Iterable[Document], lengths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Made-up sentences of these lengths out of the documents' words."""
    words = list(chain.from_iterable(s.words for d in documents for s in d.sentences))
    return (tuple(islice(cycle(words), length)) for length in lengths)


@torch.no_grad()
def _encoded(recognizer: Recognizer, sentence: tuple[str, ...]) -> WordFeatures:
    tags = ("",) * len(sentence) if recognizer.encoder.needs_tags else ()
    batch = recognizer.encoder.prepare([Example(sentence, tags)]).to(recognizer.device)
    words: WordFeatures = recognizer.encoder(batch)
    return words


def _gold(recognizer: Recognizer, sentence: tuple[str, ...]) -> GoldSpans:
    starts = range(0, len(sentence) - 1, _EVERY)
    entities = [Entity(WordSpan(start, start + 2), recognizer.labels[0]) for start in starts]
    fragments = recognizer.detector.links_fragments
    return gold_spans([WordRow(sentence, entities)], recognizer.labels, fragments=fragments)


def _forward_and_backward(forward: Callable[[], Tensor]) -> None:
    forward().backward()


def _loss(recognizer: Recognizer, words: WordFeatures, gold: GoldSpans) -> Tensor:
    return total_loss(recognizer.detector(words, gold, [generator(*_KEYS)]))
