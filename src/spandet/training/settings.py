"""How a run is made: the [training] section of a recipe."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Gt
from pydantic import model_validator

from spandet.config import Natural, Positive, Settings, Share, Weight

Rate = Annotated[float, Gt(0)]


class TrainingSettings(Settings):
    """Everything about a run that is not about the model."""

    epochs: Positive = 10
    """How often every sentence is seen."""
    seed: int = 0
    """Every random choice follows from it: first weights, order, dropout, sampling."""
    batch_sentences: Positive = 16
    """Most sentences of one batch, over all processes together, unless one passage has more."""
    batch_pieces: Positive = 2048
    """Most pieces of one batch, padding included; a longer sentence is a batch of its own."""
    short_first_epochs: Natural = 0
    """Epochs that go from the batch of the shortest sentences to that of the longest."""
    accumulation: Positive = 1
    """Batches per optimizer step."""
    lr: Rate = 5e-4
    """Highest learning rate of everything that starts from random weights."""
    encoder_lr: Weight = 3e-5
    """Highest learning rate of the pretrained transformer; 0 leaves it as it is."""
    weight_decay: Weight = 0.01
    """Pull towards zero per step; not for biases and norms."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of AdamW's running means of gradient and squared gradient."""
    eps: Rate = 1e-8
    """AdamW's guard against division by zero."""
    bias_correction: bool = True
    """Undo AdamW's bias of its running means towards zero, where they start. Without it, as in the
    released code of several papers, the first steps are several times longer."""
    warmup: Share = 0.1
    """Share of the run in which the learning rates rise from zero."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """How the learning rates fall after that."""
    clip: Weight = 1.0
    """Longest gradient; 0 never cuts."""
    frozen_epochs: Natural = 0
    """Epochs before the transformer starts to learn; its outputs are then computed only once."""
    first_stage_scale: Weight = 0.0
    """With frozen epochs: the learning rate of everything else has a schedule of its own for these
    and another one afterwards, and the first one falls from so many times `lr`; 0: one schedule for
    the whole run."""
    patience: Natural = 0
    """Stop after so many epochs without a better F1 on dev; 0 never stops early."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic; "auto" is half precision where the hardware has it, fp32 on a CPU."""
    checkpoint_minutes: Weight = 10.0
    """Time between two checkpoints inside an epoch; 0 writes one after every step."""
    look_steps: Natural = 0
    """Optimizer steps between two looks at dev inside an epoch, for log.jsonl; 0: after it only."""
    log_steps: Positive = 50
    """Optimizer steps between two lines of log.jsonl."""
    tensorboard: bool = False
    """Write TensorBoard's files too (needs the extra `tensorboard`)."""

    @model_validator(mode="after")
    def _betas_are_shares(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be at least 0 and below 1, got {list(self.betas)}")
        return self

    def is_frozen(self, epoch: int) -> bool:
        """Does the transformer rest in this epoch (counted from 0)?"""
        return epoch < self.frozen_epochs or self.encoder_lr == 0
