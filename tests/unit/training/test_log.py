from __future__ import annotations

import json
import sys
from errno import ENOSPC
from pathlib import Path
from types import SimpleNamespace

import pytest

from spandet.errors import MissingExtraError, TrainingError
from spandet.training.log import LOG, Log


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


def test_a_resumed_log_has_no_duplicates(tmp_path: Path) -> None:
    with Log(tmp_path, size=0, step=0, tensorboard=False) as log:
        log.write("step", 1, {"losses": {"a": 0.5}})
        size = log.size()
        log.write("step", 2, {"losses": {"a": 0.4}})  # after the checkpoint, and then a crash
    with Log(tmp_path, size=size, step=1, tensorboard=False) as log:
        log.write("step", 2, {"losses": {"a": 0.4}})

    assert [line["step"] for line in lines(tmp_path)] == [1, 2]
    assert lines(tmp_path)[0] == {"kind": "step", "step": 1, "losses": {"a": 0.5}}


def test_a_full_disk_is_an_error_with_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with (
        Log(tmp_path, size=0, step=0, tensorboard=False) as log,
        pytest.raises(TrainingError, match=r"cannot write .*log\.jsonl: No space left on device"),
    ):
        log.size()


def test_a_new_run_starts_a_new_log(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text("a line of a run that crashed before its first checkpoint\n")
    with Log(tmp_path, size=0, step=0, tensorboard=False) as log:
        log.write("step", 1, {})

    assert len(lines(tmp_path)) == 1


def test_tensorboard_gets_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Writer:
        def __init__(self, folder: str, purge_step: int) -> None:
            self.place = (Path(folder).name, purge_step)
            self.scalars: list[tuple[str, float, int]] = []
            writers.append(self)

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.scalars.append((name, value, step))

        def close(self) -> None:
            self.scalars.append(("closed", 0, 0))

    writers: list[Writer] = []
    monkeypatch.setitem(
        sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer)
    )
    with Log(tmp_path, size=0, step=7, tensorboard=True) as log:
        log.write("epoch", 8, {"epoch": 2, "losses": {"a": 0.5}, "dev": None})

    assert writers[0].place == ("tensorboard", 7)
    assert writers[0].scalars == [
        ("epoch/epoch", 2.0, 8),
        ("epoch/losses/a", 0.5, 8),
        ("closed", 0, 0),
    ]


def test_tensorboard_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)

    with pytest.raises(MissingExtraError, match=r'pip install "spandet\[tensorboard\]"'):
        Log(tmp_path, size=0, step=0, tensorboard=True)
