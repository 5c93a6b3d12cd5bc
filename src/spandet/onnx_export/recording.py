"""What the parts of a model are asked when it works: the example inputs of their graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from spandet.encoding import Example
from spandet.inference.recognizer import Recognizer
from spandet.layers.exported import Answer, Part, answer_by, answer_itself, method_of, parts_of

Inputs = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class Call:
    """One question to a part, and what it answered."""

    inputs: Inputs
    answer: Answer

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs that there are."""
        return tuple(tensor for tensor in self.inputs if tensor is not None)

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the inputs."""
        return tuple(tuple(tensor.shape) for tensor in self.tensors)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The answer, always as a tuple."""
        return self.answer if isinstance(self.answer, tuple) else (self.answer,)


@dataclass(frozen=True)
class Calls:
    """All questions to one part."""

    part: Part
    calls: list[Call] = field(default_factory=list)

    def example(self) -> Call:
        """The call that shows best which sizes have nothing to do with each other.

        No varying size is 0 or 1, which graphs would take for a constant, and few are equal.
        """
        return max(self.calls, key=self._worth)

    def varying(self) -> set[tuple[int, int]]:
        """The inputs and axes whose sizes are not always the same."""
        first = self.calls[0].sizes
        return {
            (number, axis)
            for call in self.calls
            for number, shape in enumerate(call.sizes)
            for axis, size in enumerate(shape)
            if size != first[number][axis]
        }

    def _worth(self, call: Call) -> tuple[bool, int, int]:
        sizes = [call.sizes[number][axis] for number, axis in self.varying()]
        return min(sizes, default=2) > 1, len(set(sizes)), -sum(t.numel() for t in call.tensors)


def record(recognizer: Recognizer, batches: Sequence[Sequence[Example]]) -> list[Calls]:
    """What all parts are asked while the recognizer reads these batches."""
    root = recognizer.modules().eval()
    recorded = [Calls(part) for part in parts_of(root)]
    with _listening(root, recorded):
        for batch in batches:
            for keep_all in (False, True):
                recognizer.detect(batch, keep_all=keep_all)
    return recorded


@contextmanager
def _listening(root: nn.Module, recorded: Sequence[Calls]) -> Iterator[None]:
    parts = [calls.part for calls in recorded]
    methods = [method_of(root, part) for part in parts]
    for calls, method in zip(recorded, methods, strict=True):
        answer_by(root, calls.part, _heard(calls, method))
    try:
        yield
    finally:
        answer_itself(root, parts)


def _heard(calls: Calls, method: Callable[..., Any]) -> Callable[..., Any]:
    def answer(*inputs: Tensor | None) -> Any:
        given = method(*calls.part.fixed, *inputs)
        calls.calls.append(Call(inputs, given))
        return given

    return answer
