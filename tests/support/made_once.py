"""Cached folders for tests, such as trained models: created on first use and kept on disk.

All test processes and later runs share them until the code that they are made from changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_KEPT = PROJECT / ".pytest_cache" / "spandet"
_MADE_FROM = ("src/spandet/**/*.py", "recipes/demo/*.toml", "tests/support/*.py", "constraints.txt")


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """The folder with this name, filled once by `make`. Read-only: all tests share it."""
    place = _place()
    with _locked(place.with_suffix(".lock"), name):
        if not (place / name).exists():
            draft = place / f".{name}.part"
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            make(draft)
            draft.rename(place / name)
    return place / name


@cache
def _place() -> Path:
    """The cache folder for the current code."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _MADE_FROM for path in PROJECT.glob(pattern)):
        digest.update(path.relative_to(PROJECT).as_posix().encode() + b"\0" + path.read_bytes())
    place = _KEPT / digest.hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def _locked(lock: Path, name: str) -> Iterator[None]:
    """Lock one name: other processes wait for it, but can make other folders meanwhile."""
    with lock.with_stem(f"{lock.stem}-{name}").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
