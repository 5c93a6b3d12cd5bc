"""Settings of pretraining: the keys of a pretraining recipe and of `--set`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from typing import Annotated, Literal, Self

from annotated_types import Gt, Interval
from pydantic import model_validator

from spandet.config import Natural, Positive, Settings, Share, Weight, override
from spandet.training.recipe import Rate, TrainingSettings, read_values

_OpenShare = Annotated[float, Interval(gt=0, lt=1)]


class PretrainingSettings(Settings):
    """Settings of a pretraining run, apart from the encoder and the texts."""

    epochs: Annotated[float, Gt(0)] = 1.0
    """Number of passes over the text; may be a fraction."""
    steps: Natural = 0
    """Optimizer steps, instead of `epochs`; 0 = as many as `epochs` needs."""
    seed: int = 0
    """Seed of every random choice: initial weights, order, masks, dropout."""
    block: Annotated[int, Interval(ge=8)] = 128
    """Length of a block in pieces, special ones included."""
    batch_blocks: Positive = 16
    """Blocks of a batch, over all processes."""
    accumulation: Positive = 1
    """Batches per optimizer step."""
    objective: Literal["masked"] = "masked"
    """Training objective: "masked" predicts masked pieces from the pieces around them."""
    mask_share: _OpenShare = 0.15
    """Share of a block's pieces that are predicted."""
    random_share: Share = 0.1
    """Share of the predicted pieces that are replaced by random pieces instead of the mask."""
    kept_share: Share = 0.1
    """Share of the predicted pieces that stay visible."""
    whole_words: bool = False
    """Mask all pieces of a word or none."""
    vocabulary: Literal["all", "corpus"] = "corpus"
    """Pieces among which a masked one is predicted: all, or those that occur in the texts."""
    lr: Weight = 5e-4
    """Highest learning rate of the encoder's last layer."""
    head_lr: Rate = 1e-3
    """Highest learning rate of the output layer, which starts from new weights."""
    layer_decay: Annotated[float, Interval(gt=0, le=1)] = 1.0
    """Learning rate of a layer as a share of that of the layer above it; embeddings come last."""
    freeze_embeddings: bool = False
    """Do not train the embeddings of the pieces."""
    dropout: Share = 0.0
    """Dropout of the encoder during pretraining; the saved configuration keeps its own value."""
    weight_decay: Weight = 0.01
    """AdamW's weight decay; not for biases and norms."""
    betas: tuple[float, float] = (0.9, 0.98)
    """AdamW's decay rates of the running means of gradient and squared gradient."""
    eps: Rate = 1e-6
    """AdamW's epsilon, which avoids division by zero."""
    warmup: Share = 0.06
    """Share of the run in which the learning rates rise from zero."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """How the learning rates fall after the warmup."""
    clip: Weight = 1.0
    """Maximum gradient norm; 0 disables clipping."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic; "auto" is half precision where the hardware has instructions for it."""
    held_out: Annotated[float, Interval(ge=0, lt=1)] = 0.01
    """Share of documents that is held out for evaluation; 0 = none."""
    held_out_blocks: Positive = 500
    """Maximum blocks of held-out text in an evaluation."""
    evaluation_steps: Natural = 500
    """Optimizer steps between two evaluations; 0 = only before the first step and at the end."""
    checkpoint_minutes: Weight = 10.0
    """Minutes between two checkpoints; 0 writes one after every step."""
    log_steps: Positive = 20
    """Optimizer steps between two lines of log.jsonl."""
    tensorboard: bool = False
    """Also write TensorBoard files (needs the extra `tensorboard`)."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.random_share + self.kept_share > 1:
            raise ValueError(
                f"random_share and kept_share must be at most 1 together, got "
                f"{self.random_share} + {self.kept_share}"
            )
        return self

    @classmethod
    def load(cls, path: str | PathLike[str] | None, overrides: Iterable[str] = ()) -> Self:
        """The settings of a TOML file, or the defaults, after assignments such as `steps=100`.

        Raises:
            ConfigError: a setting is unknown or has a wrong value.
            UsageError: the file cannot be read.
        """
        values = override({}, overrides) if path is None else read_values(path, overrides)
        return cls.build(values, where="pretraining")

    def to_toml(self) -> str:
        """The settings as TOML text, which `load` reads; JSON values are TOML values here."""
        values = self.model_dump(mode="json")
        return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())

    def training(self) -> TrainingSettings:
        """Settings of the optimizer, for the modules of `spandet.training`; a run is one epoch."""
        values = {name: getattr(self, name) for name in _SHARED}
        own = {"epochs": 1, "lr": self.head_lr, "encoder_lr": self.lr}
        return TrainingSettings.build({**values, **own}, where="pretraining")


_SHARED = ("seed", "weight_decay", "betas", "eps", "warmup", "schedule", "clip")
