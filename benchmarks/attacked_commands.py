"""Commands that can be killed and run with a full disk or damaged files; see chaos.py."""

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
    """The outcomes of one kind of attack."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def note(self, outcome: str, what: str = "") -> None:
        self.outcomes[outcome] += 1
        if outcome == DEFECT:
            self.defects.append(what)


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of a command."""

    code: int
    output: str

    @property
    def is_one_line(self) -> bool:
        return "Traceback" not in self.output and self.output.count("\n") <= 1


class Command:
    """`spandet ARGUMENTS` in a forked process."""

    def __init__(self, arguments: Iterable[object], folder: Path, *, file_limit: int | None = None):
        self.log = folder / f"stderr-{time.monotonic_ns()}"
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_run(list(map(str, arguments)), self.log, file_limit))

    def is_running(self) -> bool:
        return not _has_ended(self.pid)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        output = self.log.read_text(errors="replace")
        self.log.unlink()
        return Ended(os.waitstatus_to_exitcode(status), output)


def _has_ended(pid: int) -> bool:
    """Whether the child has ended; does not reap it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _run(arguments: list[str], log: Path, file_limit: int | None) -> int:
    """In the child: run the command with its output in a file; returns its exit code."""
    with log.open("wb") as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    if file_limit is not None:  # larger files fail as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    sys.argv = ["spandet", *arguments]
    try:
        spandet()
    except SystemExit as ended:
        return int(ended.code or 0) if not isinstance(ended.code, str) else 1
    except BaseException:  # noqa: BLE001 (a user would see it)
        traceback.print_exc()
        return 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The data with one flipped bit, with lost, added or zeroed bytes, or truncated."""
    place = rng.randrange(len(data))
    some = rng.randint(1, 8)
    while True:
        kind = rng.randrange(5)
        if kind == 0:
            found = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
        elif kind == 1:
            found = data[:place] + data[place + some :]
        elif kind == 2:
            found = data[:place] + rng.randbytes(some) + data[place:]
        elif kind == 3:
            found = data[:place] + bytes(some) + data[place + some :]
        else:
            found = data[:place]
        if found != data:
            return found


def expect_success(ended: Ended) -> None:
    """Exit if the undisturbed run has failed, because there is nothing to compare with."""
    if ended.code != 0:
        sys.exit(f"the undisturbed run has failed: {ended.output}")
