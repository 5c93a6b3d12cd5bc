"""What a service tells about its model."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spandet.config import read_json
from spandet.errors import UsageError
from spandet.recognizer import Recognizer
from spandet.serving.settings import ServiceSettings

_RUN = "run.json"


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a model beyond its weights."""

    name: str = "model"
    scores: dict[str, float] | None = None
    """Precision, recall and F1 on the dev data of its training."""

    @classmethod
    def of_folder(cls, folder: Path) -> Description:
        """The folder's name, and the scores that its training run noted, if it did."""
        try:
            noted = read_json(folder / _RUN)["dev"]["micro"]
            scores = {key: float(noted[key]) for key in ("precision", "recall", "f1")}
        except (UsageError, ValueError, KeyError, TypeError):
            scores = None
        return cls(folder.resolve().name, scores)

    def to_json(self, recognizer: Recognizer, settings: ServiceSettings) -> dict[str, Any]:
        """All that a client wants to know before it sends anything."""
        return {
            "name": self.name,
            "detector": recognizer.settings.detector.name,  # type: ignore[attr-defined]
            "encoder": _encoder(recognizer),
            "labels": list(recognizer.labels),
            "threshold": recognizer.decoding.threshold,
            "scores": self.scores,
            "version": version("spandet"),
            "limits": settings.model_dump(mode="json"),
        }


def _encoder(recognizer: Recognizer) -> str:
    """The transformer's name and what stands beside it."""
    settings = recognizer.settings.encoder
    parts = [] if settings.transformer is None else [settings.transformer.name]
    others = ("characters", "word_vectors", "tags", "hashed")
    parts += [name.replace("_", " ") for name in others if getattr(settings, name) is not None]
    return " + ".join(parts)
