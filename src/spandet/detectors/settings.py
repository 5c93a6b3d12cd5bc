"""The table of the settings and presets of all detectors: needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spandet.config import Settings
from spandet.detectors import biaffine_settings as biaffine
from spandet.detectors.boundary_diffusion import settings as boundary_diffusion
from spandet.detectors.locate_and_label import settings as locate_and_label
from spandet.detectors.proposer_regressor import settings as proposer_regressor
from spandet.detectors.span_jury_settings import SpanJurySettings


@dataclass(frozen=True)
class SettingsRow:
    """The settings class of one detector, and its presets."""

    settings: type[Settings]
    presets: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """Preset → section of the recipe → values that differ from the defaults. Values for a part of
    the encoder apply only if the recipe has that part."""

    @property
    def default_preset(self) -> str | None:
        """The preset of a recipe that names none: `paper` for the published methods."""
        return "paper" if "tuned" in self.presets else None


SETTINGS: Mapping[str, SettingsRow] = {
    "locate-and-label": SettingsRow(
        locate_and_label.LocateAndLabelSettings, locate_and_label.PRESETS
    ),
    "proposer-regressor": SettingsRow(
        proposer_regressor.ProposerRegressorSettings, proposer_regressor.PRESETS
    ),
    "boundary-diffusion": SettingsRow(
        boundary_diffusion.BoundaryDiffusionSettings, boundary_diffusion.PRESETS
    ),
    "span-jury": SettingsRow(SpanJurySettings, {}),
    "biaffine": SettingsRow(biaffine.BiaffineSettings, biaffine.PRESETS),
}
