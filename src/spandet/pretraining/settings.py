"""How an encoder is pretrained: the keys of a pretraining recipe and of `--set`."""

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
    """Everything about a pretraining run but the encoder and the texts."""

    epochs: Annotated[float, Gt(0)] = 1.0
    """How often all of the text is read; fractions are possible."""
    steps: Natural = 0
    """Optimizer steps, instead of `epochs`; 0 = as many as `epochs` needs."""
    seed: int = 0
    """Every random choice follows from it: first weights, order, masks, dropout."""
    block: Annotated[int, Interval(ge=8)] = 128
    """Pieces that are read at once, special ones included."""
    batch_blocks: Positive = 16
    """Blocks of one batch, over all processes together."""
    accumulation: Positive = 1
    """Batches per optimizer step."""
    objective: Literal["masked"] = "masked"
    """What is learnt: "masked" predicts masked pieces from the pieces around them."""
    mask_share: _OpenShare = 0.15
    """Share of a block's pieces that are predicted."""
    random_share: Share = 0.1
    """Share of the predicted pieces that are replaced by random pieces instead of the mask."""
    kept_share: Share = 0.1
    """Share of the predicted pieces that are left as they are."""
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
    """Do not train the pieces' own embeddings."""
    dropout: Share = 0.0
    """Of the encoder while it is pretrained; its configuration keeps its own value."""
    weight_decay: Weight = 0.01
    """AdamW's weight decay; not for biases and norms."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay of AdamW's running means of gradient and squared gradient."""
    eps: Rate = 1e-6
    """AdamW's guard against division by zero."""
    warmup: Share = 0.06
    """Share of the run in which the learning rates rise from zero."""
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    """How the learning rates fall after that."""
    clip: Weight = 1.0
    """Maximum gradient norm; 0 disables clipping."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Arithmetic; "auto" is half precision where the hardware has instructions for it."""
    held_out: Annotated[float, Interval(ge=0, lt=1)] = 0.01
    """Share of documents that is never trained on, for the held-out loss; 0 = none."""
    held_out_blocks: Positive = 500
    """Most blocks of held-out text that an evaluation reads."""
    evaluation_steps: Natural = 500
    """Optimizer steps between two evaluations; 0 = only before the first step and at the end."""
    checkpoint_minutes: Weight = 10.0
    """Time between two checkpoints; 0 writes one after every step."""
    log_steps: Positive = 20
    """Optimizer steps between two lines of log.jsonl."""
    tensorboard: bool = False
    """Write TensorBoard's files too (needs the extra `tensorboard`)."""

    @model_validator(mode="after")
    def _shares_leave_room(self) -> Self:
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
            ConfigError: names the keys that are wrong.
            UsageError: the file cannot be read.
        """
        values = override({}, overrides) if path is None else read_values(path, overrides)
        return cls.build(values, where="pretraining")

    def to_toml(self) -> str:
        """The same as text that `load` reads; JSON writes such values as TOML does."""
        values = self.model_dump(mode="json")
        return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())

    def training(self) -> TrainingSettings:
        """Settings of the optimizer, for the modules of `spandet.training`; a run is one epoch."""
        values = {name: getattr(self, name) for name in _SHARED}
        own = {"epochs": 1, "lr": self.head_lr, "encoder_lr": self.lr}
        return TrainingSettings.build({**values, **own}, where="pretraining")


_SHARED = ("seed", "weight_decay", "betas", "eps", "warmup", "schedule", "clip")
