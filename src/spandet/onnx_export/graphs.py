"""ONNX graphs of recorded methods, in float32 and in int8."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spandet.errors import SpandetError, UsageError
from spandet.inference.flattening import RESULT, classes_of, flatten, rebuild, tensor_paths
from spandet.inference.onnx_folder import GraphRow
from spandet.inference.onnx_methods import ExportedMethod, Graph
from spandet.onnx_export.recording import Call, Calls

GRAPH_BOUND = 1e-3
"""Largest relative difference between the outputs of a graph and of torch: enough for rounding. The
predictions of the whole model have a closer bound."""
_QUANTIZED = ["MatMul", "Gemm"]
"""The ONNX operators that are computed in int8."""


class KeptInTorchError(SpandetError):
    """A method cannot be exported."""


class _FlatMethod(nn.Module):
    """A method as a module that takes and returns flat tensors."""

    def __init__(self, root: nn.Module, method: ExportedMethod, example: Call) -> None:
        super().__init__()
        self.owner = method.owner(root)
        self._method = method.bound(root)
        self._classes = classes_of(self._method)
        self._arguments = example.arguments.structure
        self._inputs = tuple(example.inputs)
        self._outputs = tuple(tensor_paths(example.result.structure))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Call the method with the arguments that hold these tensors."""
        tensors = dict(zip(self._inputs, inputs, strict=True))
        arguments = {
            name: rebuild(structure, tensors, self._classes)
            for name, structure in self._arguments.items()
        }
        result = flatten(self._method(**arguments), RESULT)
        return tuple(result.tensors[path] for path in self._outputs)


def export_method(root: nn.Module, calls: Calls, folder: Path) -> GraphRow:
    """Write the graph of a method, and check it against all recorded calls.

    Raises:
        KeptInTorchError: the method cannot be exported.
    """
    method = calls.method
    if not calls.calls:
        raise KeptInTorchError("never called with these settings")
    example = calls.example()
    if not all(call.same_structure(example) for call in calls.calls):
        raise KeptInTorchError("its arguments or results do not always have the same structure")
    program = translate(
        _FlatMethod(root, method, example), example.inputs, _free_axes(calls, example.inputs)
    )
    path = folder / f"{method.name}.onnx"
    program.save(str(path))
    try:
        _check(Graph(path), calls)
    except (KeptInTorchError, UsageError) as error:
        path.unlink()
        raise KeptInTorchError(str(error)) from None
    weights = _weights_in(program.exported_program, method)
    return GraphRow(weights=weights, result=example.result.structure)


def translate(
    flat: nn.Module,
    inputs: Mapping[str, Tensor],
    axes: tuple[dict[int, Any], ...],
    outputs: Sequence[str] | None = None,
) -> Any:
    """The ONNX program of a module that takes and returns flat tensors.

    Args:
        flat: The module.
        inputs: Example inputs by name.
        axes: Of each input, the axes whose sizes the graph must leave open, if it can.
        outputs: Names of the outputs, if they matter.

    Raises:
        KeptInTorchError: torch.onnx cannot translate it.
    """
    try:
        with _quiet("torch.onnx"), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program: Any = torch.onnx.export(
                flat.eval(),
                tuple(tensor.clone() for tensor in inputs.values()),
                dynamo=True,
                dynamic_shapes=(axes,),
                input_names=list(inputs),
                output_names=outputs,
                verbose=False,
            )
    except RuntimeError as error:  # of torch.export, torch.onnx or the optimiser of graphs
        reason = str(error.__cause__ or error).strip().split("\n")[0]
        raise KeptInTorchError(f"torch.onnx cannot translate it: {reason}") from None
    _drop_unused_inputs(program.model.graph)
    return program


def _free_axes(calls: Calls, inputs: dict[str, Tensor]) -> tuple[dict[int, Any], ...]:
    """The axes of each input whose sizes the graph must leave open, if it can.

    All axes are, except the last axis of float tensors, their dimension, unless it varies.
    """
    varying = calls.varying()

    def axes(path: str, tensor: Tensor) -> dict[int, Any]:
        last = tensor.dim() - 1 if tensor.is_floating_point() else tensor.dim()
        free = [a for a in range(tensor.dim()) if a < last or (path, a) in varying]
        return dict.fromkeys(free, torch.export.Dim.AUTO)

    return tuple(axes(path, tensor) for path, tensor in inputs.items())


def _drop_unused_inputs(graph: Any) -> None:
    """Remove inputs that nothing is computed from: a dataclass may hold more than is needed."""
    for value in list(graph.inputs):
        if not value.uses() and not value.is_graph_output():
            graph.inputs.remove(value)


def _weights_in(program: torch.export.ExportedProgram, method: ExportedMethod) -> tuple[str, ...]:
    """The names in the model of the parameters that a graph holds."""
    names = program.graph_signature.inputs_to_parameters
    used = {
        names[node.name]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in names and node.users
    }
    return tuple(sorted(f"{method.module}.{name.removeprefix('owner.')}" for name in used))


def _check(graph: Graph, calls: Calls) -> None:
    """Compare the graph's outputs with every recorded result."""
    for call in calls.calls:
        difference = _difference(graph, call)
        if not difference <= GRAPH_BOUND:
            raise KeptInTorchError(f"its graph computes something else (off by {difference:.2g})")


def _difference(graph: Graph, call: Call) -> float:
    try:
        outputs = graph(call.inputs)
    except graph.errors as error:
        reason = str(error).strip().split("\n")[0]
        shapes = list(call.shapes.values())
        raise KeptInTorchError(f"its graph cannot take inputs of {shapes}: {reason}") from None
    expected = call.result.tensors.values()
    return max(_apart(one, other) for one, other in zip(outputs, expected, strict=True))


def _apart(one: Tensor, other: Tensor) -> float:
    """The largest difference, relative where values are large; infinite if shapes differ."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if not one.numel():
        return 0.0
    one, other = one.double(), other.double()
    off = torch.where(one == other, 0.0, (one - other).abs() / other.abs().clamp(min=1))
    return float(off.max())


def quantize(source: Path, target: Path) -> None:
    """Write a graph whose matrix products with weights are computed in int8.

    Weights have seven bits and a scale per channel, because CPUs without VNNI overflow with eight;
    activations are quantised when the graph is run.
    """
    import onnx  # noqa: PLC0415 (an extra)
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 (an extra)

    model = onnx.load(source)
    # The optimiser transposes weights and leaves annotations with their old shapes.
    del model.graph.value_info[:]
    with _quiet(None):  # it recommends a preprocessing step that changes nothing here
        quantize_dynamic(
            model,
            target,
            op_types_to_quantize=_QUANTIZED,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
        )


@contextmanager
def _quiet(logger_name: str | None) -> Iterator[None]:
    """Hide the messages of a logger, or of the root logger, below errors."""
    logger = logging.getLogger(logger_name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
