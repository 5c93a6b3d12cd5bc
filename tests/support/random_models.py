"""Untrained models that find entities everywhere: made in milliseconds, for laws of prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from spandet import generate
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.text import Document

_SMALL: dict[str, dict[str, Any]] = {
    "locate-and-label": {"filter_threshold": 0.0, "lengths": [1, 2, 3]},
    "proposer-regressor": {"cell": "lstm", "recurrent_dim": 16, "heads": 2, "layers": 1},
    "boundary-diffusion": {"dim": 16},
    "span-jury": {"dim": 16, "heads": 2},
    "biaffine": {"dim": 16, "max_width": 4, "min_odds": 0.0},
}


def random_recognizer(
    detector: str,
    *,
    seed: int = 1,
    decoding: dict[str, Any] | None = None,
    labels: Sequence[str] = ("place", "person", "role"),
    fragments: Sequence[Document] = (),
) -> Recognizer:
    """A model with random weights and these labels; by default it keeps every candidate.

    With documents that have discontinuous entities, it links fragments and has their labels.
    """
    torch.manual_seed(seed)
    values = {
        "encoder": {
            "hashed": {"dim": 8, "rows": 64},
            "characters": {"embedding_dim": 4, "dim": 8},
            "fusion": {"dim": 16},
        },
        "detector": {
            "name": detector,
            **_SMALL[detector],
            **({"fragments": True} if fragments else {}),
        },
        "decoding": {"threshold": 0.0, "min_odds": 0.0, **(decoding or {})},
    }
    documents = []
    for number, document in enumerate(generate(30, seed=2)):
        entities = [
            replace(entity, label=labels[(number + index) % len(labels)])
            for index, entity in enumerate(document.entities)
        ]
        documents.append(replace(document, entities=tuple(entities)))
    model = Recognizer.build(ModelSettings.resolve(values), fragments or documents)
    with torch.no_grad():
        for parameter in model.modules().parameters():
            parameter.normal_(std=0.3)
    return model
