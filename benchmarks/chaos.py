"""Attack `spandet predict` and `spandet train`, and print the outcome of each attack.

    python benchmarks/chaos.py                  # 200 kills of predict, 50 of train
    python benchmarks/chaos.py --kills 6 --train-kills 3 --damages 10 --no-bio-en   # in seconds

Processes are killed (-9) at random moments of their work and resumed; spools, checkpoints, inputs
and models are damaged at random bytes; two processes write one output; the disk is full. After each
attack there are two correct outcomes: the same bytes as from an undisturbed run, or a one-line
error and no output. Everything else is a defect; it is listed, and the exit code is 1.

Attacked processes are forked from this one, which has loaded torch already, so that they are killed
during their work and not while they start.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from attacked_commands import DEFECT, REFUSED, SAME, Attack
from attacked_predictions import Predictions
from attacked_training import Training

from spandet.inference.recognizer import Recognizer


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200, help="kills of predict")
    parser.add_argument("--train-kills", type=int, default=50)
    parser.add_argument("--damages", type=int, default=100, help="tries of each other attack")
    parser.add_argument("--documents", type=int, default=5000, help="documents of a prediction")
    parser.add_argument("--no-bio-en", action="store_true", help="only the model trained here")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _attacks(options: argparse.Namespace, folder: Path) -> Iterator[Attack]:
    """The attacks, each after it has finished."""
    rng = random.Random(options.seed)  # noqa: S311
    few = max(1, options.damages // 5)
    training = Training(folder / "train", rng)
    model = shutil.copytree(folder / "train" / "whole", folder / "model")
    tiny = Predictions(folder / "tiny", model, options.documents, rng)
    plan: list[tuple[str, Callable[[Attack, int], None], int]] = [
        ("predict: kill -9", tiny.kills, options.kills),
        ("predict: damaged spool", tiny.damages, options.damages),
        ("predict: other input", tiny.other_inputs, few),
        ("predict: spool removed, cut or replaced", tiny.lost_spools, few),
        ("predict: two writers", tiny.two_writers, few),
        ("predict: full disk", tiny.full_disks, few),
        ("predict: damaged model", tiny.damaged_models, options.damages),
        ("train: kill -9", training.kills, options.train_kills),
        ("train: damaged checkpoint", training.damages, few),
        ("train: two writers", training.two_writers, few),
        ("train: full disk", training.full_disks, few),
    ]
    if not options.no_bio_en:
        Recognizer.from_pretrained("bio-en")  # loads its imports before the first fork
        bio = Predictions(folder / "bio", "bio-en", max(1, options.documents // 2), rng)
        plan.append(("predict bio-en: kill -9", bio.kills, max(1, options.kills // 10)))
    for name, work, number in plan:
        attack = Attack(name)
        work(attack, number)
        yield attack


def main() -> int:
    options = _options()
    torch.set_num_threads(1)  # a process with threads cannot be forked safely
    start = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="spandet-chaos-"))
    print(
        f"| attack | kills | {SAME} | {REFUSED} | {DEFECT}s | seconds |\n|---|---|---|---|---|---|"
    )
    defects: list[str] = []
    before = start
    for attack in _attacks(options, folder):
        now = time.monotonic()
        row = [attack.outcomes[end] for end in ("kills", SAME, REFUSED, DEFECT)]
        print(f"| {attack.name} | {' | '.join(map(str, row))} | {now - before:.0f} |", flush=True)
        defects += [f"{attack.name}: {what}" for what in attack.defects]
        before = now
    print(f"\n{len(defects)} defects in {time.monotonic() - start:.0f} s, seed {options.seed}")
    print("\n".join(defects[:50]))
    if not defects:
        shutil.rmtree(folder)
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
