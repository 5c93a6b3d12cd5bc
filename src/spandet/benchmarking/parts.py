"""Where the time of a training step goes: forward by part, then backward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import process_time

from torch import nn

from spandet.benchmarking.batches import sample
from spandet.benchmarking.training_step import TrainingStep

_DEPTH = 2
_SMALL = 0.01


@dataclass(frozen=True)
class Part:
    """What one part of the model takes; that of the parts inside it included."""

    name: str
    """With its parents, parted by dots."""
    share: float
    """Of the time of all forward passes."""


@dataclass(frozen=True)
class Profile:
    """Where the time goes, in seconds of the processor."""

    sentences: int
    forward: float
    backward: float
    parts: tuple[Part, ...]
    """In the order of the model; the small ones are left out."""


def profile_of(step: TrainingStep, sentences: int) -> Profile:
    """Forward and backward on about so many sentences of all lengths, each once."""
    batches = sample(step.batches(range(len(step.lengths)), 0), sentences)
    clocks = _Clocks(step.recognizer.modules())
    forward = backward = 0.0
    try:
        for batch in batches:
            start = process_time()
            loss = step.loss(batch)
            middle = process_time()
            step.learn(loss)
            forward, backward = forward + middle - start, backward + process_time() - middle
    finally:
        clocks.remove()
    parts = [Part(name, seconds / forward) for name, seconds in clocks.times.items()]
    large = tuple(part for part in parts if part.share >= _SMALL)
    return Profile(sum(map(len, batches)), forward, backward, large)


class _Clocks:
    """Add up the processor time that modules spend in their forward pass."""

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
        """Look no longer."""
        for hook in self._hooks:
            hook.remove()

    def _start(self, name: str, *_: object) -> None:
        self._began[name] = process_time()

    def _stop(self, name: str, *_: object) -> None:
        self.times[name] += process_time() - self._began[name]
