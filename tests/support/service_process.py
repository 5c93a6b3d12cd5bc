"""`spandet serve` in a separate process, for tests over real sockets."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest


@dataclass(frozen=True)
class Service:
    """A running service."""

    address: str
    port: int
    process: subprocess.Popen[str]
    log: IO[str]

    def stop(self, *, seconds: float = 60) -> int:
        """Send SIGTERM and wait for the end of the process."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.wait(60)

    def memory(self) -> int:
        """Resident memory in bytes; without /proc the test is skipped."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            pytest.skip("needs /proc to see a process's memory")
        found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
        assert found is not None
        return 1024 * int(found.group(1))

    def log_text(self) -> str:
        """The log so far."""
        self.log.seek(0)
        return self.log.read()


@contextmanager
def service(model: Path, *options: object, token: str | None = None) -> Iterator[Service]:
    """Start a service and wait until it listens; it is killed afterwards."""
    command = [sys.executable, "-m", "spandet", "serve", str(model), *map(str, options)]
    if "--port" not in options:
        command += ["--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    environment.pop("SPANDET_TOKEN", None)
    if token is not None:
        environment["SPANDET_TOKEN"] = token
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+:(\d+)/", line)
            if found is None:
                process.wait(60)
                log.seek(0)
                raise AssertionError(f"the service did not start: {line}{log.read()}")
            yield Service(found.group(), int(found.group(1)), process, log)
        finally:
            process.kill()
            process.wait(60)
            if process.stdout is not None:
                process.stdout.close()
