"""Recipes: the model and its training in one TOML file, with every default filled in."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from spandet.config import override, read_toml
from spandet.detectors import DETECTORS
from spandet.errors import ConfigError, UsageError
from spandet.inference.recognizer import ModelSettings
from spandet.training.settings import TrainingSettings

_SECTIONS = (*ModelSettings.model_fields, "training")


@dataclass(frozen=True)
class Recipe:
    """What to train, and how."""

    model: ModelSettings
    training: TrainingSettings

    @classmethod
    def load(cls, path: str | PathLike[str], overrides: Iterable[str] = ()) -> Recipe:
        """The recipe in a file, after assignments such as `training.epochs=3`.

        Raises:
            ConfigError: names what the recipe has and should not have.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path} is not UTF-8 text") from None
        return cls.from_values(override(read_toml(text, name=str(path)), overrides))

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe with these sections."""
        for key, section in values.items():
            _check_section(key, section)
        rest = {key: section for key, section in values.items() if key != "training"}
        model = ModelSettings.resolve(rest)
        chosen = {**_of_preset(values["detector"]), **values.get("training", {})}
        return cls(model, TrainingSettings.build(chosen, where="training"))

    def changed(self, overrides: Iterable[str]) -> Recipe:
        """A copy with assignments applied."""
        return Recipe.from_values(override(self.to_values(), overrides))

    def to_values(self) -> dict[str, Any]:
        """Sections of plain values, nothing left to a default."""
        training = self.training.model_dump(mode="json")
        return {**self.model.model_dump(mode="json"), "training": training}

    def to_toml(self) -> str:
        """The same as text that `load` reads."""
        return "\n".join(_table(key, section) for key, section in self.to_values().items())


def _of_preset(detector: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the preset of a resolved detector says about training."""
    presets = DETECTORS[detector["name"]].presets
    return presets[detector["preset"]].get("training", {}) if detector.get("preset") else {}


def _check_section(key: str, section: object) -> None:
    if key not in _SECTIONS:
        close = difflib.get_close_matches(key, _SECTIONS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(_SECTIONS)}"
        raise ConfigError(f"a recipe has no section [{key}]; {hint}")
    if not isinstance(section, Mapping):
        raise ConfigError(f"{key} must be a section of a recipe, got {section!r}")


def _table(name: str, values: Mapping[str, Any]) -> str:
    """A TOML table and the tables inside it. What is None is left out: TOML has no word for it."""
    plain = {k: v for k, v in values.items() if v is not None and not isinstance(v, Mapping)}
    lines = [f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in plain.items())]
    inner = [
        _table(f"{name}.{_key(key)}", value)
        for key, value in values.items()
        if isinstance(value, Mapping)
    ]
    return "\n".join(["\n".join(lines) + "\n", *inner])


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, Mapping):  # inside a list
        items = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return f"{{ {items} }}"
    return repr(value)  # of a number, which TOML writes as Python does


def _string(text: str) -> str:
    """JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
