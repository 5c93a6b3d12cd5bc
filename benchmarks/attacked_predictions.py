"""Attacks on `spandet predict`; see chaos.py."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

from attacked_commands import DEFECT, REFUSED, SAME, Attack, Command, Ended, damaged, expect_success


class Predictions:
    """`spandet predict` with one model and one file, and its undisturbed output."""

    def __init__(self, folder: Path, model: object, documents: int, rng: random.Random) -> None:
        self.folder, self.model, self.rng = folder, model, rng
        folder.mkdir()
        self.input, self.out = folder / "in.jsonl", folder / "out.jsonl"
        self.spool = folder / "out.jsonl.spool"
        texts = (f"Tibburn beat IL-{n} {n % 7} to 2 in B cells." for n in range(documents))
        rows = ({"id": str(n), "text": text} for n, text in enumerate(texts))
        self.input.write_text("".join(json.dumps(row) + "\n" for row in rows))
        start = time.monotonic()
        expect_success(self.command().end())
        self.seconds = time.monotonic() - start
        self.whole = self.out.read_bytes()
        self.clear()

    def command(self, *options: str, file_limit: int | None = None) -> Command:
        plain = ["predict", self.model, self.input, "-o", self.out, "--min-score", 0.05]
        return Command([*plain, *options], self.folder, file_limit=file_limit)

    def clear(self) -> None:
        self.out.unlink(missing_ok=True)
        self.spool.unlink(missing_ok=True)

    def check(self, attack: Attack, ended: Ended, what: str) -> None:
        """Record one of the two correct outcomes, or a defect."""
        left = [
            path.name for path in self.folder.iterdir() if path.name.endswith((".part", ".lock"))
        ]
        if ended.code == 0 and self.out.exists() and self.out.read_bytes() == self.whole:
            if self.spool.exists() or left:
                attack.note(DEFECT, f"{what}: leftovers {left}")
            else:
                attack.note(SAME)
        elif ended.code in (1, 2) and ended.is_one_line and not self.out.exists():
            attack.note(REFUSED)
        else:
            attack.note(DEFECT, f"{what}: exit code {ended.code}, {ended.output[-300:]!r}")

    def kill_at_random(self, command: Command) -> None:
        """Kill the command at a random moment, rarely after its end."""
        end = time.monotonic() + self.rng.random() * self.seconds
        while time.monotonic() < end and command.is_running():
            time.sleep(0.002)
        command.kill()

    def kills(self, attack: Attack, number: int) -> None:
        """Kill and resume repeatedly; finished outputs are compared and removed."""
        done = 0
        while done < number:
            command = self.command("--resume")
            self.kill_at_random(command)
            ended = command.end()
            if ended.code == 0:
                self.check(attack, ended, "resumed")
                self.clear()
                continue
            done += 1
            attack.outcomes["kills"] += 1
            # It may be killed between the commit of the output and the removal of the spool.
            if self.out.exists() and self.out.read_bytes() != self.whole:
                attack.note(DEFECT, "killed, with an incomplete output")
        self.check(attack, self.command("--resume").end(), "resumed at last")
        self.clear()

    def half_done(self) -> bytes:
        """The spool of a run that was killed in the middle."""
        while True:
            self.clear()
            command = self.command()
            while command.is_running() and (
                not self.spool.exists() or self.spool.stat().st_size < len(self.whole) / 3
            ):
                time.sleep(0.002)
            command.kill()
            if command.end().code != 0:
                return self.spool.read_bytes()

    def damages(self, attack: Attack, number: int) -> None:
        spool = self.half_done()
        for _ in range(number):
            self.clear()
            self.spool.write_bytes(damaged(spool, self.rng))
            self.check(attack, self.command("--resume").end(), "damaged spool")
        self.clear()

    def other_inputs(self, attack: Attack, number: int) -> None:
        spool, before = self.half_done(), self.input.read_bytes()
        for _ in range(number):
            self.clear()
            self.spool.write_bytes(spool)
            self.input.write_bytes(damaged(before, self.rng))
            ended = self.command("--resume").end()
            if ended.code == 0:
                attack.note(DEFECT, "resumed with another input")
            else:
                self.check(attack, ended, "other input")
        self.input.write_bytes(before)
        self.clear()

    def lost_spools(self, attack: Attack, number: int) -> None:
        """Remove, replace or truncate the spool while the job runs."""
        for turn in range(number):
            self.clear()
            command = self.command()
            while command.is_running() and not self.spool.exists():
                time.sleep(0.002)
            time.sleep(self.rng.random() * self.seconds / 2)
            try:
                if turn % 3 == 0:
                    self.spool.unlink()
                elif turn % 3 == 1:
                    os.truncate(self.spool, self.spool.stat().st_size // 2)
                else:
                    self.spool.rename(self.folder / "elsewhere")
                    self.spool.write_bytes(b"")
            except FileNotFoundError:  # the job has finished already
                pass
            ended = command.end()
            self.spool.unlink(missing_ok=True)
            (self.folder / "elsewhere").unlink(missing_ok=True)
            self.check(attack, ended, "spool lost or cut")
        self.clear()

    def two_writers(self, attack: Attack, number: int) -> None:
        for _ in range(number):
            self.clear()
            first = self.command()
            time.sleep(self.rng.random() * self.seconds / 2)
            second = self.command(*self.rng.choice([(), ("--resume",), ("--overwrite",)]))
            late, was_running = second.end(), first.is_running()
            early = first.end()
            if late.code == 0 and early.code == 2:  # the second was faster than the first
                early, late, was_running = late, early, True
            self.check(attack, early, "first of two writers")
            if was_running and (late.code != 2 or "is being written by" not in late.output):
                attack.note(DEFECT, f"second of two writers: {late}")
        self.clear()

    def full_disks(self, attack: Attack, number: int) -> None:
        for _ in range(number):
            self.clear()
            ended = self.command(file_limit=self.rng.randint(1, 2 * len(self.whole))).end()
            if ended.code != 0:
                self.check(attack, ended, "full disk")
                ended = self.command("--resume").end()
            self.check(attack, ended, "after a full disk")
        self.clear()

    def damaged_models(self, attack: Attack, number: int) -> None:
        model = Path(str(self.model))
        other_files = (
            "README.md",
            "run.json",
            "report.html",
            "recipe.toml",
            "log.jsonl",
            "pack.json",
        )
        files = [p for p in model.rglob("*") if p.is_file() and p.name not in other_files]
        for _ in range(number):
            path = self.rng.choice(files)
            before = path.read_bytes()
            if self.rng.random() < 0.2:
                path.unlink()
            else:
                path.write_bytes(damaged(before, self.rng))
            self.check(attack, self.command().end(), f"damaged {path.name}")
            path.write_bytes(before)
            self.clear()
