"""What can be chosen in boundary diffusion, and what its presets choose."""

from typing import Annotated, Any, Literal

from annotated_types import Gt
from pydantic import model_validator

from spandet.config import Natural, Positive, Settings, Share, Weight
from spandet.detectors.boundary_diffusion.boundary_pointers import PointerKind
from spandet.detectors.boundary_diffusion.denoiser import DenoiserShape, SpanPooling, TimeCode
from spandet.detectors.boundary_diffusion.diffusion import Schedule
from spandet.detectors.boundary_diffusion.slot_losses import PointerLoss
from spandet.errors import ConfigError
from spandet.spans.coordinates import Divisor, State


class BoundaryDiffusionSettings(Settings):
    """What can be chosen. Defaults learn fast and repeat exactly; presets are the authors'."""

    name: Literal["boundary-diffusion"] = "boundary-diffusion"

    schedule: Schedule = "cosine"
    """How noise grows with the level."""
    levels: Positive = 1000
    """T: noise levels."""
    scale: Annotated[float, Gt(0)] = 4.0
    """λ: latents lie between -λ and λ; the larger, the less a level of noise moves boundaries."""
    state: State = "ends"
    """What is noised: first and last word (paper), or first word and width (released code)."""
    divisor: Divisor = "last"
    """What makes words shares of a sentence: the last word, or the number of words (paper)."""
    spread: bool = True
    """Read spans from latents of the same spread at all levels, so that noise covers sentences."""

    slots: Positive | None = None
    """K: noisy spans per sentence in training; None: they follow its length."""
    eval_slots: Positive | None = None
    """K in prediction; None: as in training."""
    eval_slots_factor: Annotated[float, Gt(0)] = 1.0
    """K in prediction relative to K in training, whether fixed or by length; 0.5: half as many."""
    slots_per_word: Weight = 0.5
    """Slots for each word of a sentence, where their number follows its length."""
    slots_extra: Natural = 8
    """Slots on top of these."""

    draws: Positive = 4
    """Noise levels that one encoding of a sentence is trained on."""
    expansion: Literal["repeat", "random", "proposals"] = "proposals"
    """What fills the slots beside entities: more copies, random spans, or proposed spans."""
    copies: Positive = 2
    """Slots made of each entity, unless they are all copies."""
    targets_per_entity: Positive | Literal["all"] = 1
    """How many matched slots may share an entity."""
    known_origin: Share = 0.5
    """Copies noised by less than this share of the levels must find the entity they are made of."""
    assignment: Literal["matching", "overlap"] = "overlap"
    """Other slots: matched one to one at least cost, or with the entity they overlap most."""

    dim: Natural = 192
    """Size of slot vectors; 0: that of word vectors."""
    layers: Positive = 2
    """Layers of the span encoder."""
    heads: Positive = 4
    """Heads of its attention."""
    hidden: Natural = 0
    """Size of its feed-forward nets; 0: twice that of a slot."""
    self_attention: bool = True
    """Ablation: without it slots do not see each other."""
    cross_attention: bool = True
    """Ablation: without it slots do not see the words."""
    pooling: SpanPooling = "mean+ends"
    """What a slot knows of its span: the mean or maximum of its words, its end words, or both."""
    pointer: PointerKind = "bilinear"
    """How a slot is compared with a word: a product; a perceptron of two layers on their sum (mlp:
    paper); one whose first layer is part of the sum (perceptron: released code); or the last
    without an output bias and with dropout (additive)."""
    reach: Natural = 12
    """How far from a slot's span distances count in attention and pointers; 0: not at all."""
    time: TimeCode = "mlp"
    """How the noise level is told: by a sinusoid (raw: sines, then cosines; alternating: sines and
    cosines in turn, the paper), by one that has gone through a net, or not."""
    time_first: bool = True
    """Tell it before the span encoder, not after."""
    slot_codes: bool = False
    """Tell slots apart by their number."""
    dropout: Share = 0.1

    pointer_loss: PointerLoss = "nll"
    """One boundary word among all (softmax), or each word by itself (sigmoid); `likelihood`: only
    the right word by itself, as the paper prints it, which learns to point everywhere."""
    boundary_mean: Literal["entities", "slots"] = "entities"
    """What the boundary loss is a mean over: slots with an entity, or all, like labels (paper)."""
    pair: Literal["ordered", "independent"] = "ordered"
    """The best pair of boundaries that is a span, or the best of each."""
    label_view: Literal["slot", "pointed"] = "pointed"
    """What a label is judged by: the slot (paper), or the span that the slot points at."""
    score: Literal["label", "sum"] = "label"
    """How sure an entity is: its label, or a third of label, first and last word together."""
    boundary_weight: Weight = 1.0
    label_weight: Weight = 6.0
    """More than the others: most of what the encoder learns, it learns from labels."""
    proposal_weight: Weight = 1.0
    nil_weight: Weight | Literal["balanced", "batch"] = 1.0
    """Weight of slots without an entity; balanced: as much as all others of the sentence; batch: as
    much as all others of the batch (released code)."""
    fragments: bool = False
    """Find discontinuous entities: slots find their fragments, and a linker puts these together."""
    link_weight: Weight = 1.0
    auxiliary: bool = True
    """Train every layer of the span encoder, not only the last."""

    steps: Positive = 3
    """γ: denoising steps in prediction."""
    eta: Share = 0.0
    """How much of the noise each step draws anew; 0: none, so that the start decides all."""
    start: Literal["gaussian", "low-discrepancy", "proposals"] = "proposals"
    """Where prediction starts: noise, evenly spread noise, or proposed spans."""
    start_level: Share = 0.2
    """The share of the levels that prediction from proposals starts at."""
    start_noise: Share = 0.0
    """How much of that level's noise proposals really get."""
    settle: bool = True
    """A slot that points at the same span twice in a row rests."""

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
        """Is there anything that needs proposals?"""
        return "proposals" in (self.expansion, self.start)

    @property
    def first_level(self) -> int:
        """The noise level at which prediction starts."""
        share = self.start_level if self.start == "proposals" else 1.0
        return round(share * (self.levels - 1))

    def shape(self, words_dim: int) -> DenoiserShape:
        """The denoiser for words of this size.

        Raises:
            ConfigError: slots of the words' size cannot be divided among the heads.
        """
        dim = self.dim or words_dim
        if dim % self.heads:
            raise ConfigError(
                f"[detector] heads: with dim = 0, slots have the size of word vectors, {dim}, "
                f"which must be a multiple of heads, got {self.heads}"
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
            "nil_weight": 1.0,
        },
        "decoding": {**_DECODING, "merge_by": "label", "crossing": "keep"},
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
            "nil_weight": "batch",
            "eta": 1.0,
        },
        "decoding": {**_DECODING, "crossing": "greedy", "one_label": False},
        "training": {"bias_correction": False, "first_stage_scale": 2.0},
    },
}
