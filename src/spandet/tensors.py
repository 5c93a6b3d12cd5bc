"""Dataclasses of tensors that encoders, detectors, decoding and training exchange.

Axes are always in this order: batch piece word span gold label dim. Masks are False for padding.
Spans are half-open and counted in words of their sentence. Label 0 is "no entity".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
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
    """One vector per sentence, from encoders that compute one."""

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Number of words of each sentence."""
        return self.mask.sum(dim=1)

    def with_padding(self) -> "WordFeatures":
        """Add a column of padding if no sentence of the batch has a word."""
        if self.mask.shape[1]:
            return self
        features = F.pad(self.features, (0, 0, 0, 1))
        return WordFeatures(features, F.pad(self.mask, (0, 1)), self.sentence)


@dataclass(frozen=True)
class Links:
    """Which fragments form a discontinuous entity: probabilities, or 0 and 1 for gold."""

    together: Float[Tensor, "batch span span"]
    """Two fragments belong to one entity; symmetric, and 0 for fragments that touch or overlap."""
    alone: Float[Tensor, "batch span"]
    """A fragment is an entity by itself."""


@dataclass(frozen=True)
class GoldSpans:
    """The gold entities of each sentence."""

    spans: Int[Tensor, "batch gold 2"]
    labels: Int[Tensor, "batch gold"]
    mask: Bool[Tensor, "batch gold"]
    links: Links | None = None
    """Given where `spans` are fragments; otherwise each span is an entity."""

    @property
    def counts(self) -> Int[Tensor, " batch"]:
        """Number of entities of each sentence."""
        return self.mask.sum(dim=1)


@dataclass(frozen=True)
class Stage:
    """The candidate spans after one stage of a detector."""

    name: str
    spans: Float[Tensor, "batch span 2"]
    scores: Float[Tensor, "batch span"] | None = None
    """Probability that a span is an entity, from stages that predict it."""
    label_probs: Float[Tensor, "batch span label"] | None = None
    """Label probabilities, from stages that predict them."""


Trace = tuple[Stage, ...]
"""The trajectory of each candidate, stage by stage; all stages have the same span axis."""


@dataclass(frozen=True)
class SpanPredictions:
    """The candidates of a detector, before decoding."""

    spans: Int[Tensor, "batch span 2"]
    label_probs: Float[Tensor, "batch span label"]
    mask: Bool[Tensor, "batch span"]
    trace: Trace = ()
    links: Links | None = None
    """From detectors that predict the fragments of discontinuous entities."""
    type_probs: Float[Tensor, "batch span"] | None = None
    """Probability of the best label alone, where `label_probs` contain other factors."""


@dataclass(frozen=True)
class Loss:
    """One term of the loss: a weighted sum and the number of items in it.

    They are kept apart until the training loop has added the counts of all processes, so that the
    gradient of a batch does not depend on how it is divided.
    """

    total: Float[Tensor, ""]
    count: Float[Tensor, ""]

    @classmethod
    def from_sum(cls, total: Float[Tensor, ""], count: Int[Tensor, ""] | int) -> "Loss":
        """A sum over `count` items; the count is a float32, as half precision cannot count far."""
        return cls(total, torch.as_tensor(count, dtype=torch.float32, device=total.device))

    @property
    def mean(self) -> Float[Tensor, ""]:
        """The sum divided by the count; 0 if there are no items."""
        return self.total / self.count.clamp(min=1)

    def weighted(self, weight: float) -> "Loss":
        """The loss multiplied by a weight."""
        return Loss(weight * self.total, self.count)


Losses = Mapping[str, Loss]
Bundle = TypeVar("Bundle")


def total_loss(losses: Losses) -> Float[Tensor, ""]:
    """The sum of all terms, each a mean over its items."""
    return torch.stack([loss.mean for loss in losses.values()]).sum()


def at_least_float32(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Convert half precision to float32; float32 and float64 are kept."""
    return values if values.dtype == torch.float64 else values.float()


def to_device(bundle: Bundle, device: torch.device | str) -> Bundle:
    """Copy a dataclass, tuple or mapping with all its tensors to a device."""
    return _converted(  # type: ignore[no-any-return]
        bundle, Tensor, lambda tensor: tensor.to(device, non_blocking=True)
    )


def to_tensors(bundle: Bundle) -> Bundle:
    """Convert the NumPy arrays in a dataclass, tuple or mapping to tensors with the same memory."""
    return _converted(bundle, np.ndarray, torch.from_numpy)  # type: ignore[no-any-return]


def _converted(value: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    """A copy in which every object of the kind is converted."""
    if isinstance(value, kind):
        return convert(value)
    if isinstance(value, tuple):
        return tuple(_converted(item, kind, convert) for item in value)
    if isinstance(value, Mapping):
        return {name: _converted(item, kind, convert) for name, item in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    own = {field.name: getattr(value, field.name) for field in fields(value)}
    return replace(value, **{name: _converted(item, kind, convert) for name, item in own.items()})
