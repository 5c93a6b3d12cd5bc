from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import AdamW

from spandet.errors import TrainingError, UsageError
from spandet.training.checkpoint import (
    BEFORE,
    CHECKPOINT,
    DamagedCheckpointError,
    DevScore,
    EpochRecord,
    Learner,
    RunState,
    read_checkpoint,
    remove_checkpoint,
    write_checkpoint,
)


class Tied(nn.Module):
    """A module with tied weights, as in language models."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.outer = nn.Linear(3, 3)
        self.outer.weight = self.inner.weight
        self.register_buffer("count", torch.tensor(7))


def learner(seed: int = 0) -> Learner:
    torch.manual_seed(seed)
    model = Tied()
    optimizer = AdamW(model.parameters(), fused=True)
    model.outer(model.inner(torch.ones(1, 3))).sum().backward()
    optimizer.step()
    return Learner(model, optimizer)


def state(step: int = 3) -> RunState:
    record = EpochRecord(
        epoch=1,
        step=2,
        losses={"filter": 0.1 + 0.2},
        dev=DevScore(precision=1 / 3, recall=1, f1=0.5, threshold=0.1 + 0.2, f1_untuned=0.2),
        sentences_per_second=1.5,
        seconds=2.0,
    )
    identity = {"training": {"lr": 0.1}, "train data": "abc"}
    return RunState(identity=identity, step=step, history=[record], best=1)


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_checkpoint_round_trip_is_exact(tmp_path: Path) -> None:
    first, other = learner(0), learner(1)
    write_checkpoint(tmp_path / CHECKPOINT, first, state())

    saved = read_checkpoint(tmp_path / CHECKPOINT)
    other.restore(saved.tensors)
    found = saved.state

    assert found == state()
    assert found.best_f1 == 0.5
    assert equal(other.tensors(), first.tensors())
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


@pytest.mark.parametrize("broken", ["fsync", "save"])
def test_a_full_disk_keeps_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / CHECKPOINT
    write_checkpoint(path, learner(0), state(step=3))
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = "os.fsync" if broken == "fsync" else "spandet.training.checkpoint.save_file"
    monkeypatch.setattr(target, full)
    with pytest.raises(TrainingError, match=r"No space left on device; the one before it is int"):
        write_checkpoint(path, learner(1), state(step=4))

    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


@contextmanager
def little_room() -> Iterator[None]:
    """Limit the size of all files that this process writes to a few hundred bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_errors_of_the_operating_system_are_in_the_message(tmp_path: Path) -> None:
    message = r"cannot write the checkpoint .*File too large"
    with pytest.raises(TrainingError, match=message), little_room():
        write_checkpoint(tmp_path / CHECKPOINT, learner(), state())

    assert list(tmp_path.iterdir()) == []


def test_unfinished_files_of_a_killed_save_are_removed(tmp_path: Path) -> None:
    left = tmp_path / ".checkpoint.part" / ".tmpAbc123"
    for clean in (partial(write_checkpoint, learner=learner(), state=state()), remove_checkpoint):
        left.parent.mkdir()
        left.write_bytes(b"half a checkpoint")
        clean(tmp_path / CHECKPOINT)
        assert not left.parent.exists()

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_a_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / CHECKPOINT
    with pytest.raises(UsageError, match=r"has no checkpoint to resume from"):
        read_checkpoint(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(UsageError, match=r"is not a checkpoint of spandet"):
        read_checkpoint(path)


@settings(max_examples=200)
@given(place=st.integers(0), bit=st.integers(0, 7))
def test_every_flipped_bit_is_detected(place: int, bit: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / CHECKPOINT
        data = bytearray(_written())
        data[place % len(data)] ^= 1 << bit
        path.write_bytes(data)
        with pytest.raises(DamagedCheckpointError, match=CHECKPOINT) as raised:
            read_checkpoint(path)
        assert "\n" not in str(raised.value)


@cache
def _written() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / CHECKPOINT
        write_checkpoint(path, learner(), state())
        return path.read_bytes()


def test_a_checkpoint_without_a_checksum_is_refused(tmp_path: Path) -> None:
    metadata = {"spandet": state().model_dump_json()}
    save_file({"model/a": torch.ones(2)}, tmp_path / CHECKPOINT, metadata=metadata)
    with pytest.raises(DamagedCheckpointError, match=r"is missing \(older versions wrote none\)"):
        read_checkpoint(tmp_path / CHECKPOINT)


def test_the_last_two_checkpoints_are_kept_and_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / CHECKPOINT
    for step in (1, 2, 3):
        write_checkpoint(path, learner(), state(step=step))
    assert read_checkpoint(path).state.step == 3
    assert read_checkpoint(tmp_path / BEFORE).state.step == 2
    remove_checkpoint(path)
    assert list(tmp_path.iterdir()) == []
