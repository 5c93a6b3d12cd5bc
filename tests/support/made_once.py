"""Slow things that many tests read: made by the first test that needs them, then kept on disk.

All test processes share them, later runs too, as long as nothing changes that they are made from.
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
    """The folder with this name, which `make` fills once. Read it only: others read it too."""
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
    """A folder for today's code; those of other days go."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _MADE_FROM for path in PROJECT.glob(pattern)):
        digest.update(path.relative_to(PROJECT).as_posix().encode() + b"\0" + path.read_bytes())
    place = _KEPT / digest.hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def _locked(lock: Path, name: str) -> Iterator[None]:
    """One process makes a thing, the others wait for it; different things are made at once."""
    with lock.with_stem(f"{lock.stem}-{name}").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
