"""A model as plain bytes, for those who keep or send it without a folder: no pickle."""

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
    """The files that `save_pretrained` writes, by their path in the folder."""
    with TemporaryDirectory(prefix="spandet-") as folder:
        recognizer.save_pretrained(folder)
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def unpacked(files: Mapping[str, bytes], *, device: str | None = None) -> Recognizer:
    """The recognizer that was packed.

    Raises:
        UsageError: a file would land outside of the model's folder, or this is no model.
    """
    from spandet.inference.recognizer import Recognizer  # noqa: PLC0415 (torch, only when it is needed)

    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="spandet-"))
        for name, data in files.items():
            _write(Path(folder), name, data)
        recognizer = Recognizer.from_pretrained(folder, device=device)
        if recognizer.exported is not None:  # its graphs are copied from here when it is saved
            weakref.finalize(recognizer, stack.pop_all().close)
    return recognizer


def _write(folder: Path, name: str, data: bytes) -> None:
    if not is_inside(name):
        raise UsageError(f"a packed model has a file {name!r}, expected a path inside it")
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
