"""Every detector in every preset, and with every value that selects another code path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import torch

from spandet.detectors import DETECTORS, Detector
from spandet.errors import ConfigError
from spandet.seeding import generator
from spandet.tensors import GoldSpans, WordFeatures
from support.sentence_toys import Item, gold_spans, word_features

DIM, LABELS = 8, 4
_SMALL: dict[str, dict[str, Any]] = {
    "locate-and-label": {"dropout": 0.0},
    "proposer-regressor": {"heads": 2, "ffn_dim": 16, "dropout": 0.0},
    "boundary-diffusion": {"dim": 8, "heads": 2, "hidden": 16, "dropout": 0.0},
    "span-jury": {"dim": 8, "heads": 2, "nomination_dim": 8, "dropout": 0.0},
    "biaffine": {"dim": 6, "dropout": 0.0},
}
_NUMBERS: dict[str, list[dict[str, Any]]] = {
    "locate-and-label": [{"soft_exponent": 0}, {"eval_lengths": [1, 2]}],
    "proposer-regressor": [
        {"kernels": ()},
        {"layers": 0},
        {"layer_weight": 0.5, "layer_copies": 2},
        {"global_heads": 1},
        {"max_width": 0},
        {"attention": "spatial_window", "window": 3},
        {"span_weight": 1.0},
    ],
    "boundary-diffusion": [
        {"slots": 5, "eval_slots": 9},
        {"start": "gaussian", "eta": 1.0},
        {"start_noise": 1.0},
        {"reach": 0},
        {"known_origin": 1.0},
        {"none_weight": "balanced"},
        {"assignment": "matching", "targets_per_entity": "all"},
    ],
    "span-jury": [{"rounds": 0}, {"eval_rounds": 1}, {"smoothing": 0.2}],
    "biaffine": [{"max_width": 0}, {"max_width": 3}, {"smoothing": 0.2}],
}
"""Numbers that select a code path; values of literals and booleans are enumerated."""
_OF_LOSSES = {
    "pairing",
    "reduction",
    "matching",
    "rest",
    "assignment",
    "expansion",
    "label_view",
    "none_weight",
}
"""Settings of matching and losses, which are varied in presets too."""


@dataclass(frozen=True)
class Variant:
    """A detector with its settings."""

    name: str
    base: str
    """"defaults" or the name of a preset."""
    change: dict[str, Any]
    settings: Any

    def __str__(self) -> str:
        changes = [f"{key}={value}" for key, value in self.change.items()]
        return ",".join([f"{self.name}-{self.base}", *changes])

    def build(self, *, dim: int = DIM) -> Detector:
        """Build the detector with large random weights, so that some scores are high."""
        torch.manual_seed(0)
        build = DETECTORS[self.name].build
        made: Detector = build(self.settings, dim=dim, sentence_dim=dim, labels=LABELS)
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.normal_(std=0.5)
        return made.eval()


def variants() -> list[Variant]:
    """Defaults and presets, and each with each value of each choice, one at a time."""
    return [one for name in DETECTORS for one in _variants_of(name)]


def _variants_of(name: str) -> Iterator[Variant]:
    row = DETECTORS[name]
    presets = {key: own["detector"] for key, own in row.presets.items() if "detector" in own}
    for base, values in {"defaults": {}, **presets}.items():
        for change in _changes(name):
            same = bool(change) and change.items() <= values.items()
            if same or (base != "defaults" and not change.keys() <= _OF_LOSSES):
                continue
            try:
                settings = row.settings.build({**values, **_SMALL[name], **change}, where=name)
            except ConfigError:  # two choices that exclude each other
                continue
            yield Variant(name, base, change, settings)


def _changes(name: str) -> Iterator[dict[str, Any]]:
    yield {}
    fields = DETECTORS[name].settings.model_fields
    for key, field in fields.items():
        yield from ({key: value} for value in _values(field.annotation) if value != field.default)
    yield from _NUMBERS[name]


def _values(annotation: Any) -> tuple[Any, ...]:
    if annotation is bool:
        return (False, True)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def words(*lengths: int, dim: int = DIM, width: int = 0) -> WordFeatures:
    """Sentences with different vectors, padded with zeros."""
    made = word_features(*lengths, dim=dim, width=max(width, 1))
    rows = [torch.randn(dim, generator=generator("sentence", length)) for length in lengths]
    return WordFeatures(made.features, made.mask, torch.stack(rows))


def gold(*sentences: list[Item]) -> GoldSpans:
    """The gold spans of the sentences."""
    return gold_spans(*sentences)


def rngs(*lengths: int) -> list[torch.Generator]:
    """One random generator per sentence."""
    return [generator("chance", length) for length in lengths]
