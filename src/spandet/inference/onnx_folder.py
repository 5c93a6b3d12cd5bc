"""The folder of a model whose methods are computed by ONNX graphs, and how it is loaded.

Beside the files of any model, the folder has a graph for each exported method (`METHOD.onnx`) and
`onnx.json`, which lists them with the weights that are in the graphs and not in
`model.safetensors`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import model_validator
from torch import Tensor, nn

from spandet.config import Settings, read_json
from spandet.errors import ConfigError, UsageError
from spandet.formats.target import Target
from spandet.inference.flattening import Structure
from spandet.inference.onnx_methods import empty_weights, find_graph

MANIFEST = "onnx.json"
_GRAPH = ".onnx"
_GRAPH_FILES = (_GRAPH, f"{_GRAPH}.data")
"""A graph, and the weights of a large one beside it."""
Precision = Literal["float32", "int8"]


class GraphRow(Settings):
    """One exported method in `onnx.json`."""

    weights: tuple[str, ...] = ()
    """The names of the weights in its graph."""
    result: Structure = None
    """The structure of its result, see `flattening`; None in folders of version 1."""


class Manifest(Settings):
    """The content of `onnx.json`."""

    version: Literal[2] = 2
    precision: Precision = "float32"
    methods: Mapping[str, GraphRow]
    """Exported methods by name."""

    @model_validator(mode="before")
    @classmethod
    def _of_version_1(cls, values: Any) -> Any:
        """Version 1 listed weights only."""
        if not isinstance(values, dict) or not isinstance(values.get("parts"), dict):
            return values
        methods = {name: {"weights": weights} for name, weights in values["parts"].items()}
        kept = {key: value for key, value in values.items() if key not in ("parts", "version")}
        return {**kept, "methods": methods}

    @property
    def weights(self) -> frozenset[str]:
        """All weights that graphs hold."""
        return frozenset(name for row in self.methods.values() for name in row.weights)

    def write(self, folder: Path) -> None:
        """Write `onnx.json` into a model folder."""
        with Target(str(folder / MANIFEST)).text() as out:
            out.write(json.dumps(self.model_dump(mode="json"), indent=2) + "\n")


@dataclass(frozen=True)
class Exported:
    """The graphs of an exported model."""

    folder: Path
    manifest: Manifest

    @classmethod
    def load(cls, folder: Path, root: nn.Module, overrides: Iterable[str]) -> Exported | None:
        """Replace methods of a model by the graphs of its folder; None if it has none.

        Raises:
            UsageError: the graphs do not belong to this model, or `overrides` change a setting that
                is fixed in them.
            MissingExtraError: onnxruntime is not installed.
        """
        manifest = _manifest(folder)
        if manifest is None:
            return None
        _check_overrides(folder, overrides)
        unknown = sorted(manifest.weights - set(root.state_dict()))
        found = {name: find_graph(root, name, row.result) for name, row in manifest.methods.items()}
        unknown += [name for name, graph in found.items() if graph is None]
        if unknown:
            raise UsageError(
                f"{folder / MANIFEST}: this version of spandet has no method or weight "
                f"{unknown[0]}: export the model again"
            )
        for name, replacement in found.items():
            if replacement is not None:
                replacement.load(root, folder / f"{name}{_GRAPH}")
        empty_weights(root, manifest.weights)
        return cls(folder, manifest)

    @property
    def empty_weights(self) -> dict[str, Tensor]:
        """Empty tensors by the names of the weights that graphs hold."""
        return {name: torch.empty(0) for name in self.manifest.weights}

    def save(self, folder: Path) -> None:
        """Copy the graphs and `onnx.json` into another folder."""
        for name in self.manifest.methods:
            for suffix in _GRAPH_FILES:
                graph = self.folder / f"{name}{suffix}"
                if suffix == _GRAPH or graph.exists():
                    shutil.copyfile(graph, folder / f"{name}{suffix}")
        self.manifest.write(folder)


def remove_export(folder: Path) -> None:
    """Delete `onnx.json` and the graphs that it lists from a model folder."""
    try:
        manifest = _manifest(folder)
    except UsageError:  # damaged or of an earlier version: the graphs of the model are unknown
        manifest = None
    listed = manifest.methods if manifest else {}
    (folder / MANIFEST).unlink(missing_ok=True)
    for graph in folder.glob(f"*{_GRAPH}"):
        if graph.stem in listed:
            graph.unlink()


def _manifest(folder: Path) -> Manifest | None:
    """The content of the folder's `onnx.json`; None if it is not an exported model."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    values = read_json(path)
    if not isinstance(values, dict):
        raise UsageError(f"{path} is damaged: expected an object with the exported methods")
    try:
        return Manifest.build(values, where=MANIFEST)
    except ConfigError as error:
        raise UsageError(f"{folder} is not an exported model: {error}") from None


def _check_overrides(folder: Path, overrides: Iterable[str]) -> None:
    for assignment in overrides:
        if not assignment.strip().startswith("decoding."):
            raise UsageError(
                f"{folder} is exported, so only decoding.* can be changed, not {assignment!r}; "
                "export the model again with that setting"
            )
