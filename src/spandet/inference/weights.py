"""The file of a model's weights: in float32, float16 or int8.

A safetensors file with one tensor per weight. Tensors in float16 are converted to float32 in
loading. An int8 matrix is multiplied by its scales, one per row, which are stored under its name
with `:scale`. All other types are unchanged. So a model has the same speed from each of the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from spandet.errors import UsageError
from spandet.formats.target import Target

FILE = "model.safetensors"
"""Its name in the folder of a model."""
Kept = Literal["float32", "half", "int8"]
"""Type of the stored weights."""

_SCALE = ":scale"
_MOST = 127
_SHORT_ROW = 32
"""Matrices with shorter rows are not quantised."""


def save_weights(weights: Mapping[str, Tensor], folder: Path, kept: Kept = "float32") -> None:
    """Write the weights of a model; the file is written completely or not at all."""
    stored: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if kept == "int8" and _is_matrix(tensor):
            stored[name], stored[name + _SCALE] = _in_eight_bits(tensor)
        elif kept == "half" and tensor.is_floating_point():
            stored[name] = tensor.half()
        else:
            stored[name] = tensor
    with Target(str(folder / FILE)).binary() as out:
        out.write(save({name: tensor.contiguous() for name, tensor in stored.items()}))


def load_weights(folder: Path) -> dict[str, Tensor]:
    """Load the weights of a model, converted to float32.

    Raises:
        UsageError: the file cannot be read, or matrices and scales do not match.
    """
    path = folder / FILE
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"cannot read the weights in {path} ({error})") from None
    scales = {name: stored.pop(name) for name in list(stored) if name.endswith(_SCALE)}
    weights = {
        name: _in_full(tensor, scales.pop(name + _SCALE, None), f"{path}: {name}")
        for name, tensor in stored.items()
    }
    if scales:
        raise UsageError(f"{path}: {next(iter(scales))} belongs to no weights")
    return weights


def _is_matrix(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dim() == 2 and tensor.shape[1] >= _SHORT_ROW


def _in_eight_bits(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a matrix to -127 … 127; returns it with the scale of each row."""
    scales = matrix.abs().amax(dim=1).float() / _MOST
    divisors = torch.where(scales > 0, scales, 1.0)
    return (matrix / divisors[:, None]).round().to(torch.int8), scales


def _in_full(tensor: Tensor, scales: Tensor | None, where: str) -> Tensor:
    if tensor.dtype != torch.int8 and scales is None:
        return tensor.float() if tensor.dtype == torch.float16 else tensor
    if tensor.dtype != torch.int8 or scales is None or scales.shape != tensor.shape[:1]:
        found = "none" if scales is None else f"{list(scales.shape)}"
        raise UsageError(
            f"{where} is {tensor.dtype} of {list(tensor.shape)} with scales {found}, expected "
            "int8 with one scale per row"
        )
    return tensor * scales[:, None]
