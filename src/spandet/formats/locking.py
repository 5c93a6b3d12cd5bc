"""One writer per output: a lock of the kernel's, which ends with its process, however that ends."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from os import PathLike
from pathlib import Path

from spandet.errors import UsageError

_logger = logging.getLogger("spandet")

_RANKS = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""Where launchers say which of their processes this is: torchrun, accelerate, MPI."""


@contextmanager
def one_writer(output: str | PathLike[str]) -> Iterator[None]:
    """Hold the lock of an output file or folder, which need not exist yet.

    The lock is that of a hidden file beside the output, so that it stays valid while the output is
    replaced. The file goes when the block ends, as do folders that were made for it and stayed
    empty; a file that a killed process has left locks nothing.

    Raises:
        UsageError: another process, or another thread of this one, holds the lock; says which
            process. Or the lock file cannot be written.
    """
    path = lock_path(output)
    made = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _locked(path, output)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from None
    try:
        yield
    finally:
        if sys.platform != "win32":  # there, an open file cannot be removed
            path.unlink(missing_ok=True)
        os.close(descriptor)
        for parent in made:
            with suppress(OSError):  # it holds something
                parent.rmdir()


def check_no_writer(output: str | PathLike[str]) -> None:
    """Refuse at once what `one_writer` would refuse after seconds of loading.

    Raises:
        UsageError: as `one_writer`.
    """
    if is_main_process():
        with one_writer(output):
            pass


def is_main_process() -> bool:
    """Is this the process that writes, where a launcher has started several for one output?"""
    ranks = (os.environ[name] for name in _RANKS if name in os.environ)
    return next(ranks, "0") == "0"


def lock_path(output: str | PathLike[str]) -> Path:
    """The lock file of an output: the same for every spelling of its path.

    It is beside the output, but inside a folder that is mounted or whose parent is not ours.
    """
    final = Path(output).resolve()
    if final.is_dir() and (final.is_mount() or not os.access(final.parent, os.W_OK)):
        return final / ".lock"
    return final.with_name(f".{final.name}.lock")


def _locked(path: Path, output: str | PathLike[str]) -> int:
    """A descriptor of the lock file that holds its lock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
        except BlockingIOError:
            holder = os.read(descriptor, 1000).decode(errors="replace").strip()
            os.close(descriptor)
            raise UsageError(
                f"{os.fspath(output)} is being written by {holder or 'another process'}: "
                f"wait for its end, or name another output"
            ) from None
        except OSError as error:  # a file system without locks
            _logger.warning(
                "cannot lock %s (%s): let no other process write it", path, error.strerror
            )
        if _is_still(descriptor, path):
            _sign(descriptor)
            return descriptor
        os.close(descriptor)  # its former owner has removed it in between


def _sign(descriptor: int) -> None:
    since = datetime.now().astimezone().isoformat(" ", "seconds")
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    _BEYOND = 1 << 30
    """Locked bytes cannot be read there: the lock lies behind what the file says."""

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
