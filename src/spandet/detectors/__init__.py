"""The table of all detectors. A detector imports no other detector."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spandet.config import Settings
from spandet.detectors import biaffine
from spandet.detectors.base import Detector
from spandet.detectors.biaffine import Biaffine, BiaffineSettings
from spandet.detectors.boundary_diffusion import settings as boundary_diffusion
from spandet.detectors.boundary_diffusion.detector import BoundaryDiffusion
from spandet.detectors.boundary_diffusion.settings import BoundaryDiffusionSettings
from spandet.detectors.locate_and_label import settings as locate_and_label
from spandet.detectors.locate_and_label.detector import LocateAndLabel
from spandet.detectors.locate_and_label.settings import LocateAndLabelSettings
from spandet.detectors.proposer_regressor import settings as proposer_regressor
from spandet.detectors.proposer_regressor.detector import ProposerRegressor
from spandet.detectors.proposer_regressor.settings import ProposerRegressorSettings
from spandet.detectors.span_jury import SpanJury, SpanJurySettings

__all__ = ["DETECTORS", "Detector", "DetectorRow"]


@dataclass(frozen=True)
class DetectorRow:
    """One detector: its settings class, its constructor and its presets."""

    settings: type[Settings]
    build: Any
    """Called as build(settings, dim=, sentence_dim=, labels=); labels include "no entity"."""
    presets: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """Preset → section of the recipe → values that differ from the defaults. Values for a part of
    the encoder apply only if the recipe has that part."""

    @property
    def default_preset(self) -> str | None:
        """The preset of a recipe that names none: `paper` for the published methods."""
        return "paper" if "tuned" in self.presets else None


DETECTORS: Mapping[str, DetectorRow] = {
    "locate-and-label": DetectorRow(
        LocateAndLabelSettings, LocateAndLabel, locate_and_label.PRESETS
    ),
    "proposer-regressor": DetectorRow(
        ProposerRegressorSettings, ProposerRegressor, proposer_regressor.PRESETS
    ),
    "boundary-diffusion": DetectorRow(
        BoundaryDiffusionSettings, BoundaryDiffusion, boundary_diffusion.PRESETS
    ),
    "span-jury": DetectorRow(SpanJurySettings, SpanJury, {}),
    "biaffine": DetectorRow(BiaffineSettings, Biaffine, biaffine.PRESETS),
}
