"""The commands and code of the README run, in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")


def commands(heading: str) -> list[str]:
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```console\n(.*?)```", section, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ").split("  #")[0] for line in lines if line.startswith("$ ")]


def run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_first_example_is_the_output_of_the_bundled_model(tmp_path: Path) -> None:
    block = re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)[0]
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    shown = "".join(line for line in block.splitlines(True) if not line.startswith("$ "))
    script = "\n".join(commands).replace("spandet ", f"{sys.executable} -m spandet ")
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == shown.strip()


def test_the_first_five_minutes(tmp_path: Path) -> None:
    (tmp_path / "recipes").symlink_to(PROJECT / "recipes")
    wanted = commands("A tour in five minutes")
    assert len(wanted) > 8
    for command in wanted:
        words = shlex.split(command)
        assert words[0] == "spandet"
        quick = ["--set", "training.epochs=1"] if words[1] == "train" else []
        run([sys.executable, "-m", *words, *quick], tmp_path)
    for page in ("corpus.html", "report.html", "model/report.html", "trace.html"):
        assert (tmp_path / page).read_text().startswith("<!doctype html>")
    section = README.split("In Python:\n")[1]
    (code,) = re.findall(r"```python\n(.*?)```", section.split("\n## ")[0], flags=re.DOTALL)
    run([sys.executable, "-c", code], tmp_path)
    check_prediction(tmp_path)


def check_prediction(folder: Path) -> None:
    """Run the section on prediction with the model of the tour."""
    (folder / "notes.txt").write_text("Halburn Rangers beat Tibburn.\nNothing else.\n")
    wanted = commands("Prediction")
    assert len(wanted) > 3
    for command in wanted:
        run(["sh", "-c", command.replace("spandet ", f"{sys.executable} -m spandet ")], folder)
    section = README.split("## Prediction\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) == 3
    for code in blocks:
        needed = re.findall(r"^import (\w+)", code, flags=re.MULTILINE)
        if all(map(find_spec, needed)):  # pandas and datasets may not be here
            run([sys.executable, "-c", code], folder)


def test_every_command_is_in_the_readme() -> None:
    help_ = subprocess.run(
        [sys.executable, "-m", "spandet", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for name in re.findall(r"^│ (\w+) ", help_, flags=re.MULTILINE):
        assert f"`spandet {name}" in README


def test_links_point_to_existing_files() -> None:
    for name in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (PROJECT / name).exists(), name
