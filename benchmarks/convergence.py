"""Prints after how many sentences a run reaches 90, 95 and 99 % of its best F1.

    python benchmarks/convergence.py RUN...

Reads log.jsonl: the evaluations on dev inside epochs (training.evaluation_steps) and after them.
"""

import json
import sys
from pathlib import Path

_INSIDE = ("evaluation", "look")
"""Kinds of log lines; the second one was written by older versions."""


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        total = json.loads((folder / "run.json").read_text())["data"]["train"]["sentences"]
        scores = [
            (
                line["sentences"] if line["kind"] in _INSIDE else line["epoch"] * total,
                line["dev"]["f1"],
            )
            for line in lines
            if line["kind"] in {*_INSIDE, "epoch"}
        ]
        best = max(f1 for _, f1 in scores)
        print(f"{folder}: best F1 {100 * best:.2f}")
        for share in (0.9, 0.95, 0.99):
            seen = next(seen for seen, f1 in scores if f1 >= share * best)
            print(f"  {100 * share:.0f} % of it after {seen:,} sentences")


if __name__ == "__main__":
    main()
