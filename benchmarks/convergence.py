"""How soon is a run nearly as good as it gets? python benchmarks/convergence.py RUN...

Reads log.jsonl: the looks at dev inside epochs (training.look_steps) and those after them.
"""

import json
import sys
from pathlib import Path


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        total = json.loads((folder / "run.json").read_text())["data"]["train"]["sentences"]
        looks = [
            (
                line["sentences"] if line["kind"] == "look" else line["epoch"] * total,
                line["dev"]["f1"],
            )
            for line in lines
            if line["kind"] in {"look", "epoch"}
        ]
        best = max(f1 for _, f1 in looks)
        print(f"{folder}: best F1 {100 * best:.2f}")
        for share in (0.9, 0.95, 0.99):
            seen = next(seen for seen, f1 in looks if f1 >= share * best)
            print(f"  {100 * share:.0f} % of it after {seen:,} sentences")


if __name__ == "__main__":
    main()
