"""The few bundles of tensors that cross folders.

Axes, always in this order: batch piece word span gold label dim. Masks are True where something is
real. Spans are half-open and counted in words of their sentence. Label 0 is "no entity".
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class WordFeatures:
    """One vector per word of each sentence; padding is zero."""

    features: Float[Tensor, "batch word dim"]
    mask: Bool[Tensor, "batch word"]
    sentence: Float[Tensor, "batch sentence_dim"] | None = None
    """One vector for the whole sentence, from encoders that have one."""

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Words per sentence."""
        return self.mask.sum(dim=1)

    def with_padding(self) -> "WordFeatures":
        """The same with room for a word, even where no sentence has any."""
        if self.mask.shape[1]:
            return self
        features = F.pad(self.features, (0, 0, 0, 1))
        return WordFeatures(features, F.pad(self.mask, (0, 1)), self.sentence)


@dataclass(frozen=True)
class Links:
    """How the fragments of discontinuous entities belong together.

    Probabilities or, where it is known, 0 and 1.
    """

    together: Float[Tensor, "batch span span"]
    """Are two fragments parts of one entity? Symmetric, and 0 for those that touch or overlap."""
    alone: Float[Tensor, "batch span"]
    """Is a fragment an entity by itself?"""


@dataclass(frozen=True)
class GoldSpans:
    """What is right: the entities of each sentence."""

    spans: Int[Tensor, "batch gold 2"]
    labels: Int[Tensor, "batch gold"]
    mask: Bool[Tensor, "batch gold"]
    links: Links | None = None
    """Where discontinuous entities are given as their fragments; else everything is whole."""

    @property
    def counts(self) -> Int[Tensor, " batch"]:
        """Entities per sentence."""
        return self.mask.sum(dim=1)


@dataclass(frozen=True)
class Stage:
    """Where each predicted span stood after one stage of a detector, and what it was taken for."""

    name: str
    spans: Float[Tensor, "batch span 2"]
    scores: Float[Tensor, "batch span"] | None = None
    """How sure the stage was that there is an entity, where it says so."""
    label_probs: Float[Tensor, "batch span label"] | None = None
    """What it took it for, where it says so."""


Trace = tuple[Stage, ...]
"""The way of each predicted span, stage by stage; the span axis is that of the predictions."""


@dataclass(frozen=True)
class SpanPredictions:
    """What a detector believes, before anything is thresholded or suppressed."""

    spans: Int[Tensor, "batch span 2"]
    label_probs: Float[Tensor, "batch span label"]
    mask: Bool[Tensor, "batch span"]
    trace: Trace = ()
    links: Links | None = None
    """From detectors that find the fragments of discontinuous entities."""
    type_probs: Float[Tensor, "batch span"] | None = None
    """The probability of the best label alone, where `label_probs` hold more than that."""


@dataclass(frozen=True)
class Loss:
    """One part of a loss: a sum, already weighted, and over how many things it goes.

    The two stay apart until the training loop has added the counts of all processes, so that a
    batch gives the same gradient however it is divided.
    """

    total: Float[Tensor, ""]
    count: Float[Tensor, ""]

    @classmethod
    def from_sum(cls, total: Float[Tensor, ""], count: Int[Tensor, ""] | int) -> "Loss":
        """A sum over so many things, which half precision could not count."""
        return cls(total, torch.as_tensor(count, dtype=torch.float32, device=total.device))

    @property
    def mean(self) -> Float[Tensor, ""]:
        """The total per thing; 0 for nothing."""
        return self.total / self.count.clamp(min=1)

    def weighted(self, weight: float) -> "Loss":
        """The same, weighing more or less."""
        return Loss(weight * self.total, self.count)


Losses = Mapping[str, Loss]
Thing = TypeVar("Thing")


def total_loss(losses: Losses) -> Float[Tensor, ""]:
    """The sum of all parts, each a mean."""
    return torch.stack([loss.mean for loss in losses.values()]).sum()


def at_least_float32(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The same numbers in single precision or, where they are in double precision, in that."""
    return values if values.dtype == torch.float64 else values.float()


def to_device(thing: Thing, device: torch.device | str) -> Thing:
    """The same bundle with all its tensors on another device."""
    return _to_device(thing, device)  # type: ignore[no-any-return]


def _to_device(thing: Any, device: torch.device | str) -> Any:
    if isinstance(thing, Tensor):
        return thing.to(device, non_blocking=True)
    if isinstance(thing, tuple):
        return tuple(_to_device(part, device) for part in thing)
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing
    own = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return replace(thing, **{name: _to_device(value, device) for name, value in own.items()})
