"""Recipes: the model and its training in one TOML file, with every default filled in."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from annotated_types import Gt
from pydantic import model_validator

from spandet.config import Natural, Positive, Settings, Share, Weight, override, read_toml
from spandet.detectors.settings import SETTINGS
from spandet.errors import ConfigError, UsageError
from spandet.inference.model_settings import ModelSettings
from spandet.old_settings import current_sections

Rate = Annotated[float, Gt(0)]


class TrainingSettings(Settings):
    """The [training] section of a recipe: everything about a run except the model."""

    epochs: Positive = 10
    """Number of passes over the training sentences."""
    seed: int = 0
    """Seed of every random choice: initial weights, order, dropout, sampling."""
    batch_sentences: Positive = 16
    """Maximum sentences of a batch, over all processes; one passage may have more."""
    batch_pieces: Positive = 2048
    """Maximum pieces of a batch, padding included; a longer sentence is a batch of its own."""
    short_first_epochs: Natural = 0
    """Epochs at the start whose batches are sorted from the shortest to the longest sentences."""
    accumulation: Positive = 1
    """Batches per optimizer step."""
    lr: Rate = 5e-4
    """Highest learning rate of everything that starts from random weights."""
    encoder_lr: Weight = 3e-5
    """Highest learning rate of the pretrained transformer; 0 freezes it for the whole run."""
    weight_decay: Weight = 0.01
    """AdamW's weight decay; not for biases and norms."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay rates of the running means of gradient and squared gradient."""
    eps: Rate = 1e-8
    """AdamW's epsilon, which avoids division by zero."""
    bias_correction: bool = True
    """Correct AdamW's running means for starting at zero. Without it, as in the released code of
    several papers, the first steps are several times longer."""
    warmup: Share = 0.1
    """Share of the run in which the learning rates rise from zero."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """How the learning rates fall after the warmup."""
    clip: Weight = 1.0
    """Maximum gradient norm; 0 disables clipping."""
    frozen_epochs: Natural = 0
    """Epochs at the start in which the transformer is frozen; its outputs are then cached."""
    first_stage_scale: Weight = 0.0
    """With frozen epochs: `lr` has one schedule for these and another one for the rest of the run,
    and the first one falls from this multiple of `lr`; 0: one schedule for the whole run."""
    tune: bool = True
    """Tune the threshold and Soft-NMS on dev; false: keep the values in [decoding], also for the
    choice of the best epoch."""
    patience: Natural = 0
    """Stop after this many epochs without a better F1 on dev; 0 never stops early."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic; "auto" is half precision where a GPU has it, fp32 on a CPU."""
    checkpoint_minutes: Weight = 10.0
    """Minutes between two checkpoints inside an epoch; 0 writes one after every step."""
    evaluation_steps: Natural = 0
    """Optimizer steps between two evaluations on dev inside an epoch, for the log only; 0: none."""
    log_steps: Positive = 50
    """Optimizer steps between two lines of log.jsonl."""
    tensorboard: bool = False
    """Also write TensorBoard files (needs the extra `tensorboard`)."""

    @model_validator(mode="after")
    def _check_betas(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be at least 0 and below 1, got {list(self.betas)}")
        return self

    def is_frozen(self, epoch: int) -> bool:
        """Whether the transformer is frozen in this epoch (counted from 0)."""
        return epoch < self.frozen_epochs or self.encoder_lr == 0


SECTIONS = (*ModelSettings.model_fields, "training")
"""Names of the sections of a recipe."""


@dataclass(frozen=True)
class Override:
    """A value of a recipe that differs from its preset."""

    setting: str
    value: Any
    preset_value: Any

    def __str__(self) -> str:
        return f"{self.setting} = {_value(self.value)} (preset: {_value(self.preset_value)})"


@dataclass(frozen=True)
class Recipe:
    """A model and how to train it."""

    model: ModelSettings
    training: TrainingSettings

    @property
    def preset(self) -> str | None:
        """The preset of the method; None for a detector without presets."""
        return self.model.preset

    @property
    def overrides(self) -> list[Override]:
        """The settings that differ from the preset; a preset covers all sections."""
        name = self.to_values()["detector"]["name"]
        if self.preset is None:
            return []
        row = SETTINGS[name]
        preset = row.presets[self.preset]
        detector = row.settings.build(preset.get("detector", {}), where="detector")
        published = {**preset, "detector": detector.model_dump(mode="json")}
        own = dict(_flattened(self.to_values()))
        return [
            Override(setting, own[setting], value)
            for setting, value in _flattened(json.loads(json.dumps(published)))
            if setting in own and own[setting] != value and setting != "detector.preset"
        ]

    def preset_line(self) -> str:
        """The detector, its preset and the settings that differ from it, in one line."""
        name, changes = self.to_values()["detector"]["name"], self.overrides
        line = f"{name}, preset {self.preset}"
        return f"{line}, with {', '.join(map(str, changes))}" if changes else line

    @classmethod
    def load(cls, path: str | PathLike[str], overrides: Iterable[str] = ()) -> Recipe:
        """The recipe in a file, after assignments such as `training.epochs=3`.

        Raises:
            ConfigError: a section or setting is unknown or has a wrong value.
            UsageError: the file cannot be read.
        """
        return cls.from_values(read_values(path, overrides))

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe with these sections."""
        for key, section in values.items():
            _check_section(key, section)
        values = _with_default_preset(current_sections(values))
        rest = {key: section for key, section in values.items() if key != "training"}
        model = ModelSettings.resolve(rest)
        preset = _training_of_preset(values["detector"])
        training = TrainingSettings.filled(preset, values.get("training", {}))
        return cls(model, TrainingSettings.build(training, where="training"))

    def changed(self, overrides: Iterable[str]) -> Recipe:
        """A copy with assignments applied."""
        return Recipe.from_values(override(self.to_values(), overrides))

    def to_values(self) -> dict[str, Any]:
        """All sections as plain values, defaults included."""
        training = self.training.model_dump(mode="json")
        return {**self.model.model_dump(mode="json"), "training": training}

    def to_toml(self) -> str:
        """The recipe as TOML text, which `load` reads."""
        return "\n".join(_table(key, section) for key, section in self.to_values().items())


def read_values(path: str | PathLike[str], overrides: Iterable[str] = ()) -> dict[str, Any]:
    """The values of a TOML file, after assignments such as `training.epochs=3`.

    Raises:
        ConfigError: it is not TOML, or an assignment is malformed.
        UsageError: it cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    return override(read_toml(text, name=str(path)), overrides)


def _training_of_preset(detector: Mapping[str, Any]) -> Mapping[str, Any]:
    """The training settings in the preset of a detector."""
    presets = SETTINGS[detector["name"]].presets
    return presets[detector["preset"]].get("training", {}) if detector.get("preset") else {}


def _with_default_preset(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same values; a recipe that names a published method and no preset gets `paper`."""
    detector = values.get("detector", {})
    row = SETTINGS.get(str(detector.get("name")))
    if row is None or row.default_preset is None or "preset" in detector:
        return values
    return {**values, "detector": {**detector, "preset": row.default_preset}}


def _flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their dotted names."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _check_section(key: str, section: object) -> None:
    if key not in SECTIONS:
        close = difflib.get_close_matches(key, SECTIONS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(SECTIONS)}"
        raise ConfigError(f"a recipe has no section [{key}]; {hint}")
    if not isinstance(section, Mapping):
        raise ConfigError(f"{key} must be a section of a recipe, got {section!r}")


def _table(name: str, values: Mapping[str, Any]) -> str:
    """A TOML table and the tables inside it, without None, for which TOML has no value."""
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
    return repr(value)  # numbers are written as in Python


def _string(text: str) -> str:
    """A TOML string: JSON has the same escapes, but does not escape DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
