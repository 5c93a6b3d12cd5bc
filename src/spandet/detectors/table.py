"""The table of all detectors. A detector imports no other detector."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spandet.detectors.biaffine import Biaffine
from spandet.detectors.boundary_diffusion.detector import BoundaryDiffusion
from spandet.detectors.locate_and_label.detector import LocateAndLabel
from spandet.detectors.proposer_regressor.detector import ProposerRegressor
from spandet.detectors.settings import SETTINGS, SettingsRow
from spandet.detectors.span_jury import SpanJury


@dataclass(frozen=True)
class DetectorRow(SettingsRow):
    """One detector: its settings class, its presets and its constructor."""

    build: Any
    """Called as build(settings, dim=, sentence_dim=, labels=); labels include "no entity"."""


_BUILD: Mapping[str, Any] = {
    "locate-and-label": LocateAndLabel,
    "proposer-regressor": ProposerRegressor,
    "boundary-diffusion": BoundaryDiffusion,
    "span-jury": SpanJury,
    "biaffine": Biaffine,
}
DETECTORS: Mapping[str, DetectorRow] = {
    name: DetectorRow(row.settings, row.presets, _BUILD[name]) for name, row in SETTINGS.items()
}
