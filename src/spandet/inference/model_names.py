"""Which models there are: bundled with the package, in a folder of one's own, or on the hub."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from spandet.config import override, read_json
from spandet.errors import UsageError
from spandet.inference.manifest import CONFIG, PROMISE

VARIABLE = "SPANDET_MODELS"
"""The environment variable that names the folder of local models."""
RUN, CARD = "run.json", "README.md"
PACK = "pack.json"
"""What packing has cost a model that came out of it."""
_BUNDLED = Path(__file__).parents[1] / "models"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SAFE_FILES = ["*.json", "*.safetensors", "*.onnx", "*.onnx.data", "*.txt", "*.md"]
_SAFE_FILES += ["*.model", "*.jinja"]  # of tokenizers
_READ_FILES = (".json", ".safetensors", ".onnx", ".txt", ".model")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Measured:
    """How well a model was found to be, and on what."""

    data: str
    f1: float


@dataclass(frozen=True, slots=True)
class Listed:
    """A model as `spandet models` lists it."""

    name: str
    origin: Literal["bundled", "local"]
    folder: str
    detector: str
    preset: str | None
    """Preset of the detector's method; None: it has none, or an older version saved the model."""
    labels: tuple[str, ...]
    measured: tuple[Measured, ...]
    bytes: int

    @property
    def dev_f1(self) -> float | None:
        """The first figure, where one is known."""
        return self.measured[0].f1 if self.measured else None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        plain = asdict(self) | {"labels": list(self.labels), "dev_f1": self.dev_f1}
        return plain | {"measured": [asdict(one) for one in self.measured]}


def local_folder() -> Path:
    """Where local models are: in $SPANDET_MODELS, or in the user's data folder."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    if sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "spandet" / "models"


def find_model(name: str | PathLike[str]) -> Path:
    """The folder of a model: its own path, its name here, or its id on the hub.

    Raises:
        UsageError: there is none; says where it was looked for.
    """
    wanted = os.fspath(name)
    if Path(wanted).is_dir():
        return Path(wanted)
    for _, folder in _named():
        if folder.name == wanted:
            return folder
    # "runs/mdoel" beside a folder "runs" is a mistake in a path, not somebody's id.
    if _HUB_ID.fullmatch(wanted) and not Path(wanted).parent.is_dir():
        return _downloaded(wanted)
    known = ", ".join(folder.name for _, folder in _named()) or "none yet"
    raise UsageError(
        f"there is no model {wanted!r}: no folder of that name, and none among the bundled and "
        f"local models ({known}; local ones are in {local_folder()})"
    )


@dataclass(frozen=True, slots=True)
class Config:
    """What config.json says."""

    labels: tuple[str, ...]
    sections: dict[str, Any]
    """The settings of the model."""


def read_config(folder: Path) -> Config:
    """The settings and labels of a model.

    Raises:
        UsageError: there are none, or they are damaged.
    """
    path = folder / CONFIG
    if not path.exists():
        raise UsageError(f"{folder} is not a model folder: it has no {CONFIG}")
    values = read_json(path)
    if not isinstance(values, dict):
        found = type(values).__name__
        raise UsageError(f"{path} is damaged: expected an object with labels, found a {found}")
    labels = values.pop("labels", None)
    values.pop(PROMISE, None)
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        found = "none" if labels is None else repr(labels)[:80]
        raise UsageError(f"{path} is damaged: expected a list of strings as labels, found {found}")
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise UsageError(f"{path} is damaged: it has the label {twice!r} twice")
    return Config(tuple(labels), values)


def models() -> Iterator[Listed]:
    """All bundled and local models."""
    for origin, folder in _named():
        yield listed(folder, origin)


def listed(folder: Path, origin: Literal["bundled", "local"] = "local") -> Listed:
    """What the files of a model say about it.

    Raises:
        UsageError: they do not say it.
    """
    config = read_config(folder)
    try:
        detector = str(config.sections["detector"]["name"])
        preset = config.sections["detector"].get("preset")
    except (LookupError, TypeError):
        raise UsageError(f"{folder / CONFIG} is damaged: it names no detector") from None
    try:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}") from None
    return Listed(
        name=folder.name,
        origin=origin,
        folder=str(folder),
        detector=detector,
        preset=None if preset is None else str(preset),
        labels=config.labels,
        measured=measured(folder),
        bytes=size,
    )


def is_flat(folder: Path, overrides: Iterable[str] = ()) -> bool:
    """Do a model's settings say that no two of its entities overlap?

    Raises:
        UsageError: it has no settings, or they are damaged.
    """
    decoding = override(read_config(folder).sections, overrides).get("decoding")
    return isinstance(decoding, dict) and decoding.get("flat") is True


def measured(folder: Path) -> tuple[Measured, ...]:
    """The figures of a model as it is: packed, it is another than at the end of its training.

    This is the one source of them: whoever shows any takes them from here. Nothing is known of a
    model that was trained without dev data.

    Raises:
        UsageError: the file that should have them is damaged.
    """
    name = PACK if (folder / PACK).exists() else RUN
    if not (folder / name).exists():
        return ()
    values = read_json(folder / name)
    try:
        if name == RUN:
            dev = values["dev"]
            return (Measured("its dev data", float(dev["micro"]["f1"])),) if dev else ()
        found = tuple(Measured(str(one["data"]), float(one["f1"])) for one in values["scores"])
    except (LookupError, TypeError, ValueError):
        found = ()
    if not found:
        raise UsageError(f"{folder / name} is damaged: it says no F1")
    return found


def fingerprint(folder: Path) -> str:
    """A digest of all files that decide what a model finds: weights, settings, vocabularies."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in _READ_FILES and path.name not in (RUN, PACK) and path.is_file():
            digest.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
            with path.open("rb") as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    digest.update(chunk)
    return digest.hexdigest()


def _named() -> Iterator[tuple[Literal["bundled", "local"], Path]]:
    """Bundled models, then local ones; a local one is hidden by a bundled one of its name."""
    bundled = _models_in(_BUNDLED)
    names = {folder.name for folder in bundled}
    yield from (("bundled", folder) for folder in bundled)
    yield from (("local", f) for f in _models_in(local_folder()) if f.name not in names)


def _models_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if (path / CONFIG).is_file())
    except OSError:  # nobody has put a model there yet
        return []


def _downloaded(hub_id: str) -> Path:
    """A copy of a model on the hub: settings, vocabularies and safetensors, no pickles, no code."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 (slow to import)
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    try:
        return Path(snapshot_download(hub_id, allow_patterns=_SAFE_FILES))
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UsageError(
            f"there is no folder and no local model {hub_id!r}, and it cannot be fetched from the "
            f"hub: {reason}"
        ) from None
