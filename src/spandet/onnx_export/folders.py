"""Folders of exported models while they are built."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from spandet.errors import SpandetError
from spandet.inference.manifest import refresh_manifest
from spandet.inference.onnx_folder import Exported, GraphRow, Manifest, Precision
from spandet.inference.recognizer import Recognizer
from spandet.onnx_export.graphs import KeptInTorchError, export_method, quantize
from spandet.onnx_export.recording import Calls

_COPIED = ("README.md", "recipe.toml", "run.json")
"""Files of a training run that are copied with its model."""
Notify = Callable[[str], None]
"""Is called with each step of an export, for the user."""


class ExportError(SpandetError):
    """An export that failed one of its checks; nothing is written."""


@dataclass(frozen=True)
class Built:
    """A model folder with graphs, and the methods that have none."""

    folder: Path
    manifest: Manifest
    failed: dict[str, str]
    """Methods that could not be exported, and why."""


def build_float(
    recognizer: Recognizer, recorded: Sequence[Calls], folder: Path, notify: Notify
) -> Built:
    """Export every recorded method for which that is possible.

    Raises:
        ExportError: none could be exported.
    """
    folder.mkdir()
    root = recognizer.modules().eval()
    methods: dict[str, GraphRow] = {}
    failed: dict[str, str] = {}
    needed: list[str] = []
    for number, calls in enumerate(recorded, start=1):
        name = calls.method.name
        notify(f"exporting {number}/{len(recorded)} {name}")
        try:
            methods[name] = export_method(root, calls, folder)
        except KeptInTorchError as error:
            failed[name] = str(error)
            needed.append(f"{calls.method.module}.")
    if not methods:
        raise ExportError(f"nothing could be exported; {next(iter(failed.items()), '')}")
    manifest = Manifest(methods=_without(methods, tuple(needed)))
    manifest.write(folder)
    shell = copy(recognizer)
    shell.exported = Exported(folder, manifest)
    shell.save_pretrained(folder)
    return Built(folder, manifest, failed)


def _without(methods: dict[str, GraphRow], needed: tuple[str, ...]) -> dict[str, GraphRow]:
    """Leave the weights of modules that are still computed by torch to `model.safetensors`."""
    return {
        name: row.model_copy(
            update={"weights": tuple(w for w in row.weights if not w.startswith(needed))}
        )
        for name, row in methods.items()
    }


def build_int8(built: Built, folder: Path, prefix: str, notify: Notify) -> Built:
    """Copy the folder with its graphs quantised whose names begin with a prefix."""
    folder.mkdir()
    for path in built.folder.iterdir():
        copied = folder / path.name
        if path.is_dir():
            shutil.copytree(path, copied)
        elif path.suffix == ".onnx" and path.stem.startswith(prefix):
            notify(f"quantising {path.stem}")
            quantize(path, copied)
        else:
            shutil.copyfile(path, copied)
    precision: Precision = "int8"
    manifest = built.manifest.model_copy(update={"precision": precision})
    manifest.write(folder)
    refresh_manifest(folder)
    return Built(folder, manifest, built.failed)


def size_of(folder: Path) -> int:
    """Bytes of the weights in a folder: those of graphs and those of torch."""
    return sum(
        path.stat().st_size
        for path in folder.iterdir()
        if path.suffix in {".onnx", ".data", ".safetensors"} and path.stem != "checkpoint"
    )


def publish(built: Built, model: Path, out: Path) -> None:
    """Move the built folder into `out`, copy the files of the training run, delete the rest."""
    for name in _COPIED:
        if (model / name).is_file():
            shutil.copyfile(model / name, out / name)
    for path in list(built.folder.iterdir()):
        path.replace(out / path.name)
    shutil.rmtree(built.folder.parent)


def weights_of(built: Built, recognizer: Recognizer) -> dict[str, int]:
    """The number of weights of each graph."""
    sizes = {name: p.numel() for name, p in recognizer.modules().named_parameters()}
    methods = built.manifest.methods.items()
    return {name: sum(sizes[weight] for weight in row.weights) for name, row in methods}


def kept_in_torch(built: Built, recognizer: Recognizer) -> dict[str, str]:
    """Methods and weights that torch still computes, with the reasons."""
    rest: dict[str, int] = {}
    for name, parameter in recognizer.modules().named_parameters():
        module = name.rpartition(".")[0]
        is_failed = any(method.startswith(f"{module}.") for method in built.failed)
        if name not in built.manifest.weights and not is_failed:
            rest[module] = rest.get(module, 0) + parameter.numel()
    why = "weights outside of exported methods, such as embeddings"
    return {**built.failed, **{name: f"{count:,} {why}" for name, count in rest.items()}}
