"""AdamW with groups of parameters, and the schedule of their learning rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from spandet.training.recipe import TrainingSettings


class UncorrectedAdamW(AdamW):
    """AdamW without bias correction of the running means."""

    @torch.no_grad()
    def step(  # type: ignore[override]
        self, closure: Callable[[], float] | None = None
    ) -> float | None:
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: Mapping[str, Any]) -> None:
        state, (first, second) = self.state[parameter], group["betas"]
        if not state:
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        mean: Tensor = state["exp_avg"].lerp_(gradient, 1 - first)
        square: Tensor = state["exp_avg_sq"].mul_(second)
        square.addcmul_(gradient, gradient, value=1 - second)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-group["lr"])


def build_optimizer(
    modules: nn.Module, pretrained: Iterable[nn.Parameter], settings: TrainingSettings
) -> AdamW:
    """An optimizer for all parameters that require gradients.

    There is no weight decay for vectors and scalars (biases, norms). Each group has its highest
    learning rate as `peak_lr`, and as `pretrained` whether it belongs to the pretrained encoder.
    """
    ids = {id(parameter) for parameter in pretrained}
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for parameter in modules.parameters():
        if parameter.requires_grad:
            key = (id(parameter) in ids, parameter.ndim >= 2)
            groups.setdefault(key, []).append(parameter)
    rows = [
        {
            "params": members,
            "pretrained": is_pretrained,
            "peak_lr": settings.encoder_lr if is_pretrained else settings.lr,
            "weight_decay": settings.weight_decay if decays else 0.0,
        }
        for (is_pretrained, decays), members in groups.items()
    ]
    if not settings.bias_correction:
        return UncorrectedAdamW(rows, lr=0.0, betas=settings.betas, eps=settings.eps)
    # The fused version is several times faster than the plain loop on a CPU, with equal results.
    fused = all(p.device.type in {"cpu", "cuda"} for p in modules.parameters())
    return AdamW(rows, lr=0.0, betas=settings.betas, eps=settings.eps, fused=fused)


def set_learning_rates(optimizer: Optimizer, settings: TrainingSettings, at: float) -> None:
    """Set the learning rate of each group.

    Args:
        optimizer: From `build_optimizer`.
        settings: The schedule.
        at: Epochs done, with fractions. The schedule of the encoder starts after its frozen epochs.
    """
    frozen, scale = settings.frozen_epochs, settings.first_stage_scale
    for group in optimizer.param_groups:
        if scale and at < frozen and not group["pretrained"]:
            done, height = at / frozen, group["peak_lr"]
            height = height if done < settings.warmup else scale * height
        else:
            start = frozen if scale or group["pretrained"] else 0
            length, height = settings.epochs - start, group["peak_lr"]
            done = (at - start) / length if length > 0 else 0.0
        group["lr"] = height * share_of_peak(done, settings) if done >= 0 else 0.0


def share_of_peak(done: float, settings: TrainingSettings) -> float:
    """The learning rate as a share of its peak when `done` (0 to 1) of the run is over."""
    if done < settings.warmup:
        return done / settings.warmup
    if settings.schedule == "constant" or settings.warmup == 1:
        return 1.0
    rest = (1 - done) / (1 - settings.warmup)
    return rest if settings.schedule == "linear" else (1 - math.cos(math.pi * rest)) / 2


def state_of(optimizer: Optimizer, names: Mapping[nn.Parameter, str]) -> dict[str, Tensor]:
    """The optimizer state of each parameter, as `parameter/key`."""
    return {
        f"{name}/{key}": value
        for parameter, name in names.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore(
    optimizer: Optimizer, state: Mapping[str, Tensor], names: Mapping[nn.Parameter, str]
) -> None:
    """Load what `state_of` returned."""
    by_name = {name: parameter for parameter, name in names.items()}
    for path, value in state.items():
        name, _, key = path.rpartition("/")
        parameter = by_name[name]
        optimizer.state[parameter][key] = value.to(parameter.device)


def build_layered_optimizer(
    objective: nn.Module, encoder: nn.Module, settings: TrainingSettings, layer_decay: float
) -> AdamW:
    """The same optimizer, with a lower learning rate for each lower layer of the encoder.

    Args:
        objective: The module to train.
        encoder: Its pretrained part.
        settings: Settings of the optimizer.
        layer_decay: The learning rate of a layer as a share of that of the layer above it.
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
    """The number of layers above each parameter; embeddings are below all layers."""
    layers: dict[nn.Parameter, int | None] = {}
    for name, parameter in encoder.named_parameters():
        number = re.search(r"\.(\d+)\.", name)
        layers[parameter] = int(number[1]) if number else -1 if "embed" in name else None
    top = max((layer for layer in layers.values() if layer is not None), default=0)
    return {p: 0 if layer is None else top - layer for p, layer in layers.items()}
