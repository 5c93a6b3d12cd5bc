"""Model methods that ONNX graphs can compute: which they are, and how a graph replaces one.

Models do not depend on this module: a table lists their methods, and arguments and results are
flattened to tensors and rebuilt (`flattening`). Everything around these methods stays the same,
so a model with graphs is built, called, traced and decoded by the same code as any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spandet.detectors.boundary_diffusion.denoiser import Denoiser
from spandet.detectors.proposer_regressor.head import EntityHead
from spandet.detectors.proposer_regressor.pyramid import FeaturePyramid, ProposalFusion
from spandet.encoding.transformer import Transformer
from spandet.inference.flattening import (
    RESULT,
    Arguments,
    Structure,
    classes_of,
    is_structure,
    rebuild,
    tensor_paths,
)
from spandet.inference.onnx_engine import onnxruntime_errors, session
from spandet.layers.recurrent import BiRNN
from spandet.layers.regressor import RegressorLayer
from spandet.layers.span_head import SpanHead
from spandet.layers.span_scorer import SpanScorer

METHODS: Mapping[type[nn.Module], tuple[str, ...]] = {
    Transformer: ("read",),
    BiRNN: ("run",),
    SpanHead: ("forward",),
    SpanScorer: ("forward",),
    FeaturePyramid: ("upward_level", "downward_level", "message_below"),
    ProposalFusion: ("mix",),
    RegressorLayer: ("forward",),
    EntityHead: ("forward",),
    Denoiser: ("map_words", "refine"),
    nn.Linear: ("forward",),
    nn.Sequential: ("forward",),
}
"""The exported methods of each class of modules. Modules inside such a module are not exported by
themselves."""


@dataclass(frozen=True)
class ExportedMethod:
    """A method of one module of a model, computed by a graph."""

    module: str
    """The path of the module in the model."""
    method: str
    fixed: tuple[int, ...] = ()
    """The values of its arguments that are whole numbers or booleans, if it has any."""

    @property
    def name(self) -> str:
        """Unique in a model; the name of the graph's file."""
        return ".".join([self.module, self.method, *map(str, self.fixed)])

    def owner(self, root: nn.Module) -> nn.Module:
        """The module whose method it is."""
        return root.get_submodule(self.module)

    def bound(self, root: nn.Module) -> Callable[..., Any]:
        """The method as it is now."""
        method: Callable[..., Any] = getattr(self.owner(root), self.method)
        return method


def methods_of(module: nn.Module) -> tuple[str, ...]:
    """The exported methods of a module's class, or of its nearest base class in the table."""
    return next((METHODS[base] for base in type(module).__mro__ if base in METHODS), ())


def exported_modules(root: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The outermost modules of a model that have exported methods, by path."""
    for name, module in root.named_children():
        if methods_of(module):
            yield f"{prefix}{name}", module
        else:
            yield from exported_modules(module, f"{prefix}{name}.")


class Graph:
    """An ONNX graph in a file. Any number of threads may call it at once."""

    def __init__(self, path: Path, inputs: Sequence[str] | None = None) -> None:
        """Load a graph; its inputs are named by path, or listed in `inputs` in their order."""
        self.path = path
        self._session = session(path, torch.get_num_threads())
        names: list[str] = [each.name for each in self._session.get_inputs()]
        # A graph lacks the inputs that it does not need.
        self._inputs = {
            name: name if inputs is None else inputs[int(name.removeprefix("input_"))]
            for name in names
        }

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions for inputs that do not fit the graph."""
        return onnxruntime_errors()

    def __call__(self, tensors: Mapping[str, Tensor]) -> list[Tensor]:
        """Compute the outputs from inputs by path."""
        used = {name: tensors[path] for name, path in self._inputs.items()}
        arrays = {name: each.detach().cpu().contiguous().numpy() for name, each in used.items()}
        device = next(iter(tensors.values())).device
        return [torch.from_numpy(each).to(device) for each in self._session.run(None, arrays)]


class _Replaced:
    """A method of which some values of its fixed arguments are computed by graphs."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original
        self._signature = inspect.signature(original)
        self._classes = classes_of(original)
        self._graphs: dict[tuple[int, ...], tuple[Graph, Structure, tuple[str, ...]]] = {}

    def add(self, fixed: tuple[int, ...], graph: Graph, result: Structure) -> None:
        self._graphs[fixed] = (graph, result, tuple(tensor_paths(result)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = Arguments.of(self._signature, *args, **kwargs)
        if arguments.fixed not in self._graphs:
            return self._original(*args, **kwargs)
        graph, result, paths = self._graphs[arguments.fixed]
        outputs = dict(zip(paths, graph(arguments.tensors), strict=True))
        return rebuild(result, arguments.tensors | outputs, self._classes)


@dataclass(frozen=True)
class Replacement:
    """A method that a graph computes, and how its arguments and result are passed."""

    method: ExportedMethod
    result: Structure
    """The structure of the method's result."""
    inputs: tuple[str, ...] | None = None
    """The paths of `input_0`, `input_1`, …; None if the graph's inputs are named by path."""

    def load(self, root: nn.Module, path: Path) -> None:
        """Compute the method by the graph in a file from now on."""
        attributes = vars(self.method.owner(root))
        name = self.method.method
        if name not in attributes:
            attributes[name] = _Replaced(self.method.bound(root))
        attributes[name].add(self.method.fixed, Graph(path, self.inputs), self.result)


def find_graph(root: nn.Module, name: str, result: Structure) -> Replacement | None:
    """Find the method of a model that a graph computes; None if there is no such method.

    Args:
        root: The model.
        name: Name of the graph's file.
        result: The structure of the method's result; None for a graph of version 1.
    """
    for path, module in exported_modules(root):
        own, *fixed = name.removeprefix(f"{path}.").split(".")
        if not name.startswith(f"{path}.") or not all(each.isdecimal() for each in fixed):
            continue
        if result is None:
            return _of_version_1(path, module, own)
        if own not in methods_of(module):
            continue
        if not is_structure(result, classes_of(getattr(module, own))):
            return None
        return Replacement(ExportedMethod(path, own, tuple(map(int, fixed))), result)
    return None


_TENSOR = {"tensor": RESULT}
_PROPOSALS = ("queries", "soft_spans", "label_logits")
_VERSION_1: Mapping[tuple[type[nn.Module], str], tuple[str, tuple[str, ...], Structure]] = {
    (nn.Linear, "forward"): ("forward", ("input",), _TENSOR),
    (nn.Sequential, "forward"): ("forward", ("input",), _TENSOR),
    (Transformer, "read"): ("read", ("ids", "mask"), _TENSOR),
    (SpanHead, "forward"): ("forward", ("inside", "words", "left", "right", "whole"), _TENSOR),
    (BiRNN, "on_grid"): (
        "run",
        ("items", "sequences.mirror", "sequences.take", "sequences.give"),
        _TENSOR,
    ),
    (SpanScorer, "score"): (
        "forward",
        ("words.features", "words.mask"),
        {"class": "ProposalScores", "fields": {"logits": _TENSOR}},
    ),
    (RegressorLayer, "refine"): (
        "forward",
        tuple(f"proposals.{name}" for name in (*_PROPOSALS, "mask")),
        {
            "class": "Proposals",
            "fields": {
                **{name: {"tensor": f"{RESULT}.{name}"} for name in _PROPOSALS},
                "mask": {"input": "proposals.mask"},
            },
        },
    ),
}
"""Graphs that version 1 wrote, by class and old method: today's method, inputs and result."""


def _of_version_1(path: str, module: nn.Module, method: str) -> Replacement | None:
    for base in type(module).__mro__:
        if (base, method) in _VERSION_1:
            today, inputs, result = _VERSION_1[base, method]
            return Replacement(ExportedMethod(path, today), result, inputs)
    return None


def empty_weights(root: nn.Module, names: Iterable[str]) -> None:
    """Free the parameters of these names: graphs hold them."""
    for name in names:
        path, _, own = name.rpartition(".")
        empty = nn.Parameter(torch.empty(0), requires_grad=False)
        setattr(root.get_submodule(path), own, empty)
