"""A model whose parts are ONNX graphs: what its folder holds, and how they take their places.

Beside the files of any model, the folder has a graph for each part (`PART.onnx`) and `onnx.json`,
which lists the parts with the weights that they have taken out of `model.safetensors`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from spandet.config import Settings, read_json
from spandet.errors import ConfigError, UsageError
from spandet.formats.target import Target
from spandet.layers.exported import OnnxPart, answer_by, parts_of, without_weights

MANIFEST = "onnx.json"
_GRAPH = ".onnx"
_GRAPH_FILES = (_GRAPH, f"{_GRAPH}.data")
"""A graph, and the weights of a large one beside it."""
Precision = Literal["float32", "int8"]


class Manifest(Settings):
    """What `onnx.json` says."""

    version: Literal[1] = 1
    precision: Precision = "float32"
    parts: Mapping[str, tuple[str, ...]]
    """Every exported part, with the names of the weights that are in its graph."""

    @property
    def weights(self) -> frozenset[str]:
        """All weights that no longer are torch's."""
        return frozenset(name for names in self.parts.values() for name in names)

    def write(self, folder: Path) -> None:
        """Put it where `Exported.load` looks for it."""
        with Target(str(folder / MANIFEST)).text() as out:
            out.write(json.dumps(self.model_dump(mode="json"), indent=2) + "\n")


def graph_file(folder: Path, part: str, suffix: str = _GRAPH) -> Path:
    """Where the graph of a part is."""
    return folder / f"{part}{suffix}"


@dataclass(frozen=True)
class Exported:
    """The exported parts of a model."""

    folder: Path
    manifest: Manifest

    @classmethod
    def load(cls, folder: Path, root: nn.Module, overrides: Iterable[str]) -> Exported | None:
        """Let graphs answer for the parts of a model that is exported; None for any other.

        Raises:
            UsageError: the graphs are not of this model, or a setting that is inside of them is
                to be changed.
            MissingExtraError: there is nothing that can run them.
        """
        manifest = _manifest(folder)
        if manifest is None:
            return None
        _check_overrides(folder, overrides)
        parts = {part.name: part for part in parts_of(root)}
        unknown = sorted(set(manifest.parts) - set(parts))
        unknown += sorted(manifest.weights - set(root.state_dict()))
        if unknown:
            raise UsageError(f"{folder / MANIFEST}: the model has no part or weight {unknown[0]}")
        for name in manifest.parts:
            answer_by(root, parts[name], OnnxPart(graph_file(folder, name)))
        without_weights(root, manifest.weights)
        return cls(folder, manifest)

    @property
    def empty_weights(self) -> dict[str, Tensor]:
        """What the state of the modules has in place of the weights that are gone."""
        return {name: torch.empty(0) for name in self.manifest.weights}

    def save(self, folder: Path) -> None:
        """Write graphs and list into another folder too."""
        for name in self.manifest.parts:
            for suffix in _GRAPH_FILES:
                graph = graph_file(self.folder, name, suffix)
                if suffix == _GRAPH or graph.exists():
                    shutil.copyfile(graph, graph_file(folder, name, suffix))
        self.manifest.write(folder)


def remove_export(folder: Path) -> None:
    """Let a folder be that of no exported model any more; graphs that it does not list stay."""
    try:
        manifest = _manifest(folder)
    except UsageError:  # damaged: nobody can say which graphs are its
        manifest = None
    listed = manifest.parts if manifest else {}
    (folder / MANIFEST).unlink(missing_ok=True)
    for graph in folder.glob("*.onnx"):
        if graph.stem in listed:
            graph.unlink()


def _manifest(folder: Path) -> Manifest | None:
    """What the folder lists; None where it is not that of an exported model."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    values = read_json(path)
    if not isinstance(values, dict):
        raise UsageError(f"{path} is damaged: expected an object with the exported parts")
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
