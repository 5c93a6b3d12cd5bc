"""Time of a detector by sentence length, and by module in a training step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, cycle, islice
from time import process_time

import torch
from torch import Tensor, nn

from spandet.benchmarking.cost import TrainingWorkload
from spandet.benchmarking.measuring import Timing, best_times, sample
from spandet.encoding import Example
from spandet.errors import UsageError
from spandet.inference.engine import to_numpy
from spandet.inference.recognizer import Recognizer
from spandet.seeding import generator
from spandet.tensors import GoldSpans, WordFeatures, total_loss
from spandet.text import Document, Entity, WordRow, WordSpan
from spandet.training.batches import gold_spans

_ENTITY_DISTANCE = 8
"""Words from one synthetic entity to the next."""
_RNG_KEYS = ("benchmark", "length")
_DEPTH = 2
_MINIMUM_SHARE = 0.01


@dataclass(frozen=True, kw_only=True)
class LengthCost:
    """Time and memory of the detector alone on one sentence, without the encoder."""

    words: int
    seconds: float
    """Per word, in prediction or in training (forward and backward)."""
    kept: int | None = None
    """Bytes per word that training stores for the backward pass."""


@dataclass(frozen=True)
class ModuleTime:
    """Time of one module of the model, including its submodules."""

    name: str
    """The dotted path in the model."""
    share: float
    """Share of the time of all forward passes."""


@dataclass(frozen=True)
class Profile:
    """The time of training steps, in seconds of CPU time."""

    sentences: int
    forward: float
    backward: float
    modules: tuple[ModuleTime, ...]
    """In the order of the model; those with a small share are omitted."""


def parse_lengths(text: str) -> list[int]:
    """Read lengths such as `16,64,256`.

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
    """Time prediction from word vectors to entities on synthetic sentences of these lengths."""
    recognizer.modules().eval()
    for sentence in _sentences(documents, lengths):
        words = _encoded(recognizer, sentence)

        def find(words: WordFeatures = words) -> None:
            with torch.inference_mode():
                predictions = recognizer.detector.detect(words, [generator(*_RNG_KEYS)])
            for _ in recognizer.entities(to_numpy(predictions), recognizer.decoding):
                pass

        (seconds,) = best_times([find], timing)
        yield LengthCost(words=len(sentence), seconds=seconds / len(sentence))


def training_by_length(
    recognizer: Recognizer, documents: Iterable[Document], lengths: Sequence[int], timing: Timing
) -> Iterator[LengthCost]:
    """Time forward and backward pass on synthetic sentences with an entity every few words."""
    recognizer.modules().train()
    for sentence in _sentences(documents, lengths):
        words, gold = _encoded(recognizer, sentence), _gold(recognizer, sentence)
        forward = partial(_loss, recognizer, words, gold)
        (seconds,) = best_times([partial(_forward_and_backward, forward)], timing)
        kept = stored_bytes(recognizer.detector, forward)
        yield LengthCost(
            words=len(sentence), seconds=seconds / len(sentence), kept=kept // len(sentence)
        )
        recognizer.detector.zero_grad()


def stored_bytes(module: nn.Module, forward: Callable[[], object]) -> int:
    """Memory that a forward pass stores for the backward pass, without weights."""
    sizes: dict[int, int] = {}
    weights = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}

    def store(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(store, lambda tensor: tensor):
        result = forward()  # kept alive, so that no address is used twice
    del result
    return sum(sizes.values())


def _sentences(documents: Iterable[Document], lengths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Synthetic sentences of these lengths, from the words of the documents."""
    words = list(chain.from_iterable(s.words for d in documents for s in d.sentences))
    return (tuple(islice(cycle(words), length)) for length in lengths)


@torch.no_grad()
def _encoded(recognizer: Recognizer, sentence: tuple[str, ...]) -> WordFeatures:
    tags = ("",) * len(sentence) if recognizer.encoder.needs_tags else ()
    batch = recognizer.encoder.prepare([Example(sentence, tags)]).to(recognizer.device)
    words: WordFeatures = recognizer.encoder(batch)
    return words


def _gold(recognizer: Recognizer, sentence: tuple[str, ...]) -> GoldSpans:
    starts = range(0, len(sentence) - 1, _ENTITY_DISTANCE)
    entities = [Entity(WordSpan(start, start + 2), recognizer.labels[0]) for start in starts]
    fragments = recognizer.detector.links_fragments
    return gold_spans([WordRow(sentence, entities)], recognizer.labels, fragments=fragments)


def _forward_and_backward(forward: Callable[[], Tensor]) -> None:
    forward().backward()


def _loss(recognizer: Recognizer, words: WordFeatures, gold: GoldSpans) -> Tensor:
    return total_loss(recognizer.detector(words, gold, [generator(*_RNG_KEYS)]))


def profile_training(workload: TrainingWorkload, sentences: int) -> Profile:
    """Time training steps on about this many sentences of all lengths, each once."""
    batches = sample(workload.batches(range(len(workload.lengths)), 0), sentences)
    timers = _ModuleTimers(workload.recognizer.modules())
    forward = backward = 0.0
    try:
        for batch in batches:
            start = process_time()
            loss = workload.loss(batch)
            middle = process_time()
            workload.update(loss)
            forward, backward = forward + middle - start, backward + process_time() - middle
    finally:
        timers.remove()
    modules = [ModuleTime(name, seconds / forward) for name, seconds in timers.times.items()]
    large = tuple(module for module in modules if module.share >= _MINIMUM_SHARE)
    return Profile(sum(map(len, batches)), forward, backward, large)


class _ModuleTimers:
    """Forward hooks that add up the CPU time of each module."""

    def __init__(self, modules: nn.Module) -> None:
        self.times: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._hooks = []
        for name, module in modules.named_modules():
            if name and name.count(".") <= _DEPTH:
                self.times[name] = 0.0
                self._hooks += [
                    module.register_forward_pre_hook(partial(self._start, name)),
                    module.register_forward_hook(partial(self._stop, name)),
                ]

    def remove(self) -> None:
        """Remove the hooks."""
        for hook in self._hooks:
            hook.remove()

    def _start(self, name: str, *_: object) -> None:
        self._began[name] = process_time()

    def _stop(self, name: str, *_: object) -> None:
        self.times[name] += process_time() - self._began[name]
