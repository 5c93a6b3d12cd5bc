"""The training engine for an objective on raw text, and the arithmetic it computes in."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from accelerate import Accelerator
from torch import nn

from spandet.pretraining.objective import Batch, Objective, widen_attention
from spandet.pretraining.settings import PretrainingSettings
from spandet.tensors import to_device
from spandet.training.checkpoint import Learner, LossSums
from spandet.training.optimizer import build_layered_optimizer
from spandet.training.step import BatchLoss, Engine, over_processes


def resolve_precision(wanted: str) -> str:
    """What "auto" means here: on a CPU, bf16 if it has instructions for it."""
    if wanted != "auto" or torch.accelerator.is_available():
        return wanted
    able = torch.cpu.get_capabilities()
    return "bf16" if able.get("avx512_bf16") or able.get("amx_bf16") else "fp32"


class PretrainingEngine(Engine):
    """Steps as in training, with another objective, and evaluation."""

    def __init__(  # the model is another one, so nothing of the parent's is built
        self, objective: Objective, settings: PretrainingSettings, accelerator: Accelerator
    ) -> None:
        precision = resolve_precision(settings.precision)
        self._settings = settings.training(precision)
        self._accelerator = accelerator
        objective.to(accelerator.device)
        _set_dropout(objective, settings.dropout)
        if accelerator.device.type == "cpu" and precision == "bf16":
            widen_attention(objective.encoder)
        optimizer = build_layered_optimizer(
            objective, objective.encoder, self._settings, settings.layer_decay
        )
        self.objective = objective
        self.learner = Learner(objective, optimizer)
        self._objective, self._optimizer = accelerator.prepare(objective, optimizer)

    @property
    def learning_rates(self) -> dict[str, float]:
        """The present ones: of the encoder's last layer, and of the output layer."""
        rates = {"encoder": 0.0, "head": 0.0}
        for group in self._optimizer.param_groups:
            part = "encoder" if group["pretrained"] else "head"
            rates[part] = max(rates[part], group["lr"])
        return rates

    def batch_loss(self, batch: Batch, *, counted: bool, ending: bool) -> BatchLoss:
        """The loss of this process's part, divided by the counts of all processes."""
        losses = self._objective(to_device(batch, self.device))
        return over_processes(losses, self._accelerator, counted=counted, ending=ending)

    @torch.no_grad()
    def measure(self, batches: Iterable[Batch]) -> LossSums:
        """What the objective measures on this process's batches, summed over all processes."""
        self._objective.eval()
        sums = LossSums()
        for batch in batches:
            with self._accelerator.autocast():
                found = self.objective.measure(to_device(batch, self.device))
            sums.add(
                LossSums(
                    totals={name: float(one.total) for name, one in found.items()},
                    counts={name: float(one.count) for name, one in found.items()},
                )
            )
        return self._over_processes(sums)

    def _over_processes(self, sums: LossSums) -> LossSums:
        names = ("loss", "accuracy")
        values = [part.get(name, 0.0) for part in (sums.totals, sums.counts) for name in names]
        own = torch.tensor(values, dtype=torch.float64, device=self.device)
        totals, counts = self._accelerator.reduce(own, reduction="sum").view(2, -1).tolist()
        return LossSums(
            totals=dict(zip(names, totals, strict=True)),
            counts=dict(zip(names, counts, strict=True)),
        )


def _set_dropout(model: nn.Module, share: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
