"""From a part to a graph in a file."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spandet.errors import UsageError
from spandet.layers.exported import OnnxPart, Part, input_names, method_of
from spandet.onnx_export.errors import KeptInTorchError
from spandet.onnx_export.recording import Call, Calls

PART_BOUND = 1e-3
"""How far a part may be off, relative to what it says: rounding, and no mistake. What comes out of
all of them together is held to a closer bound."""


@dataclass(frozen=True)
class Graph:
    """A part as a file."""

    part: Part
    path: Path
    weights: tuple[str, ...]
    """The parameters that are in the file now, by their names in the model."""


class _Called(nn.Module):
    """A part as a module of its own."""

    def __init__(self, root: nn.Module, part: Part) -> None:
        super().__init__()
        self.owner = root.get_submodule(part.module)
        self._method = method_of(root, part)
        self._fixed = part.fixed

    def forward(self, *inputs: Tensor | None) -> Any:
        """What the method says."""
        return self._method(*self._fixed, *inputs)


def export_part(root: nn.Module, calls: Calls, folder: Path) -> Graph:
    """Write the graph of a part, and check it against all that was recorded.

    Raises:
        KeptInTorchError: there is no such graph.
    """
    part = calls.part
    if not calls.calls:
        raise KeptInTorchError("the model as it is set never uses it")
    program = _translated(_Called(root, part), calls)
    path = folder / f"{part.name}.onnx"
    program.save(str(path))
    try:
        _check(OnnxPart(path), calls)
    except (KeptInTorchError, UsageError) as error:
        path.unlink()
        raise KeptInTorchError(str(error)) from None
    return Graph(part, path, _weights_in(program.exported_program, part))


def _translated(called: nn.Module, calls: Calls) -> Any:
    call = calls.example()
    inputs = tuple(None if tensor is None else tensor.clone() for tensor in call.inputs)
    try:
        with _quiet(), torch.no_grad():
            return torch.onnx.export(
                called.eval(),
                inputs,
                dynamo=True,
                dynamic_shapes=(_free_axes(calls, call),),
                input_names=input_names(len(call.tensors)),
                verbose=False,
            )
    except RuntimeError as error:  # of torch.export, torch.onnx or the optimiser of graphs
        reason = str(error.__cause__ or error).strip().split("\n")[0]
        raise KeptInTorchError(f"torch.onnx cannot translate it: {reason}") from None


def _free_axes(calls: Calls, call: Call) -> tuple[dict[int, Any] | None, ...]:
    """The axes of each input whose sizes the graph must leave open, if it can.

    That is all of them but the last one of vectors, which is their dimension unless it varies.
    """
    varying = calls.varying()
    numbers = iter(range(len(call.tensors)))

    def axes(number: int, tensor: Tensor) -> dict[int, Any]:
        last = tensor.dim() - 1 if tensor.is_floating_point() else tensor.dim()
        free = [a for a in range(tensor.dim()) if a < last or (number, a) in varying]
        return dict.fromkeys(free, torch.export.Dim.AUTO)

    return tuple(None if each is None else axes(next(numbers), each) for each in call.inputs)


def _weights_in(program: torch.export.ExportedProgram, part: Part) -> tuple[str, ...]:
    """The parameters that a graph has taken over."""
    names = program.graph_signature.inputs_to_parameters
    used = {
        names[node.name]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in names and node.users
    }
    return tuple(sorted(f"{part.module}.{name.removeprefix('owner.')}" for name in used))


def _check(graph: OnnxPart, calls: Calls) -> None:
    """Every size that varies must be free, and every recorded answer must come out."""
    for call in calls.calls:
        difference = _difference(graph, call)
        if not difference <= PART_BOUND:
            raise KeptInTorchError(f"its graph says something else (off by {difference:.2g})")


def _difference(graph: OnnxPart, call: Call) -> float:
    try:
        answer = graph(*call.inputs)
    except graph.errors as error:
        reason = str(error).strip().split("\n")[0]
        raise KeptInTorchError(f"its graph cannot read {call.sizes}: {reason}") from None
    said = answer if isinstance(answer, tuple) else (answer,)
    return max(_apart(one, other) for one, other in zip(said, call.outputs, strict=True))


def _apart(one: Tensor, other: Tensor) -> float:
    """The largest difference, relative where values are large; infinite if shapes differ."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if not one.numel():
        return 0.0
    one, other = one.double(), other.double()
    off = torch.where(one == other, 0.0, (one - other).abs() / other.abs().clamp(min=1))
    return float(off.max())


@contextmanager
def _quiet() -> Iterator[None]:
    """torch.onnx is talkative about its own inside."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
