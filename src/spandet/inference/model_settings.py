"""Settings of a model: encoder, detector and decoding, with the presets of its detector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import SerializeAsAny

from spandet.config import Settings, override
from spandet.detectors.settings import SETTINGS
from spandet.encoding import EncoderSettings
from spandet.errors import ConfigError, UsageError
from spandet.inference.decoding import DecodingSettings
from spandet.inference.manifest import CONFIG
from spandet.inference.model_names import Config
from spandet.text import Document


class ModelSettings(Settings):
    """Everything that makes a model, apart from its weights and vocabularies."""

    encoder: EncoderSettings
    detector: SerializeAsAny[Settings]
    decoding: DecodingSettings = DecodingSettings()

    @property
    def preset(self) -> str | None:
        """The preset that the settings started from; None if there was none or it is not known."""
        preset: str | None = getattr(self.detector, "preset", None)
        return preset

    @property
    def fragments(self) -> bool:
        """Whether the detector finds the fragments of discontinuous entities."""
        return bool(getattr(self.detector, "fragments", False))

    def suited_to(self, documents: Iterable[Document]) -> ModelSettings:
        """The settings without a fragment linker if no entity of the documents has a gap.

        So a corpus without gaps gives the same model with `fragments = true` and `false`.
        """
        if not self.fragments or any(map(_has_gaps, documents)):
            return self
        detector = self.detector.model_copy(update={"fragments": False})
        return self.model_copy(update={"detector": detector})

    @classmethod
    def resolve(cls, values: Mapping[str, Any]) -> Self:
        """Settings from the sections of a recipe, with the detector's preset filled in."""
        unknown = sorted(set(values) - set(cls.model_fields))
        if unknown:
            raise ConfigError(
                f"there is no section {unknown[0]}; there are {', '.join(cls.model_fields)}"
            )
        for key, value in values.items():
            if not isinstance(value, Mapping):
                raise ConfigError(f"{key} must be a section, got {value!r:.80}")
        detector = dict(values.get("detector", {}))
        name, preset = str(detector.get("name")), detector.get("preset")
        if name not in SETTINGS:
            raise ConfigError(f"[detector] name is {name!r}, expected one of {', '.join(SETTINGS)}")
        row = SETTINGS[name]
        if preset is not None and preset not in row.presets:
            known = " or ".join(row.presets) or f"none, as {name} has no presets"
            raise ConfigError(f"[detector] preset is {preset!r}, expected {known}")
        filled = row.presets[preset] if preset else {}

        return cls(
            encoder=EncoderSettings.build(
                _with_preset(values.get("encoder", {}), filled.get("encoder", {})), where="encoder"
            ),
            detector=row.settings.build(
                row.settings.filled(filled.get("detector", {}), detector), where="detector"
            ),
            decoding=DecodingSettings.build(
                DecodingSettings.filled(filled.get("decoding", {}), values.get("decoding", {})),
                where="decoding",
            ),
        )


def read_settings(folder: Path, config: Config, overrides: Sequence[str] = ()) -> ModelSettings:
    """The settings of a saved model, with changes.

    Args:
        folder: The folder of the model.
        config: The content of its `config.json`.
        overrides: Settings to change, such as `decoding.threshold=0.3`.

    Raises:
        UsageError: the model is damaged.
        ConfigError: the overrides do not fit it.
    """
    try:
        settings = ModelSettings.resolve(config.sections)
    except ConfigError as error:
        raise UsageError(f"{folder / CONFIG} is damaged: {error}") from None
    if overrides:
        settings = ModelSettings.resolve(override(config.sections, overrides))
    return settings


def _with_preset(
    encoder: Mapping[str, Any], preset: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The encoder's sections with defaults of the preset; it adds no section except fusion."""
    sections = {"fusion": {}, **encoder} if "fusion" in preset else encoder
    return {
        part: {**preset.get(part, {}), **own} if isinstance(own, Mapping) else own
        for part, own in sections.items()
    }


def _has_gaps(document: Document) -> bool:
    """Whether any entity has more than one fragment, counted in words."""
    if not any(entity.fragments for entity in document.entities):
        return False
    return any(entity.fragments for own in document.entities_in_words()[0] for entity in own)
