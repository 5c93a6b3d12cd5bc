"""benchmarks/chaos.py with a few attacks of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "chaos.py"
FEW = ("--kills", "4", "--train-kills", "2", "--damages", "5", "--documents", "3000", "--no-bio-en")


def test_no_data_is_lost_and_no_damage_is_accepted() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *FEW], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 defects in " in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("| ")]) == 12
