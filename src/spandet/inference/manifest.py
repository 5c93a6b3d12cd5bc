"""The manifest of a model folder: size and SHA-256 of every file that is read when it is loaded.

`manifest.json` is written last and checked first. So a model that is damaged, incomplete, or half
overwritten is refused by the name of the file, and never loaded as something else.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from spandet.config import read_json
from spandet.errors import UsageError

MANIFEST = "manifest.json"
UNCHECKED = "SPANDET_UNCHECKED"
"""The environment variable that, set to 1, skips the check."""
PROMISE = "manifest"
"""The key of config.json that says that there is a manifest, so that its loss is noticed."""
CONFIG = "config.json"

_DRAFT = ".model.part"
_EXPORT, _TOKENIZER = "onnx.json", "transformer"
_TOKENIZER_ENDS = (".json", ".txt", ".model", ".jinja")
_HINT = f"; get the model again, or set {UNCHECKED}=1 if you have edited it yourself"

_Listed = Mapping[str, tuple[int, str]]
"""Size and digest of files, by their paths in the folder."""


def check_files(folder: Path) -> None:
    """Compare the files of a model with its manifest. A model from before manifests has none.

    Raises:
        UsageError: names the first file that is missing, is not as it was written, or is none of
            the model's.
    """
    if os.environ.get(UNCHECKED) == "1":
        return
    if not (folder / MANIFEST).exists():
        if _promises_manifest(folder):
            raise UsageError(
                f"{folder / MANIFEST} is missing: the model was not written to its end, or the "
                f"file was lost{_HINT}"
            )
        return
    listed = _read(folder)
    for name, expected in listed.items():
        _check_file(folder / name, expected)
    for name in _strangers(folder, listed):
        raise UsageError(f"{folder / name} is not the model's: {MANIFEST} does not list it{_HINT}")


def refresh_manifest(folder: Path) -> None:
    """Write the manifest again after a change of files that it lists."""
    _write(folder, _read(folder))


@contextmanager
def replacing_model(folder: Path) -> Iterator[Path]:
    """An empty folder for all files of a model, which replace those in `folder` at the end.

    Whenever the process is killed, the folder holds the old model, the new one, or one that
    `check_files` refuses until `finish_replacing` completes it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    finish_replacing(folder)
    draft = folder / _DRAFT
    draft.mkdir()
    try:
        yield draft
        _write(draft, _files_in(draft))
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    finish_replacing(folder)


def finish_replacing(folder: Path) -> None:
    """Complete what a killed process has begun to replace; remove what it has not begun with."""
    draft = folder / _DRAFT
    if (draft / MANIFEST).exists():  # written last: the draft was complete
        _take_over(draft, folder)
    shutil.rmtree(draft, ignore_errors=True)


def is_inside(name: str) -> bool:
    """Is this a path that leads to nothing outside of the folder that it is relative to?"""
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name)


def _take_over(draft: Path, folder: Path) -> None:
    names = _read(draft)
    stale = set(_listed_before(folder)) - set(names)
    (folder / MANIFEST).unlink(missing_ok=True)
    # The settings come first, because they promise a manifest: until it is there, nothing loads.
    for name in sorted(names, key=lambda name: name != CONFIG):
        if (draft / name).exists():  # else it was moved before the process was killed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).replace(folder / name)
    for name in {*stale, *_strangers(folder, names)}:
        (folder / name).unlink(missing_ok=True)
    (draft / MANIFEST).replace(folder / MANIFEST)


def _listed_before(folder: Path) -> Iterable[str]:
    try:
        return _read(folder)
    except UsageError:  # none, or damaged: nobody can say which files were the model's
        return ()


def _files_in(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _strangers(folder: Path, listed: Collection[str]) -> list[str]:
    """Files that are not listed, and that change what is loaded by being there."""
    found = [_EXPORT] if (folder / _EXPORT).exists() else []
    if any(name.startswith(f"{_TOKENIZER}/") for name in listed):
        inside = sorted((folder / _TOKENIZER).iterdir())
        found += [f"{_TOKENIZER}/{path.name}" for path in inside if path.suffix in _TOKENIZER_ENDS]
    return [name for name in found if name not in listed]


def _promises_manifest(folder: Path) -> bool:
    if not (folder / CONFIG).exists():
        return False
    config = read_json(folder / CONFIG)
    return isinstance(config, dict) and PROMISE in config


def _check_file(path: Path, expected: tuple[int, str]) -> None:
    size, sha256 = expected
    try:
        found = path.stat().st_size
        if found == size and _sha256(path) == sha256:
            return
    except FileNotFoundError:
        raise UsageError(f"{path} is missing, though {MANIFEST} lists it{_HINT}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    how = "its SHA-256 is not that" if found == size else f"{found:,} bytes, not the {size:,}"
    raise UsageError(f"{path} is damaged, or was changed: {how} of {MANIFEST}{_HINT}")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write(folder: Path, names: Iterable[str]) -> None:
    listed = {name: ((folder / name).stat().st_size, _sha256(folder / name)) for name in names}
    draft = folder / f".{MANIFEST}.part"
    draft.write_bytes(_rendered(listed))
    draft.replace(folder / MANIFEST)


def _read(folder: Path) -> _Listed:
    path = folder / MANIFEST
    values = read_json(path)
    try:
        listed = {name: (own["bytes"], own["sha256"]) for name, own in values["files"].items()}
        # Every byte counts: one that differs could as well be in a digest.
        intact = _rendered(listed) == path.read_bytes() and all(map(is_inside, listed))
    except (LookupError, TypeError, AttributeError):
        intact = False
    if not intact:
        raise UsageError(f"{path} is damaged, or was changed{_HINT}")
    return listed


def _rendered(listed: _Listed) -> bytes:
    files = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in listed.items()}
    files = dict(sorted(files.items()))
    own = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    return json.dumps({"version": 1, "files": files, "sha256": own}, indent=1).encode() + b"\n"
