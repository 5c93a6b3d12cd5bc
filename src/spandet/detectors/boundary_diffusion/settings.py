"""Settings of boundary-diffusion, and its presets."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Gt
from pydantic import model_validator

from spandet.config import DetectorSettings, Natural, Positive, Share, Weight
from spandet.errors import ConfigError
from spandet.spans.choices import Divisor, State

Schedule = Literal["cosine", "linear"]
SpanPooling = Literal["mean", "max", "ends", "mean+ends", "max+ends"]
TimeCode = Literal["mlp", "raw", "alternating", "none"]
PointerKind = Literal["bilinear", "additive", "mlp", "perceptron"]
PointerLoss = Literal["nll", "bce", "likelihood"]


@dataclass(frozen=True, kw_only=True)
class DenoiserShape:
    """Sizes and kinds of the parts of a denoiser."""

    dim: int
    layers: int
    heads: int
    hidden: int
    dropout: float
    self_attention: bool
    cross_attention: bool
    pooling: SpanPooling
    pointer: PointerKind
    reach: int
    time: TimeCode
    time_first: bool
    slot_codes: bool


class BoundaryDiffusionSettings(DetectorSettings):
    """Options of boundary-diffusion; docs/methods/boundary-diffusion.md has the paper's values."""

    name: Literal["boundary-diffusion"] = "boundary-diffusion"

    # Noise (sections 3 and 4.1)
    schedule: Schedule = "cosine"
    """Schedule of the noise variance β over the levels."""
    levels: Positive = 1000
    """T: number of noise levels."""
    scale: Annotated[float, Gt(0)] = 4.0
    """λ: latents are between -λ and λ; the larger λ, the less a noise level moves boundaries."""
    state: State = "ends"
    """What is noised: first and last word (paper), or first word and width (released code)."""
    divisor: Divisor = "last"
    """Divisor of word positions: the last position, or the number of words (paper)."""
    spread: bool = True
    """Rescale noisy latents when they become spans, so that pure noise covers the sentence."""

    # Slots in training (section 4.1)
    slots: Positive | None = None
    """K: slots per sentence; None: half the number of its words, and 8 more."""
    draws: Positive = 4
    """Noise levels that each encoding of a sentence is trained on."""
    expansion: Literal["repeat", "random", "proposals", "denoised"] = "proposals"
    """Content of slots that are no copies of entities: more copies, random spans, proposals, or the
    spans that the first denoising step predicts from their noise."""
    copies: Positive = 2
    """Slots per entity; not used with expansion = "repeat"."""

    # Entity decoder (section 4.2)
    dim: Natural = 192
    """Size of slot vectors; 0: the size of word vectors."""
    layers: Positive = 2
    """Number of layers of the span encoder."""
    heads: Positive = 4
    """Number of attention heads of the span encoder."""
    hidden: Natural = 0
    """Size of the feed-forward layers of the span encoder; 0: twice the size of slot vectors."""
    self_attention: bool = True
    """Use self-attention between slots; false: an ablation."""
    cross_attention: bool = True
    """Use cross-attention from slots to words; false: an ablation."""
    pooling: SpanPooling = "mean+ends"
    """Input of a slot: mean or maximum of its words, its first and last word, or a sum of both."""
    time: TimeCode = "mlp"
    """Embedding of the noise level: sines and cosines in turn (alternating: paper), sines, then
    cosines (raw), the latter through two linear layers (mlp: released code), or none."""
    time_first: bool = True
    """Add it before the span encoder; false: after it (paper and released code)."""
    slot_codes: bool = False
    """Add an embedding of the slot number to queries and keys (released code)."""
    pointer: PointerKind = "bilinear"
    """Comparison of slots with words: a dot product, a perceptron of two layers on the sum of both
    (mlp: paper), the same with merged matrices (perceptron: released code), or the latter without
    an output bias and with dropout (additive)."""
    reach: Natural = 12
    """Maximum distance in words that attention and pointers distinguish; 0: no distances."""
    pair: Literal["ordered", "independent"] = "ordered"
    """Boundaries of a slot: the best pair that is a span, or the best word for each."""
    label_view: Literal["slot", "pointed"] = "pointed"
    """Input of the classifier: the slot vector (paper), or the span that the slot points at."""
    fragments: bool = False
    """Find discontinuous entities: slots find fragments, and a linker connects them."""
    dropout: Share = 0.1
    """Dropout in the denoising network and on the inputs of the other heads."""

    # Targets and losses (section 4.2 and appendix A)
    assignment: Literal["matching", "overlap"] = "overlap"
    """Entity of a slot: by optimal matching (paper), or the one with the highest IoU."""
    targets_per_entity: Positive | Literal["all"] = 1
    """Maximum number of slots matched with an entity; all: every slot gets an entity."""
    known_origin: Share = 0.5
    """Share of the noise levels below which a copy always has its own entity as target."""
    pointer_loss: PointerLoss = "nll"
    """Loss of a pointer: softmax over words (nll), sigmoid of each word (bce), or sigmoid of the
    right word only (likelihood: as printed in the paper, minimised by P = 1 for every word)."""
    boundary_mean: Literal["entities", "slots"] = "entities"
    """Average the boundary loss over slots with an entity, or over all slots (paper)."""
    boundary_weight: Weight = 1.0
    """Weight of the boundary loss."""
    label_weight: Weight = 6.0
    """Weight of the label loss."""
    none_weight: Weight | Literal["balanced", "batch"] = 1.0
    """Loss weight of slots that are no entity; balanced: all of a sentence weigh as much as its
    entities; batch: all of a batch weigh as much as its entities (released code)."""
    auxiliary: bool = True
    """Apply the losses after every layer of the span encoder, not only after the last."""

    # Prediction (sections 4.1 and 4.3)
    steps: Positive = 3
    """γ: number of denoising steps."""
    eta: Share = 0.0
    """Share of the noise that each step draws again: 0 for none (paper), 1 as in DDPM."""
    start: Literal["gaussian", "low-discrepancy", "proposals"] = "proposals"
    """Start of the slots: Gaussian noise (paper), evenly spread noise, or proposals."""
    start_level: Share = 0.2
    """Noise level that proposals start at, as a share of all levels."""
    start_noise: Share = 0.0
    """Share of that level's noise that is added to proposals."""
    settle: bool = True
    """Stop computing a slot that points at the same span twice in a row."""
    eval_slots: Positive | None = None
    """K in prediction; None: the same as in training."""
    eval_slots_factor: Annotated[float, Gt(0)] = 1.0
    """K in prediction relative to training: 0.5 for half as many slots."""
    score: Literal["label", "sum"] = "label"
    """Score of an entity: its type probability, or the mean of it and both boundaries' (paper)."""

    @model_validator(mode="after")
    def _fits_together(self) -> "BoundaryDiffusionSettings":
        if self.steps > self.levels:
            raise ValueError(f"steps must be at most levels ({self.levels}), got {self.steps}")
        if self.dim % self.heads:
            raise ValueError(f"dim must be a multiple of heads ({self.heads}), got {self.dim}")
        if self.eval_slots is not None and self.eval_slots_factor != 1:
            raise ValueError("give eval_slots or eval_slots_factor, not both")
        return self

    @property
    def proposes(self) -> bool:
        """Whether proposals are needed."""
        return "proposals" in (self.expansion, self.start)

    @property
    def first_level(self) -> int:
        """The noise level at which prediction starts."""
        share = self.start_level if self.start == "proposals" else 1.0
        return round(share * (self.levels - 1))

    def shape(self, words_dim: int) -> DenoiserShape:
        """Sizes of the denoiser for word vectors of this size.

        Raises:
            ConfigError: with `dim` = 0, the size of word vectors is not a multiple of `heads`.
        """
        dim = self.dim or words_dim
        if dim % self.heads:
            raise ConfigError(
                "[detector] heads: with dim = 0, slot vectors have the size of word vectors, "
                f"{dim}, which must be a multiple of heads, got {self.heads}"
            )
        return DenoiserShape(
            dim=dim,
            layers=self.layers,
            heads=self.heads,
            hidden=self.hidden or 2 * dim,
            dropout=self.dropout,
            self_attention=self.self_attention,
            cross_attention=self.cross_attention,
            pooling=self.pooling,
            pointer=self.pointer,
            reach=self.reach,
            time=self.time,
            time_first=self.time_first,
            slot_codes=self.slot_codes,
        )


_AUTHORS = {
    "scale": 1.0,
    "spread": False,
    "slots": 60,
    "draws": 1,
    "copies": 1,
    "known_origin": 0.0,
    "assignment": "matching",
    "dim": 0,
    "heads": 8,
    "hidden": 1024,
    "reach": 0,
    "time_first": False,
    "pointer_loss": "bce",
    "pair": "independent",
    "label_view": "slot",
    "score": "sum",
    "label_weight": 1.0,
    "auxiliary": False,
    "steps": 5,
    "start": "gaussian",
    "settle": False,
}
_PHI = 2.5
_DECODING = {"threshold": _PHI / 3, "nms_decay": 1.0}

_ENCODER = {
    "transformer": {"pooling": "max"},
    "fusion": {"kind": "bilstm", "layers": 2, "dropout": 0.1},
}
"""Section 4.2; the dropout is that of the released code."""
_TRAINING = {
    "epochs": 30,
    "frozen_epochs": 5,
    "batch_sentences": 8,
    "batch_pieces": 8192,  # so that batches with context are not cut
    "encoder_lr": 2e-5,
    "lr": 2e-5,
    "warmup": 0.1,
    "tune": False,
}
"""Section 5.3; epochs for GENIA, CoNLL 2003 and OntoNotes as in the released code."""
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "detector": {
            **_AUTHORS,
            "divisor": "length",
            "expansion": "random",
            "pooling": "mean",
            "layers": 1,
            "pointer": "mlp",
            "time": "alternating",
            "boundary_mean": "slots",
            "none_weight": 1.0,
        },
        "decoding": {
            **_DECODING,
            "merge_by": "label",  # section 4.3, de-duplication
            "crossing": "keep",
        },
        "encoder": _ENCODER,
        "training": _TRAINING,
    },
    "released-code": {
        "detector": {
            **_AUTHORS,
            "state": "width",
            "expansion": "repeat",
            "targets_per_entity": "all",
            "pooling": "ends",
            "layers": 2,
            "pointer": "perceptron",
            "time": "mlp",
            "slot_codes": True,
            "none_weight": "batch",
            "eta": 1.0,
        },
        "decoding": {**_DECODING, "crossing": "greedy", "one_label": False},
        "encoder": {
            **_ENCODER,
            "transformer": {"pooling": "max", "neighbour_sentences": 2, "separators": True},
        },
        "training": {**_TRAINING, "bias_correction": False, "first_stage_scale": 2.0},
    },
    "tuned": {
        "detector": {},
        "encoder": {"transformer": {"freeze_embeddings": True}, "fusion": {"kind": "bilstm"}},
        "training": {
            "epochs": 4,
            "batch_sentences": 8,
            "batch_pieces": 768,
            "encoder_lr": 1e-4,
            "lr": 1e-3,
        },
    },
}
"""`tuned` starts from the defaults of the class, which are ours."""
