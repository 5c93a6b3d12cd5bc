"""Settings: immutable, validated, with a description per field. An unknown key is an error."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from annotated_types import Ge, Interval
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from spandet.errors import ConfigError, UsageError
from spandet.old_settings import assign, current_names

if TYPE_CHECKING:
    import numpy as np

Share = Annotated[float, Interval(ge=0, le=1)]
Weight = Annotated[float, Ge(0)]
Positive = Annotated[int, Ge(1)]
Natural = Annotated[int, Ge(0)]


class Settings(BaseModel):
    """Base class of all settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _current_names(cls, values: Any) -> Any:
        return current_names(cls.__name__, values) if isinstance(values, Mapping) else values

    @classmethod
    def filled(cls, preset: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a preset, overridden by `values`, which may use old names."""
        try:
            return {**preset, **current_names(cls.__name__, values)}
        except ValueError as error:
            raise ConfigError(str(error)) from None

    @classmethod
    def build(cls, values: Mapping[str, Any], *, where: str) -> Self:
        """Validate values of the section `where`.

        Raises:
            ConfigError: lists every unknown key and invalid value, and what is expected.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ConfigError(
                "; ".join(_explain(cls, item, where) for item in error.errors())
            ) from None


class DetectorSettings(Settings):
    """Base class of the settings of a detector."""

    preset: str | None = None
    """Preset that the settings started from: `paper`, `released-code` or `tuned`. Each covers the
    whole method: detector, decoding, encoder and training."""

    def graph_inputs(self, lengths: Sequence[int]) -> dict[str, np.ndarray]:
        """Inputs of the detector's ONNX graph besides the words, for sentences of these lengths."""
        del lengths
        return {}


def _explain(cls: type[BaseModel], item: Any, where: str) -> str:
    *path, key = [str(part) for part in item["loc"]] or [""]
    section = ".".join([where, *path])
    if item["type"] != "extra_forbidden":
        return f"[{section}] {key}: {item['msg']}, got {item['input']!r}"
    known = sorted(_fields_at(cls, path))
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
    return f"[{section}] has no setting {key}; {hint}"


def _fields_at(cls: type[BaseModel], path: Iterable[str]) -> list[str]:
    current: Any = cls
    for part in path:
        field = getattr(current, "model_fields", {}).get(part)
        inner = getattr(field, "annotation", None)
        options = [inner, *getattr(inner, "__args__", ())]  # X | None
        current = next((o for o in options if hasattr(o, "model_fields")), None)
    return list(getattr(current, "model_fields", {}))


def read_toml(text: str, *, name: str) -> dict[str, Any]:
    """Parse a TOML text; `name` is its file name in errors."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: {error}") from None


def read_json(path: Path) -> Any:
    """Parse a JSON file.

    Raises:
        UsageError: the file is missing, cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} is missing") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path} is damaged: its values are nested too deeply") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is damaged: it is not UTF-8 text") from None
    except ValueError as error:
        raise UsageError(f"{path} is damaged: it is not JSON ({error})") from None


def override(values: dict[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """A copy with assignments such as `training.epochs=3` applied; values are TOML."""
    result: dict[str, Any] = json.loads(json.dumps(values))
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"{assignment!r} is not of the form section.key=value")
        place = result
        for key in keys[:-1]:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise ConfigError(f"{assignment!r}: {key} is a value, not a section")
        assign(keys[-2] if len(keys) > 1 else "", place, keys[-1], _value(text.strip()))
    return result


def _value(text: str) -> Any:
    """Parse a TOML value; anything else is a string, so that names need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
