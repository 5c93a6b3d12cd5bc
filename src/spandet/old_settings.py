"""Setting names of earlier versions, so that old recipes and saved models can still be loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED: Mapping[str, Mapping[str, str]] = {
    "BiaffineSettings": {"emission": "min_odds"},
    "BoundaryDiffusionSettings": {"nil_weight": "none_weight"},
    "DecodingSettings": {"none_weight": "min_odds"},
    "ProposerRegressorSettings": {"emission": "min_odds"},
    "TrainingSettings": {"look_steps": "evaluation_steps"},
}
"""Settings class → old name → new name."""
REMOVED: Mapping[str, Mapping[str, Any]] = {
    "BoundaryDiffusionSettings": {
        "link_weight": 1.0,
        "proposal_weight": 1.0,
        "slots_extra": 8,
        "slots_per_word": 0.5,
    },
    "LocateAndLabelSettings": {"outer_edge": "clamp"},
    "ProposerRegressorSettings": {"update_norm": False},
    "SpanJurySettings": {"nomination_weight": 1.0},
}
"""Settings class → removed name → the only value that is still accepted: today's behaviour."""
MOVED: Mapping[tuple[str, str], str] = {("decoding", "tune"): "training"}
"""Old section and name of a setting → its section now. Saved models contain it without using it."""


def current_names(group: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace old setting names by new ones and drop removed settings.

    Args:
        group: Name of the settings class.
        values: Settings as written in a recipe or a model's config.

    Raises:
        ValueError: a setting is given under its old and its new name, or a removed setting has a
            value that this version does not support.
    """
    renamed, removed = RENAMED.get(group, {}), REMOVED.get(group, {})
    moved = {name for section, name in MOVED if _settings_class(section) == group}
    result: dict[str, Any] = {}
    for name, value in values.items():
        if name in moved:
            continue
        if name in removed:
            if value != removed[name]:
                raise ValueError(
                    f"{name} was removed: only {removed[name]!r} is still supported, got {value!r}"
                )
            continue
        new = renamed.get(name, name)
        if new in result or (new != name and new in values):
            raise ValueError(f"{name} is now called {new}, and both are set")
        result[new] = value
    return result


def current_sections(values: Mapping[str, Any]) -> dict[str, Any]:
    """Move settings of a recipe to the sections that they are in now; given there, they stay."""
    result = {key: dict(own) if isinstance(own, Mapping) else own for key, own in values.items()}
    for (old, name), new in MOVED.items():
        if isinstance(result.get(old), dict) and name in result[old]:
            value = result[old].pop(name)
            result.setdefault(new, {}).setdefault(name, value)
    return result


def _settings_class(title: str) -> str:
    """The settings class of a section or of a detector."""
    return "".join(word.capitalize() for word in title.replace("_", "-").split("-")) + "Settings"


def assign(section: str, values: dict[str, Any], name: str, value: Any) -> None:
    """Set one value of a section by its new or old name, and remove the other name.

    A settings class is named after its section, that of a detector after the detector:
    `[decoding]` is DecodingSettings, `[detector]` with `name = "span-jury"` SpanJurySettings.
    """
    title = str(values.get("name")) if section == "detector" else section
    renamed = RENAMED.get(_settings_class(title), {})
    new = renamed.get(name, name)
    for old in [old for old, current in renamed.items() if current == new]:
        values.pop(old, None)
    values[new] = value
