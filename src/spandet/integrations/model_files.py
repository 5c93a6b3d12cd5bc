"""A model as bytes, to store or send it without a folder and without pickle."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from spandet.errors import UsageError
from spandet.inference.manifest import is_inside

if TYPE_CHECKING:
    from spandet.inference.recognizer import Recognizer


def packed(recognizer: Recognizer) -> dict[str, bytes]:
    """The files that `save_pretrained` writes, by relative path."""
    with TemporaryDirectory(prefix="spandet-") as folder:
        recognizer.save_pretrained(folder)
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def unpacked(files: Mapping[str, bytes], *, device: str | None = None) -> Recognizer:
    """Load a recognizer from the files of `packed`.

    Raises:
        UsageError: A path is outside of the model's folder, or the files are not a model.
    """
    from spandet.inference.recognizer import Recognizer  # noqa: PLC0415 (loads torch)

    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="spandet-"))
        for name, data in files.items():
            _write(Path(folder), name, data)
        recognizer = Recognizer.from_pretrained(folder, device=device)
        if recognizer.exported is not None:  # saving it copies its graphs from this folder
            weakref.finalize(recognizer, stack.pop_all().close)
    return recognizer


def _write(folder: Path, name: str, data: bytes) -> None:
    if not is_inside(name):
        raise UsageError(f"a packed model has a file {name!r}, expected a path inside it")
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
