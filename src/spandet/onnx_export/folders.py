"""The folders of exported models while they are being made."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from spandet.inference.manifest import refresh_manifest
from spandet.inference.onnx_parts import Exported, Manifest, Precision
from spandet.inference.recognizer import Recognizer
from spandet.onnx_export.errors import ExportError, KeptInTorchError
from spandet.onnx_export.graphs import export_part
from spandet.onnx_export.quantized import quantize
from spandet.onnx_export.recording import Calls

_ALONG = ("README.md", "recipe.toml", "run.json")
"""What a run says about its model."""


@dataclass(frozen=True)
class Built:
    """A folder that can be loaded, and what did not become a graph."""

    folder: Path
    manifest: Manifest
    failed: dict[str, str]
    """Parts that cannot be exported, and why."""


def build_float(
    recognizer: Recognizer, recorded: Sequence[Calls], folder: Path, say: Callable[[str], None]
) -> Built:
    """Export all parts that can be.

    Raises:
        ExportError: there is not one.
    """
    folder.mkdir()
    root = recognizer.modules().eval()
    parts: dict[str, tuple[str, ...]] = {}
    failed: dict[str, str] = {}
    needed: list[str] = []
    for number, calls in enumerate(recorded, start=1):
        name = calls.part.name
        say(f"exporting {number}/{len(recorded)} {name}")
        try:
            parts[name] = export_part(root, calls, folder).weights
        except KeptInTorchError as error:
            failed[name] = str(error)
            needed.append(f"{calls.part.module}.")
    if not parts:
        raise ExportError(f"nothing could be exported; {next(iter(failed.items()), '')}")
    manifest = Manifest(parts=_freed(parts, tuple(needed)))
    manifest.write(folder)
    shell = copy(recognizer)
    shell.exported = Exported(folder, manifest)
    shell.save_pretrained(folder)
    return Built(folder, manifest, failed)


def _freed(
    parts: dict[str, tuple[str, ...]], needed: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """The weights that torch can do without: none of a module that has to go on working there."""
    return {
        name: tuple(weight for weight in weights if not weight.startswith(needed))
        for name, weights in parts.items()
    }


def build_int8(built: Built, folder: Path, prefix: str, say: Callable[[str], None]) -> Built:
    """The same folder with those graphs quantised whose parts' names begin with a prefix."""
    folder.mkdir()
    for path in built.folder.iterdir():
        copied = folder / path.name
        if path.is_dir():
            shutil.copytree(path, copied)
        elif path.suffix == ".onnx" and path.stem.startswith(prefix):
            say(f"quantising {path.stem}")
            quantize(path, copied)
        else:
            shutil.copyfile(path, copied)
    precision: Precision = "int8"
    manifest = built.manifest.model_copy(update={"precision": precision})
    manifest.write(folder)
    refresh_manifest(folder)
    return Built(folder, manifest, built.failed)


def size_of(folder: Path) -> int:
    """Bytes of the weights in a folder: graphs, and what is torch's."""
    return sum(
        path.stat().st_size
        for path in folder.iterdir()
        if path.suffix in {".onnx", ".data", ".safetensors"} and path.stem != "checkpoint"
    )


def publish(built: Built, model: Path, out: Path) -> None:
    """Leave what was built, and what is known of the model, as all that is in the folder `out`."""
    for name in _ALONG:
        if (model / name).is_file():
            shutil.copyfile(model / name, out / name)
    for path in list(built.folder.iterdir()):
        path.replace(out / path.name)
    shutil.rmtree(built.folder.parent)


def weights_of(built: Built, recognizer: Recognizer) -> dict[str, int]:
    """How many weights each graph has."""
    sizes = {name: p.numel() for name, p in recognizer.modules().named_parameters()}
    return {part: sum(sizes[w] for w in own) for part, own in built.manifest.parts.items()}


def kept_in_torch(built: Built, recognizer: Recognizer) -> dict[str, str]:
    """What did not become a graph, and why."""
    rest: dict[str, int] = {}
    for name, parameter in recognizer.modules().named_parameters():
        module = name.rpartition(".")[0]
        is_failed = any(part.startswith(f"{module}.") for part in built.failed)
        if name not in built.manifest.weights and not is_failed:
            rest[module] = rest.get(module, 0) + parameter.numel()
    why = "weights outside of all parts, for look-ups and the like"
    return {**built.failed, **{name: f"{count:,} {why}" for name, count in rest.items()}}
