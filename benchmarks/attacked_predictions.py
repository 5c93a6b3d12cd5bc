"""Attacks on `spandet predict`; see chaos.py."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

from attacked_commands import DEFECT, REFUSED, SAME, Attack, Command, Ended, damaged, expect_success


class Predictions:
    """`spandet predict` of one model over one file, and what it gives undisturbed."""

    def __init__(self, folder: Path, model: object, documents: int, chance: random.Random) -> None:
        self.folder, self.model, self.chance = folder, model, chance
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

    def command(self, *options: str, most: int | None = None) -> Command:
        plain = ["predict", self.model, self.input, "-o", self.out, "--min-score", 0.05]
        return Command([*plain, *options], self.folder, most=most)

    def clear(self) -> None:
        self.out.unlink(missing_ok=True)
        self.spool.unlink(missing_ok=True)

    def judge(self, attack: Attack, ended: Ended, what: str) -> None:
        """The two good ends, or a defect."""
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
            attack.note(DEFECT, f"{what}: exit code {ended.code}, {ended.said[-300:]!r}")

    def kill_at_random(self, command: Command) -> None:
        """Some time after the start; seldom after the end."""
        end = time.monotonic() + self.chance.random() * self.seconds
        while time.monotonic() < end and command.is_running():
            time.sleep(0.002)
        command.kill()

    def kills(self, attack: Attack, number: int) -> None:
        """Kill and resume, again and again; what is finished is compared and begun anew."""
        done = 0
        while done < number:
            command = self.command("--resume")
            self.kill_at_random(command)
            ended = command.end()
            if ended.code == 0:
                self.judge(attack, ended, "resumed")
                self.clear()
                continue
            done += 1
            attack.ends["kills"] += 1
            # It may be killed between the commit of the output and the removal of the spool.
            if self.out.exists() and self.out.read_bytes() != self.whole:
                attack.note(DEFECT, "killed, and there is an output that is not complete")
        self.judge(attack, self.command("--resume").end(), "resumed at last")
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
            self.spool.write_bytes(damaged(spool, self.chance))
            self.judge(attack, self.command("--resume").end(), "damaged spool")
        self.clear()

    def other_inputs(self, attack: Attack, number: int) -> None:
        spool, before = self.half_done(), self.input.read_bytes()
        for _ in range(number):
            self.clear()
            self.spool.write_bytes(spool)
            self.input.write_bytes(damaged(before, self.chance))
            ended = self.command("--resume").end()
            if ended.code == 0:
                attack.note(DEFECT, "went on with another input")
            else:
                self.judge(attack, ended, "other input")
        self.input.write_bytes(before)
        self.clear()

    def lost_spools(self, attack: Attack, number: int) -> None:
        """The spool is removed, replaced or cut while the job runs."""
        for turn in range(number):
            self.clear()
            command = self.command()
            while command.is_running() and not self.spool.exists():
                time.sleep(0.002)
            time.sleep(self.chance.random() * self.seconds / 2)
            try:
                if turn % 3 == 0:
                    self.spool.unlink()
                elif turn % 3 == 1:
                    os.truncate(self.spool, self.spool.stat().st_size // 2)
                else:
                    self.spool.rename(self.folder / "elsewhere")
                    self.spool.write_bytes(b"")
            except FileNotFoundError:  # it was quicker than we
                pass
            ended = command.end()
            self.spool.unlink(missing_ok=True)
            (self.folder / "elsewhere").unlink(missing_ok=True)
            self.judge(attack, ended, "spool lost or cut")
        self.clear()

    def two_writers(self, attack: Attack, number: int) -> None:
        for _ in range(number):
            self.clear()
            first = self.command()
            time.sleep(self.chance.random() * self.seconds / 2)
            second = self.command(*self.chance.choice([(), ("--resume",), ("--overwrite",)]))
            late, was_running = second.end(), first.is_running()
            early = first.end()
            if late.code == 0 and early.code == 2:  # the second was quicker than the first
                early, late, was_running = late, early, True
            self.judge(attack, early, "first of two writers")
            if was_running and (late.code != 2 or "is being written by" not in late.said):
                attack.note(DEFECT, f"second of two writers: {late}")
        self.clear()

    def full_disks(self, attack: Attack, number: int) -> None:
        for _ in range(number):
            self.clear()
            ended = self.command(most=self.chance.randint(1, 2 * len(self.whole))).end()
            if ended.code != 0:
                self.judge(attack, ended, "full disk")
                ended = self.command("--resume").end()
            self.judge(attack, ended, "after a full disk")
        self.clear()

    def damaged_models(self, attack: Attack, number: int) -> None:
        model = Path(str(self.model))
        papers = ("README.md", "run.json", "report.html", "recipe.toml", "log.jsonl", "pack.json")
        files = [p for p in model.rglob("*") if p.is_file() and p.name not in papers]
        for _ in range(number):
            path = self.chance.choice(files)
            before = path.read_bytes()
            if self.chance.random() < 0.2:
                path.unlink()
            else:
                path.write_bytes(damaged(before, self.chance))
            self.judge(attack, self.command().end(), f"damaged {path.name}")
            path.write_bytes(before)
            self.clear()
