"""One ONNX graph of a whole model: from prepared arrays to candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spandet.encoding import EncoderBatch, Example
from spandet.encoding.pieces import PIECES
from spandet.errors import SpandetError
from spandet.inference.model_folder import save
from spandet.inference.onnx_engine import GRAPH, OUTPUTS, GraphInputs
from spandet.inference.recognizer import Recognizer
from spandet.layers.layout import Sequences
from spandet.onnx_export.graphs import KeptInTorchError, translate

_ENCODER, _DETECTOR = "encoder.", "detector."


class NoGraphError(SpandetError):
    """A model that has no graph of its own."""


class _WholeModel(nn.Module):
    """Encoder and detector as one module that takes and returns flat tensors."""

    def __init__(self, recognizer: Recognizer, names: Sequence[str], example: EncoderBatch) -> None:
        super().__init__()
        self.encoder = recognizer.encoder
        self.detector = recognizer.detector
        self._names = tuple(names)
        self._example = example

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Candidates of one batch, in the order of `OUTPUTS`."""
        tensors = dict(zip(self._names, inputs, strict=True))
        batch = _rebuilt(self._example, _ENCODER.removesuffix("."), tensors)
        own = {
            name.removeprefix(_DETECTOR): tensor
            for name, tensor in tensors.items()
            if name.startswith(_DETECTOR)
        }
        found = self.detector.detect_in_graph(self.encoder(batch), own)
        if found is None:
            raise NoGraphError("the detector, with its settings, has no graph of its own")
        return found.spans, found.label_probs, found.mask


def _rebuilt(value: Any, path: str, tensors: Mapping[str, Tensor]) -> Any:
    """The value with the tensors of these paths in place of its own."""
    if path in tensors:
        return tensors[path]
    if isinstance(value, Mapping):
        return {name: _rebuilt(item, f"{path}.{name}", tensors) for name, item in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    own = {
        f.name: _rebuilt(getattr(value, f.name), f"{path}.{f.name}", tensors) for f in fields(value)
    }
    if isinstance(value, Sequences):
        own["batch_sizes"] = None  # inputs of graphs are padded grids
    return type(value)(**own)


def save_with_graph(
    recognizer: Recognizer, folder: Path, batches: Sequence[Sequence[Example]]
) -> None:
    """Write a model with its graph, and with all that it needs to prepare sentences without torch.

    Args:
        recognizer: The model, in torch.
        folder: A new folder.
        batches: Sample batches; the one with the most sentences shows which sizes vary.

    Raises:
        NoGraphError: the detector has no graph of its own, or torch.onnx cannot translate it.
    """
    example = max(batches, key=lambda batch: (len(batch), sum(len(one.words) for one in batch)))
    inputs = GraphInputs(recognizer.encoder.preparation, recognizer.settings.detector).of(example)
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    whole = _WholeModel(recognizer, list(tensors), recognizer.encoder.prepare(example)).eval()
    with torch.no_grad():
        whole(*tensors.values())  # a model without a graph is refused here
    axes = tuple(
        dict.fromkeys(range(tensor.dim()), torch.export.Dim.AUTO) for tensor in tensors.values()
    )
    try:
        program = translate(whole, tensors, axes, OUTPUTS)
    except KeptInTorchError as error:
        raise NoGraphError(str(error)) from None

    def write(draft: Path) -> None:
        program.save(str(draft / GRAPH))
        if recognizer.encoder.transformer is not None:
            recognizer.encoder.transformer.pieces.save(draft / PIECES)

    save(recognizer, folder, write)
