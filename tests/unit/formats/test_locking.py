"""Locks of outputs: one writer at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spandet.errors import UsageError
from spandet.formats import locking
from spandet.formats.locking import lock_path, one_writer

_HOLDER = """
import sys, time
from spandet.formats.locking import one_writer
with one_writer(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that holds the lock of `out`."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_the_error_of_a_second_process_names_the_first(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    message = rf"out is being written by process {holder.pid} on .*"
    with pytest.raises(UsageError, match=message), one_writer(tmp_path / "out"):
        pass
    holder.kill()
    holder.communicate()


def test_a_killed_holder_frees_it_at_once(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    assert lock_path(tmp_path / "out").exists()
    with one_writer(tmp_path / "out"):
        pass
    assert not lock_path(tmp_path / "out").exists()


def test_it_holds_within_one_process_and_ends_with_its_block(tmp_path: Path) -> None:
    with one_writer(tmp_path / "out"):
        again = one_writer(tmp_path / "out")
        with pytest.raises(UsageError, match="is being written by process"), again:
            pass
    with one_writer(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_other_spellings_are_the_same_output(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "alias").symlink_to(tmp_path / "real" / "out")
    spelt = [tmp_path / "link" / "out", tmp_path / "real" / ".." / "real" / "out"]
    with one_writer(tmp_path / "real" / "out"):
        for other in (*spelt, tmp_path / "alias"):
            with pytest.raises(UsageError, match="is being written"), one_writer(other):
                pass


def test_a_folder_whose_parent_is_not_ours_has_the_lock_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with one_writer(folder):
        assert [path.name for path in tmp_path.rglob("*")] == ["mounted", ".lock"]
        with pytest.raises(UsageError, match="is being written by process"), one_writer(folder):
            pass
    assert list(folder.iterdir()) == []


def test_a_lock_that_vanishes_while_it_is_taken_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner may end after this process has opened the file and before it locks it."""
    lock, calls = locking._lock, []

    def after_removal(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            lock_path(tmp_path / "out").unlink()
        lock(descriptor)

    monkeypatch.setattr(locking, "_lock", after_removal)
    with one_writer(tmp_path / "out"):
        assert len(calls) == 2
        with pytest.raises(UsageError), one_writer(tmp_path / "out"):
            pass


def test_an_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = tmp_path / "file" / "out"
    with pytest.raises(UsageError, match=r"cannot write .*file/out"), one_writer(blocked):
        pass
