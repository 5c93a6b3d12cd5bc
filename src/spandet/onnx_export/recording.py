"""Recorded calls of the methods to export, on sample sentences of many lengths."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from torch import Tensor, nn

from spandet.encoding import Example
from spandet.generation import generate
from spandet.inference.flattening import RESULT, Arguments, Flat, flatten
from spandet.inference.onnx_methods import ExportedMethod, exported_modules, methods_of
from spandet.inference.recognizer import Recognizer
from spandet.text import Document, WordRow

_SAMPLE_SEED = 71
_SAMPLE_SENTENCES = 40
_SAMPLE_LENGTHS = (1, 2, 3, 5, 50, 120, 200)
_UNUSUAL_TEXTS = ("", "?", "word", "Ünïcödé ΑΒΓ 漢字 שלום مرحبا", "a" * 300)
_SPREAD = 6


def sample_documents(sentences: int = _SAMPLE_SENTENCES) -> list[Document]:
    """Generated documents, sentences of 1 to 200 words, and unusual texts."""
    documents = [Document(document.text) for document in generate(sentences, seed=_SAMPLE_SEED)]
    words = list(chain.from_iterable(s.words for d in documents for s in d.sentences))
    rows = [Document.from_rows([WordRow(words[:length], [])]) for length in _SAMPLE_LENGTHS]
    return [*documents, *rows, *map(Document, _UNUSUAL_TEXTS)]


def sample_batches(recognizer: Recognizer, documents: Sequence[Document]) -> list[list[Example]]:
    """Batches that differ in their number of sentences, longest sentence and sum of words."""
    examples = recognizer.tagged([e for d in documents for e in recognizer.examples_of(d)])
    by_length = sorted(examples, key=lambda example: len(example.words))
    some = by_length[:: max(1, len(by_length) // (3 * _SPREAD))]
    return [some[-3:], some[-1:], some[:1], some[1::2], some[2::3], some[:5], some[_SPREAD:-1]]


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
        """Whether two calls differ in nothing but tensors."""
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
                recognizer.engine.detect(batch, keep_all=keep_all)
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
