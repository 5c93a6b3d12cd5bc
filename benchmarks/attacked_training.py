"""Attacks on `spandet train`; see chaos.py."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from pathlib import Path

from attacked_commands import DEFECT, REFUSED, SAME, Attack, Command, Ended, damaged, expect_success

from spandet import generate, write

RECIPE = """
[encoder.hashed]
dim = 16
rows = 64
[encoder.fusion]
dim = 16
[detector]
name = "locate-and-label"
preset = "tuned"
lengths = [1, 2, 3]
[training]
epochs = 4
batch_sentences = 3
lr = 0.01
log_steps = 1
checkpoint_minutes = 0
"""


class Training:
    """`spandet train` with a small recipe, and its undisturbed result."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        folder.mkdir()
        (folder / "recipe.toml").write_text(RECIPE)
        write(generate(60, seed=1), folder / "train.jsonl")
        write(generate(12, seed=2), folder / "dev.jsonl")
        self.out = folder / "out"
        start = time.monotonic()
        expect_success(self.command().end())
        self.seconds = time.monotonic() - start
        self.whole = self.result()
        self.out.rename(folder / "whole")

    def command(self, *options: str, file_limit: int | None = None) -> Command:
        data = ["--train", self.folder / "train.jsonl", "--dev", self.folder / "dev.jsonl"]
        plain = ["train", self.folder / "recipe.toml", *data, "--out", self.out]
        return Command([*plain, *options], self.folder, file_limit=file_limit)

    def start_or_resume(self, file_limit: int | None = None) -> Command:
        has_started = (self.out / "recipe.toml").exists()
        return self.command(*(["--resume"] if has_started else []), file_limit=file_limit)

    def result(self) -> object:
        """The model, and the log without times."""
        lines = [json.loads(line) for line in (self.out / "log.jsonl").read_text().splitlines()]
        for line in lines:
            del line["seconds"], line["sentences_per_second"]
        files = ("model.safetensors", "config.json")
        return lines, [(self.out / name).read_bytes() for name in files]

    def clear(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)

    def check(self, attack: Attack, ended: Ended, what: str) -> None:
        is_done = (self.out / "run.json").exists()
        if ended.code == 0 and is_done and self.result() == self.whole:
            attack.note(SAME)
        elif ended.code in (1, 2) and "Traceback" not in ended.output and not is_done:
            attack.note(REFUSED)
        else:
            attack.note(DEFECT, f"{what}: exit code {ended.code}, {ended.output[-300:]!r}")

    def kills(self, attack: Attack, number: int) -> None:
        done = 0
        while done < number:
            command = self.start_or_resume()
            end = time.monotonic() + self.rng.random() * self.seconds
            while time.monotonic() < end and command.is_running():
                time.sleep(0.002)
            command.kill()
            ended = command.end()
            if ended.code == 0:
                self.check(attack, ended, "resumed")
                self.clear()
            else:
                done += 1
                attack.outcomes["kills"] += 1
        self.check(attack, self.start_or_resume().end(), "resumed at last")
        self.clear()

    def half_done(self) -> Path:
        """A copy of a run that was killed in the middle, with two checkpoints."""
        for _ in range(20):
            self.clear()
            command = self.command()
            while command.is_running() and len(self.checkpoints()) < 2:
                time.sleep(0.002)
            time.sleep(self.seconds / 8)
            command.kill()
            # A kill between two renames leaves one.
            if command.end().code != 0 and len(self.checkpoints()) == 2:
                return Path(shutil.copytree(self.out, self.folder / "half"))
        sys.exit("no run could be stopped that had kept two checkpoints")

    def checkpoints(self) -> list[Path]:
        return sorted(self.out.glob("checkpoint*.safetensors"))

    def damages(self, attack: Attack, number: int) -> None:
        half = self.half_done()
        for _ in range(number):
            self.clear()
            shutil.copytree(half, self.out)
            some = self.rng.sample(self.checkpoints(), self.rng.randint(1, 2))
            for path in some:
                path.write_bytes(damaged(path.read_bytes(), self.rng))
            ended = self.command("--resume").end()
            if len(some) == 1 and ended.code != 0:
                attack.note(DEFECT, f"one damaged checkpoint of two ends the run: {ended.output!r}")
            else:
                self.check(attack, ended, f"damaged {[path.name for path in some]}")
        shutil.rmtree(half)
        self.clear()

    def two_writers(self, attack: Attack, number: int) -> None:
        for _ in range(number):
            self.clear()
            first = self.command()
            while first.is_running() and not (self.out / "recipe.toml").exists():
                time.sleep(0.002)
            second = self.command(*self.rng.choice([(), ("--resume",)]))
            late = second.end()
            was_running = first.is_running()
            self.check(attack, first.end(), "first of two runs")
            if was_running and (late.code != 2 or "is being written by" not in late.output):
                attack.note(DEFECT, f"second of two runs: {late}")
        self.clear()

    def full_disks(self, attack: Attack, number: int) -> None:
        for _ in range(number):
            self.clear()
            ended = self.command(file_limit=self.rng.randint(1, 200_000)).end()
            if ended.code != 0:
                if "Traceback" in ended.output:
                    attack.note(DEFECT, f"full disk: {ended.output[-300:]!r}")
                ended = self.start_or_resume().end()
            self.check(attack, ended, "after a full disk")
        self.clear()
