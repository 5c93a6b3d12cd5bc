"""The pages of spaCy and Ray list all settings, and their examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from spandet.config import Settings
from spandet.integrations.ray_engine import RayJob
from spandet.integrations.spacy_component import ComponentSettings
from support.small_models import small_model, small_texts

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("page", "heading", "settings"),
    [("spacy.md", "setting", ComponentSettings), ("ray.md", "`RayJob`", RayJob)],
)
def test_every_setting_is_explained(page: str, heading: str, settings: type[Settings]) -> None:
    table = (DOCS / page).read_text(encoding="utf-8").split(f"| {heading} |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*?) ?\| \S", table, flags=re.MULTILINE)
    shown = {name: default for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    assert shown.keys() == settings.model_fields.keys()
    for name, field in settings.model_fields.items():
        default = "" if field.is_required() else field.get_default()
        assert shown[name] == ("null" if default is None else str(default).replace("F", "f"))


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="needs pandas")
    (tmp_path / "model").symlink_to(small_model("locate-and-label"))
    page = (DOCS / "spacy.md").read_text(encoding="utf-8")
    codes = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(codes) == 2
    text = small_texts(1)[0]
    codes = [
        code.replace('"IL-9 is a cytokine."', repr(text)) for code in codes
    ]  # what the model knows
    shown = "print(documents[0].to_dict()['text'], list(table.columns))"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*codes, shown])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    columns = ["document", "id", "start", "end", "label", "score", "text", "fragments"]
    assert done.stdout.endswith(f"{text} {columns}\n")
