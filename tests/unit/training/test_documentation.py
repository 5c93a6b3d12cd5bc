"""Every option of a recipe is documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from spandet.config import Settings
from spandet.encoding import EncoderSettings
from spandet.pretraining import PretrainingSettings
from spandet.training.recipe import TrainingSettings

DOCS = Path(__file__).parents[3] / "docs"


def sections() -> list[tuple[str, str, type[Settings]]]:
    """The page, the heading and the settings of each section."""
    found: list[tuple[str, str, type[Settings]]] = [
        ("training.md", "training", TrainingSettings),
        ("pretraining.md", "pretraining", PretrainingSettings),
    ]
    for name, field in EncoderSettings.model_fields.items():
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if kind]
        (settings,) = [k for k in kinds if isinstance(k, type) and issubclass(k, Settings)]
        found.append(("encoding.md", f"encoder.{name}", settings))
    return found


@pytest.mark.parametrize(
    ("page", "heading", "settings"), sections(), ids=[heading for _, heading, _ in sections()]
)
def test_every_option_is_explained(page: str, heading: str, settings: type[Settings]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8").split(f"## `[{heading}]`")[1].split("\n## ")[0]
    options = re.findall(r"^\| (`.*?) \| (.*?) \| \S", text, flags=re.MULTILINE)
    shown = {name: default for names, default in options for name in re.findall(r"`(\w+)`", names)}

    assert shown.keys() == settings.model_fields.keys()
    for name, field in settings.model_fields.items():
        default = field.get_default()
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert float(shown[name].split(", ")[-1]) == default
        elif isinstance(default, str | bool):
            assert shown[name] == str(default).lower()
