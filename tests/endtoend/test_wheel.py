"""The wheel works outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]


def run(*command: object, **options: Any) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def test_the_wheel_runs_outside_the_checkout(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", dist, PROJECT)
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "spandet/py.typed" in names
    bundled = [path for path in (PROJECT / "src/spandet/models").rglob("*") if path.is_file()]
    assert {path.relative_to(PROJECT / "src").as_posix() for path in bundled} <= set(names)
    assert not any(name.startswith(("tests", "docs", "recipes")) for name in names)
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel)
    # Dependencies come from the environment that runs the tests; spandet itself does not, because
    # an editable install works by a .pth file, which is not followed from here.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    where = run(python, "-c", "import spandet; print(spandet.__file__)", cwd=tmp_path, env=clean)
    assert where.startswith(str(site))
    options = {"cwd": tmp_path, "env": clean}
    run(python, "-m", "spandet", "generate", "--sentences", "5", "-o", "a.jsonl", **options)
    assert "5 sentences" in run(python, "-m", "spandet", "stats", "a.jsonl", **options)
    run(python, "-m", "spandet", "view", "a.jsonl", "-o", "a.html", **options)
