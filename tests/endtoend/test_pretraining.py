"""`spandet pretrain` in one process and in two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from spandet import write
from spandet.cli import app
from support.pretraining_toys import save_tiny_encoder, texts, tiny_settings
from support.training_toys import largest_difference


def command(folder: Path, out: str) -> list[str]:
    # AdamW turns rounding errors of tiny gradients into steps as long as the learning rate.
    chosen = tiny_settings(batch_blocks=3, steps=3, lr=1e-3, head_lr=1e-3)
    settings = chosen.model_dump(mode="json")
    changes = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    words = [folder / "text.jsonl", "--from", folder / "encoder", "--out", folder / out]
    return ["pretrain", *map(str, words), *changes]


def test_two_processes_give_the_result_of_one(tmp_path: Path) -> None:
    """With three blocks, one process has one and the other two."""
    write(texts(60), tmp_path / "text.jsonl")
    save_tiny_encoder(tmp_path / "encoder")
    alone = CliRunner().invoke(app, command(tmp_path, "alone"))
    assert alone.exit_code == 0, alone.output
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    done = subprocess.run(
        [sys.executable, *launch, "spandet", *command(tmp_path, "together")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr

    assert done.stderr.count("step 3 of 3") == 1  # only one of them prints
    one, other = (load_file(tmp_path / out / "model.safetensors") for out in ("alone", "together"))
    assert largest_difference(one, other) < 1e-5
    ours, theirs = (
        [json.loads(line) for line in (tmp_path / out / "log.jsonl").read_text().splitlines()]
        for out in ("alone", "together")
    )
    assert [line["kind"] for line in ours] == [line["kind"] for line in theirs]
    for mine, its in zip(ours, theirs, strict=True):
        assert its.get("loss") == pytest.approx(mine.get("loss"), abs=1e-5)
        assert its.get("accuracy") == mine.get("accuracy")
