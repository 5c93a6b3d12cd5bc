"""Lookup of models by name: bundled with the package, in a local folder, or on the hub."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from spandet.config import override, read_json
from spandet.errors import UsageError
from spandet.inference.manifest import CONFIG, HAS_MANIFEST

VARIABLE = "SPANDET_MODELS"
"""The environment variable with the path of the folder of local models."""
RUN, CARD = "run.json", "README.md"
PACK = "pack.json"
"""The report of packing, in the folder of a packed model."""
ENSEMBLE = "ensemble.json"
"""The report of tuning, in the folder of an ensemble."""
MEMBERS = "ensemble"
"""The key of config.json that makes a folder an ensemble: its members."""
_REPORTS = (PACK, ENSEMBLE, RUN)
_BUNDLED = Path(__file__).parents[1] / "models"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SAFE_FILES = ["*.json", "*.safetensors", "*.onnx", "*.onnx.data", "*.txt", "*.md"]
_SAFE_FILES += ["*.model", "*.jinja"]  # of tokenizers
_READ_FILES = (".json", ".safetensors", ".onnx", ".txt", ".model")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Measured:
    """The F1 of a model, and the data that it was measured on."""

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
        """The first F1, if one is known."""
        return self.measured[0].f1 if self.measured else None

    def to_json(self) -> dict[str, Any]:
        """The values as a JSON object."""
        plain = asdict(self) | {"labels": list(self.labels), "dev_f1": self.dev_f1}
        return plain | {"measured": [asdict(one) for one in self.measured]}


def local_folder() -> Path:
    """The folder of local models: $SPANDET_MODELS, or in the user's data folder."""
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
    """Find the folder of a model by its path, its name, or its id on the hub.

    Raises:
        UsageError: there is none; names the places that were searched.
    """
    wanted = os.fspath(name)
    if Path(wanted).is_dir():
        return Path(wanted)
    for folder in named_models():
        if folder.name == wanted:
            return folder
    # "runs/mdoel", if there is a folder "runs", is a mistake in a path, not a hub id.
    if _HUB_ID.fullmatch(wanted) and not Path(wanted).parent.is_dir():
        return _downloaded(wanted)
    if "+" in wanted:
        raise UsageError(f"expected a single model, got {wanted!r}, the name of an ensemble")
    known = ", ".join(_names()) or "none yet"
    raise UsageError(
        f"there is no model {wanted!r}: no folder of that name, and none among the bundled and "
        f"local models ({known}; local ones are in {local_folder()})"
    )


def find_models(name: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[Path]:
    """Find the folder of a model, or the folders of the members of an ensemble.

    Args:
        name: A model, as for `find_model`; several, as a list or joined with "+" ("a+b").

    Raises:
        UsageError: one of them does not exist; names it.
    """
    if not isinstance(name, str | PathLike):
        names = list(name)
        if not names:
            raise UsageError("an ensemble needs at least one model, got an empty list")
        return [find_model(one) for one in names]
    wanted = os.fspath(name)
    if "+" not in wanted or Path(wanted).is_dir() or wanted in _names():
        return [find_model(wanted)]
    parts = [part.strip() for part in wanted.split("+")]
    if not all(parts):
        raise UsageError(f"{wanted!r} names an ensemble, expected a model on each side of every +")
    return [find_model(part) for part in parts]


@dataclass(frozen=True, slots=True)
class Config:
    """The contents of config.json."""

    labels: tuple[str, ...]
    sections: dict[str, Any]
    """The settings of the model."""


def read_config(folder: Path) -> Config:
    """Read the settings and labels of a model.

    Raises:
        UsageError: they are missing or damaged.
    """
    path = folder / CONFIG
    if not path.exists():
        raise UsageError(f"{folder} is not a model folder: it has no {CONFIG}")
    values = read_json(path)
    if not isinstance(values, dict):
        found = type(values).__name__
        raise UsageError(f"{path} is damaged: expected an object with labels, found a {found}")
    labels = values.pop("labels", None)
    values.pop(HAS_MANIFEST, None)
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        found = "none" if labels is None else repr(labels)[:80]
        raise UsageError(f"{path} is damaged: expected a list of strings as labels, found {found}")
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise UsageError(f"{path} is damaged: it has the label {twice!r} twice")
    return Config(tuple(labels), values)


def named_models() -> list[Path]:
    """The folders of all bundled and local models."""
    return [folder for _, folder in _named()]


def models() -> Iterator[Listed]:
    """All bundled and local models."""
    for origin, folder in _named():
        yield listed(folder, origin)


def listed(folder: Path, origin: Literal["bundled", "local"] = "local") -> Listed:
    """Read the description of a model from its files.

    Raises:
        UsageError: the files are missing or damaged.
    """
    config = read_config(folder)
    try:
        if MEMBERS in config.sections:
            detector, preset = f"ensemble of {len(config.sections[MEMBERS])}", None
        else:
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
    """Whether a model's settings exclude overlapping entities.

    Raises:
        UsageError: the settings are missing or damaged.
    """
    decoding = override(read_config(folder).sections, overrides).get("decoding")
    return isinstance(decoding, dict) and decoding.get("flat") is True


def measured(folder: Path) -> tuple[Measured, ...]:
    """The scores of a model: after packing, of an ensemble, or else at the end of its training.

    This is the only source of scores that are shown. A model that was trained without dev data has
    none.

    Raises:
        UsageError: the file with the scores is damaged.
    """
    name = next((name for name in _REPORTS if (folder / name).exists()), None)
    if name is None:
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
        raise UsageError(f"{folder / name} is damaged: it has no F1")
    return found


def fingerprint(folder: Path) -> str:
    """Checksum of all files that predictions depend on: weights, settings, vocabularies."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in _READ_FILES and path.name not in _REPORTS and path.is_file():
            digest.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
            with path.open("rb") as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    digest.update(chunk)
    return digest.hexdigest()


def joint_fingerprint(folders: Sequence[Path]) -> str:
    """The fingerprint of a model, or of an ensemble, whatever the order of its members."""
    own = sorted(map(fingerprint, folders))
    return own[0] if len(own) == 1 else hashlib.sha256("\n".join(own).encode()).hexdigest()


def _names() -> list[str]:
    return [folder.name for folder in named_models()]


def _named() -> Iterator[tuple[Literal["bundled", "local"], Path]]:
    """Bundled models, then local ones, except those with the name of a bundled one."""
    bundled = _models_in(_BUNDLED)
    names = {folder.name for folder in bundled}
    yield from (("bundled", folder) for folder in bundled)
    yield from (("local", f) for f in _models_in(local_folder()) if f.name not in names)


def _models_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if (path / CONFIG).is_file())
    except OSError:  # the folder does not exist
        return []


def _downloaded(hub_id: str) -> Path:
    """Fetch a model from the hub: settings, vocabularies and safetensors, no pickles, no code."""
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
