"""The manifest of a model folder: size and SHA-256 of every file that is read when it is loaded.

`manifest.json` is written last and checked first. So a model that is damaged, incomplete, or partly
overwritten is refused, and the error names the file.
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
HAS_MANIFEST = "manifest"
"""The key of config.json for models with a manifest, so that a missing manifest is detected."""
CONFIG = "config.json"

_DRAFT = ".model.part"
_EXPORT, _TOKENIZER = "onnx.json", "transformer"
_TOKENIZER_ENDS = (".json", ".txt", ".model", ".jinja")
_HINT = f"; get the model again, or set {UNCHECKED}=1 if you have edited it yourself"

_Listed = Mapping[str, tuple[int, str]]
"""Size and digest of files, by their paths in the folder."""


def check_files(folder: Path) -> None:
    """Compare the files of a model with its manifest; models of older versions have none.

    Raises:
        UsageError: names the first file that is missing, has changed, or does not belong to the
            model.
    """
    if os.environ.get(UNCHECKED) == "1":
        return
    if not (folder / MANIFEST).exists():
        if _requires_manifest(folder):
            raise UsageError(
                f"{folder / MANIFEST} is missing: the model was not written completely, or the "
                f"file was lost{_HINT}"
            )
        return
    listed = _read(folder)
    for name, expected in listed.items():
        _check_file(folder / name, expected)
    for name in _unlisted(folder, listed):
        raise UsageError(f"{folder / name} is not listed in {MANIFEST}{_HINT}")


def refresh_manifest(folder: Path) -> None:
    """Write the manifest again after a change of files that it lists."""
    _write(folder, _read(folder))


@contextmanager
def replacing_model(folder: Path) -> Iterator[Path]:
    """Open an empty folder for all files of a model, which replace those in `folder` at the end.

    If the process is killed, the folder contains the old model, the new one, or one that
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
    """Complete a replacement that a killed process has begun, or remove its incomplete files."""
    draft = folder / _DRAFT
    if (draft / MANIFEST).exists():  # written last: the draft was complete
        _take_over(draft, folder)
    shutil.rmtree(draft, ignore_errors=True)


def is_inside(name: str) -> bool:
    """Whether a relative path stays inside its folder."""
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name)


def _take_over(draft: Path, folder: Path) -> None:
    names = _read(draft)
    stale = set(_listed_before(folder)) - set(names)
    (folder / MANIFEST).unlink(missing_ok=True)
    # The settings come first, because they require a manifest: without it, the model is refused.
    for name in sorted(names, key=lambda name: name != CONFIG):
        if (draft / name).exists():  # else it was renamed before the process was killed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).replace(folder / name)
    for name in {*stale, *_unlisted(folder, names)}:
        (folder / name).unlink(missing_ok=True)
    (draft / MANIFEST).replace(folder / MANIFEST)


def _listed_before(folder: Path) -> Iterable[str]:
    try:
        return _read(folder)
    except UsageError:  # missing or damaged: the files of the old model are unknown
        return ()


def _files_in(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _unlisted(folder: Path, listed: Collection[str]) -> list[str]:
    """Files that are not listed but would be loaded with the model."""
    found = [_EXPORT] if (folder / _EXPORT).exists() else []
    if any(name.startswith(f"{_TOKENIZER}/") for name in listed):
        inside = sorted((folder / _TOKENIZER).iterdir())
        found += [f"{_TOKENIZER}/{path.name}" for path in inside if path.suffix in _TOKENIZER_ENDS]
    return [name for name in found if name not in listed]


def _requires_manifest(folder: Path) -> bool:
    if not (folder / CONFIG).exists():
        return False
    config = read_json(folder / CONFIG)
    return isinstance(config, dict) and HAS_MANIFEST in config


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
        # Compared byte by byte: a damaged byte could be in a digest.
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
