"""What is minimised: the same for a batch, however many processes share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Generator, Tensor, nn

from spandet.detectors import Detector
from spandet.encoding import Encoder, EncoderBatch
from spandet.tensors import GoldSpans, Loss
from spandet.training.state import LossSums


class Objective(nn.Module):
    """Encoder and detector as one module, which is what processes synchronise."""

    def __init__(self, encoder: Encoder, detector: Detector) -> None:
        super().__init__()
        self.encoder = encoder
        self.detector = detector

    def forward(
        self, batch: EncoderBatch, gold: GoldSpans, rngs: Sequence[Generator]
    ) -> dict[str, Loss]:
        """The parts of the loss, in full precision; every batch has all of them."""
        losses = self.detector(self.encoder(batch), gold, rngs)
        return {name: Loss(loss.total.float(), loss.count.float()) for name, loss in losses.items()}


@dataclass(frozen=True)
class BatchLoss:
    """The loss of a batch over all processes."""

    objective: Tensor
    """To go backward from, on this process; the mean of all gradients is the batch's."""
    sums: LossSums
    ending: bool
    """Was any process asked to end?"""


def over_processes(
    losses: Mapping[str, Loss], accelerator: Accelerator, *, counted: bool, ending: bool
) -> BatchLoss:
    """Divide sums by the counts of all processes.

    Args:
        losses: Of this process's part.
        accelerator: Knows the other processes.
        counted: False for a process without a part of its own: it computes along for nothing.
        ending: Was this process asked to end?
    """
    names = list(losses)
    totals = torch.stack([losses[name].total for name in names]) * counted
    counts = torch.stack([losses[name].count for name in names]) * counted
    asked = torch.tensor([float(ending)], device=totals.device)
    sums = accelerator.reduce(torch.cat([totals.detach(), counts, asked]), reduction="sum")
    all_counts = sums[len(names) : -1]
    objective = (totals / all_counts.clamp(min=1)).sum() * accelerator.num_processes
    values = sums.tolist()
    return BatchLoss(
        objective,
        LossSums(
            totals=dict(zip(names, values[: len(names)], strict=True)),
            counts=dict(zip(names, values[len(names) : -1], strict=True)),
        ),
        ending=values[-1] > 0,
    )
