"""Learning rates that fall from layer to layer of an encoder."""

from __future__ import annotations

import re
from typing import Any

from torch import nn
from torch.optim import AdamW

from spandet.training.optimizer import build_optimizer
from spandet.training.settings import TrainingSettings


def build_layered_optimizer(
    objective: nn.Module, encoder: nn.Module, settings: TrainingSettings, layer_decay: float
) -> AdamW:
    """The optimizer of `spandet.training`, with groups for the layers of the encoder.

    Args:
        objective: All that learns.
        encoder: The pretrained part of it.
        settings: Of the optimizer.
        layer_decay: A layer's learning rate as a share of that of the layer above it.
    """
    optimizer = build_optimizer(objective, encoder.parameters(), settings)
    if layer_decay == 1:
        return optimizer
    depths = _depths(encoder)
    for group in list(optimizer.param_groups):
        by_depth: dict[int, list[nn.Parameter]] = {}
        for parameter in group["params"]:
            by_depth.setdefault(depths.get(parameter, 0), []).append(parameter)
        (depth, group["params"]), *others = by_depth.items()
        peak: float = group["peak_lr"]
        group["peak_lr"] = peak * layer_decay**depth
        for depth, members in others:
            own: dict[str, Any] = {**group, "peak_lr": peak * layer_decay**depth}
            optimizer.add_param_group({**own, "params": members})
    return optimizer


def _depths(encoder: nn.Module) -> dict[nn.Parameter, int]:
    """Layers above each parameter; what lies outside of the layers is below or above them all."""
    layers: dict[nn.Parameter, int | None] = {}
    for name, parameter in encoder.named_parameters():
        number = re.search(r"\.(\d+)\.", name)
        layers[parameter] = int(number[1]) if number else -1 if "embed" in name else None
    top = max((layer for layer in layers.values() if layer is not None), default=0)
    return {p: 0 if layer is None else top - layer for p, layer in layers.items()}
