"""Recorded calls of the methods that are to be exported: the example inputs of their graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from spandet.encoding import Example
from spandet.inference.flattening import RESULT, Arguments, Flat, flatten
from spandet.inference.onnx_methods import ExportedMethod, exported_modules, methods_of
from spandet.inference.recognizer import Recognizer


@dataclass(frozen=True)
class Call:
    """The arguments and the result of one call, flat."""

    arguments: Arguments
    result: Flat

    @property
    def inputs(self) -> dict[str, Tensor]:
        """The tensors among the arguments, by path."""
        return self.arguments.tensors

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs."""
        return {path: tuple(tensor.shape) for path, tensor in self.inputs.items()}

    def same_structure(self, other: Call) -> bool:
        """Do two calls differ in nothing but tensors?"""
        return (
            self.arguments.structure == other.arguments.structure
            and self.result.structure == other.result.structure
        )


@dataclass(frozen=True)
class Calls:
    """All recorded calls of one method."""

    method: ExportedMethod
    calls: list[Call] = field(default_factory=list)

    def example(self) -> Call:
        """The call that shows best which sizes are independent of each other.

        No varying size is 0 or 1, which torch.export would take for a constant, and few are equal.
        """
        return max(self.calls, key=self._rank)

    def varying(self) -> set[tuple[str, int]]:
        """The inputs and axes whose sizes differ between calls."""
        first = self.calls[0].shapes
        return {
            (path, axis)
            for call in self.calls
            for path, shape in call.shapes.items()
            for axis, size in enumerate(shape)
            if size != first[path][axis]
        }

    def _rank(self, call: Call) -> tuple[bool, int, int]:
        sizes = [call.shapes[path][axis] for path, axis in self.varying()]
        numbers = -sum(tensor.numel() for tensor in call.inputs.values())
        return min(sizes, default=2) > 1, len(set(sizes)), numbers


def record(recognizer: Recognizer, batches: Sequence[Sequence[Example]]) -> list[Calls]:
    """Predict these batches and record every call of a method that can be exported.

    A method has an entry for each combination of its fixed arguments. A module of which no method
    was called has an empty entry.
    """
    root = recognizer.modules().eval()
    recorded: dict[tuple[str, str], dict[tuple[int, ...], Calls]] = {}
    with _recording(root, recorded):
        for batch in batches:
            for keep_all in (False, True):
                recognizer.detect(batch, keep_all=keep_all)
    used = {path for (path, _), own in recorded.items() if own}
    return [
        *(own[fixed] for own in recorded.values() for fixed in sorted(own)),
        *(Calls(ExportedMethod(path, name)) for path, name in recorded if path not in used),
    ]


@contextmanager
def _recording(
    root: nn.Module, recorded: dict[tuple[str, str], dict[tuple[int, ...], Calls]]
) -> Iterator[None]:
    modules = list(exported_modules(root))
    for path, module in modules:
        for name in methods_of(module):
            own = recorded.setdefault((path, name), {})
            vars(module)[name] = _recorder(getattr(module, name), path, own)
    try:
        yield
    finally:
        for _, module in modules:
            for name in methods_of(module):
                del vars(module)[name]


def _recorder(
    method: Callable[..., Any], path: str, recorded: dict[tuple[int, ...], Calls]
) -> Callable[..., Any]:
    signature = inspect.signature(method)

    def call(*args: object, **kwargs: object) -> Any:
        result = method(*args, **kwargs)
        arguments = Arguments.of(signature, *args, **kwargs)
        exported = ExportedMethod(path, method.__name__, arguments.fixed)
        calls = recorded.setdefault(arguments.fixed, Calls(exported))
        calls.calls.append(Call(arguments, flatten(result, RESULT, arguments.tensors)))
        return result

    return call
