"""Commands that can be killed, starved of disk and given damaged files; see chaos.py."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from spandet.cli import main as spandet

SAME, REFUSED, DEFECT = "same result", "refused", "DEFECT"


@dataclass
class Attack:
    """What became of the tries of one kind of attack."""

    name: str
    ends: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def note(self, end: str, what: str = "") -> None:
        self.ends[end] += 1
        if end == DEFECT:
            self.defects.append(what)


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    said: str

    @property
    def is_one_line(self) -> bool:
        return "Traceback" not in self.said and self.said.count("\n") <= 1


class Command:
    """`spandet ARGUMENTS` in a forked process."""

    def __init__(self, arguments: Iterable[object], folder: Path, *, most: int | None = None):
        self.log = folder / f"stderr-{time.monotonic_ns()}"
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_run(list(map(str, arguments)), self.log, most))

    def is_running(self) -> bool:
        return not _peek(self.pid)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        said = self.log.read_text(errors="replace")
        self.log.unlink()
        return Ended(os.waitstatus_to_exitcode(status), said)


def _peek(pid: int) -> bool:
    """Has the child ended? It stays to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _run(arguments: list[str], log: Path, most: int | None) -> int:
    """In the child: the command with its output in a file; gives its exit code."""
    with log.open("wb") as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    if most is not None:  # from so many bytes on, every file behaves as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    sys.argv = ["spandet", *arguments]
    try:
        spandet()
    except SystemExit as ended:
        return int(ended.code or 0) if not isinstance(ended.code, str) else 1
    except BaseException:  # noqa: BLE001 (it is what a user would see)
        traceback.print_exc()
        return 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The same with one flipped bit, lost, added or zeroed bytes, or without its end."""
    place = chance.randrange(len(data))
    some = chance.randint(1, 8)
    while True:
        kind = chance.randrange(5)
        if kind == 0:
            found = (
                data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
            )
        elif kind == 1:
            found = data[:place] + data[place + some :]
        elif kind == 2:
            found = data[:place] + chance.randbytes(some) + data[place:]
        elif kind == 3:
            found = data[:place] + bytes(some) + data[place + some :]
        else:
            found = data[:place]
        if found != data:
            return found


def expect_success(ended: Ended) -> None:
    """End here if the undisturbed run has failed: there is nothing to compare with."""
    if ended.code != 0:
        sys.exit(f"the undisturbed run has failed: {ended.said}")
