"""Locks of outputs, so that only one process writes each; the kernel frees them on exit."""

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
"""Environment variables with the rank of the process: torchrun, accelerate, MPI."""


@contextmanager
def one_writer(output: str | PathLike[str]) -> Iterator[None]:
    """Hold the lock of an output file or folder, which need not exist yet.

    The lock is held on a hidden file next to the output, so that it stays valid while the output is
    replaced. The lock file is removed when the block ends, as are folders that were created for it
    and are empty; the lock file of a killed process does not lock anything.

    Raises:
        UsageError: another process, or another thread of this one, holds the lock (the message
            names the process), or the lock file cannot be written.
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
        if sys.platform != "win32":  # Windows cannot remove an open file
            path.unlink(missing_ok=True)
        os.close(descriptor)
        for parent in made:
            with suppress(OSError):  # it is not empty
                parent.rmdir()


def check_no_writer(output: str | PathLike[str]) -> None:
    """Check that `one_writer` would succeed, before models and data are loaded.

    Raises:
        UsageError: as `one_writer`.
    """
    if is_main_process():
        with one_writer(output):
            pass


def is_main_process() -> bool:
    """Whether this process writes the output, if a launcher has started several."""
    ranks = (os.environ[name] for name in _RANKS if name in os.environ)
    return next(ranks, "0") == "0"


def lock_path(output: str | PathLike[str]) -> Path:
    """The lock file of an output: the same for every spelling of its path.

    It is next to the output, but inside a folder that is mounted or whose parent is not writable.
    """
    final = Path(output).resolve()
    if final.is_dir() and (final.is_mount() or not os.access(final.parent, os.W_OK)):
        return final / ".lock"
    return final.with_name(f".{final.name}.lock")


def _locked(path: Path, output: str | PathLike[str]) -> int:
    """Open and lock the lock file; returns its descriptor."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
        except BlockingIOError:
            holder = os.read(descriptor, 1000).decode(errors="replace").strip()
            os.close(descriptor)
            raise UsageError(
                f"{os.fspath(output)} is being written by {holder or 'another process'}: "
                f"wait until it has finished, or choose another output"
            ) from None
        except OSError as error:  # a file system without locks
            _logger.warning(
                "cannot lock %s (%s): make sure that no other process writes this output",
                path,
                error.strerror,
            )
        if _is_same_file(descriptor, path):
            _write_owner(descriptor)
            return descriptor
        os.close(descriptor)  # its former owner has removed it in the meantime


def _write_owner(descriptor: int) -> None:
    since = datetime.now().astimezone().isoformat(" ", "seconds")
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    _BEYOND = 1 << 30
    """Windows cannot read locked bytes: the locked byte is behind the content of the file."""

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
