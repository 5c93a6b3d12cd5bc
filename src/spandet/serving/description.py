"""Description of the served model, for GET /v1/model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spandet.config import read_json
from spandet.errors import UsageError
from spandet.inference.model_names import ENSEMBLE, PACK, RUN, Measured, measured
from spandet.inference.recognizer import Recognizer
from spandet.serving.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Description:
    """Name and measured quality of a model."""

    name: str = "model"
    scores: dict[str, float] | None = None
    """F1 of the first of `measured`; with precision and recall if it comes from its training."""
    measured: tuple[Measured, ...] = ()
    """F1 by data set."""

    @classmethod
    def of_folder(cls, folder: Path) -> Description:
        """Name of the folder, and the scores in its files if there are any."""
        name = folder.resolve().name
        try:
            return cls(name, _scores(folder), measured(folder))
        except UsageError:
            return cls(name)

    def to_json(self, recognizer: Recognizer, settings: ServiceSettings) -> dict[str, Any]:
        """The body of GET /v1/model: model, labels, scores and limits."""
        return {
            "name": self.name,
            "detector": recognizer.detector_name,
            "encoder": recognizer.encoder_name,
            "labels": list(recognizer.labels),
            "threshold": recognizer.decoding.threshold,
            "scores": self.scores,
            "measured": [asdict(one) for one in self.measured],
            "version": version("spandet"),
            "limits": settings.model_dump(mode="json"),
        }


def _scores(folder: Path) -> dict[str, float] | None:
    figures = measured(folder)
    if not figures:
        return None
    if any((folder / report).exists() for report in (PACK, ENSEMBLE)):
        return {"f1": figures[0].f1}
    scores = read_json(folder / RUN)["dev"]["micro"]
    try:
        return {key: float(scores[key]) for key in ("precision", "recall", "f1")}
    except (LookupError, TypeError, ValueError):
        raise UsageError(f"{folder / RUN} is damaged: it has no scores") from None
