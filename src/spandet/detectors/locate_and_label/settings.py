"""Settings of locate-and-label, and its presets."""

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt

from spandet.config import DetectorSettings, Share, Weight


class LocateAndLabelSettings(DetectorSettings):
    """Options of locate-and-label; docs/methods/locate-and-label.md has the paper's values."""

    name: Literal["locate-and-label"] = "locate-and-label"
    lengths: tuple[Annotated[int, Gt(0)], ...] = tuple(range(1, 11))
    """Seed lengths in words."""
    eval_lengths: tuple[Annotated[int, Gt(0)], ...] | None = None
    """Seed lengths in prediction; None: the same as in training."""
    clip_seeds: bool = True
    """Clip a seed that exceeds the end of the sentence; false: leave it out."""
    seed_overlap: Share = 0.7
    """α1: a seed is positive when its IoU with an entity is above this."""
    label_overlap: Share = 1.0
    """α2: an adjusted span gets an entity's label when their IoU is at least this."""
    soft_exponent: Weight = 1.0
    """η: exponent of the IoU in the weight of an example; 0: all examples weigh 1 (ablation)."""
    focal: Weight = 2.0
    """γ of the focal loss."""
    negative_ratio: Weight = 30.0
    """Negative seeds drawn per positive seed of a sentence."""
    negative_extra: Annotated[int, Ge(0)] = 30
    """Negative seeds drawn in addition, also for sentences without entities."""
    inject_gold: bool = True
    """Train on gold spans that equal no seed, as additional positive seeds."""
    inject_once: bool = False
    """Inject a gold span with two labels once, with its first label; false: once per label."""
    rescue_gold: bool = True
    """Make the seed with the highest IoU positive for an entity that has no positive seed."""
    use_filter: bool = True
    """Use the filter; false: adjust and classify every seed (ablation)."""
    use_regressor: bool = True
    """Use the boundary regressor; false: classify the seeds themselves (ablation)."""
    offset_activation: Literal["linear", "tanh_n", "sigmoid_n"] = "linear"
    """Activation of the regressor's output; n scales it by the number of words in the sentence."""
    illegal: Literal["clamp", "discard"] = "clamp"
    """Adjusted spans that leave the sentence: clamp them to it, or discard them."""
    label_illegal: bool = True
    """Train the classifier on discarded spans as "no entity"; false: leave them out."""
    pairing: Literal["all", "seed", "positives"] = "all"
    """Entity that an adjusted span is compared with: any of the sentence, that of its seed, or that
    of its seed if the seed was positive."""
    label_loss: Literal["cross-entropy", "focal"] = "cross-entropy"
    """Loss of the classifier."""
    reduction: Literal["mean", "sum"] = "mean"
    """Average losses over spans, or sum them up over the spans of a sentence (the paper)."""
    soft_offsets: bool = False
    """Weight the boundary loss by the IoU, too."""
    sentence_feature: bool = False
    """Give the encoder's sentence vector to all heads as additional input."""
    filter_weight: Weight = 1.0
    """λ1: weight of the filter loss."""
    boundary_weight: Weight = 0.1
    """λ2 for the boundary loss."""
    overlap_weight: Weight = 0.1
    """λ2 for the overlap loss."""
    label_weight: Weight = 1.0
    """λ3: weight of the classifier loss."""
    filter_threshold: Share = 1 / 6
    """Minimum filter probability of a seed in prediction."""
    dropout: Share = 0.5
    """Dropout on the inputs of all heads."""


_FEW_NEGATIVES = {"negative_ratio": 5.0, "negative_extra": 2}
_ENCODER = {
    "transformer": {"layers": 4, "pooling": "max", "neighbour_sentences": 1},
    "characters": {"dim": 50},
    "tags": {"dim": 50},
    "fusion": {"kind": "bilstm"},
}
"""Section 4.1; the number of layers is that of the released code, because the paper has none."""
_TRAINING = {
    "epochs": 35,
    "batch_sentences": 8,
    "batch_pieces": 8192,  # so that batches with context are not cut
    "encoder_lr": 3e-5,
    "lr": 3e-5,
    "warmup": 0.1,
    "schedule": "linear",
    "tune": False,
}
"""Appendix A for ACE; its table 6 has other rates and batch sizes for other corpora."""

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "detector": {
            **_FEW_NEGATIVES,
            "clip_seeds": False,
            "inject_once": True,
            "rescue_gold": False,
            "reduction": "sum",
            "pairing": "seed",
        },
        "decoding": {
            "threshold": 0.5,
            "merge": "after",
            "one_label": False,
            "crossing": "keep",
            "nms_decay": 0.9,
            "nms_overlap": 0.6,
        },
        "encoder": _ENCODER,
        "training": _TRAINING,
    },
    "released-code": {
        "detector": {
            **_FEW_NEGATIVES,
            "inject_once": True,
            "rescue_gold": False,
            "offset_activation": "sigmoid_n",
            "illegal": "discard",
            "label_illegal": False,
            "pairing": "positives",
            "label_loss": "focal",
            "soft_offsets": True,
            "sentence_feature": True,
            "boundary_weight": 1.0,
            "overlap_weight": 1.0,
        },
        "decoding": {
            "threshold": 0.45,
            "merge": "first-votes",
            "crossing": "both",
            "nms_rule": "released-code",
            "nms_decay": 0.9,
            "nms_overlap": 0.6,
        },
        "encoder": _ENCODER,
        "training": {**_TRAINING, "bias_correction": False, "eps": 1e-6},
    },
    "tuned": {
        "detector": {"dropout": 0.2},
        "decoding": {"nms_decay": 0.9},
        "encoder": {"transformer": {"freeze_embeddings": True}, "fusion": {"kind": "bilstm"}},
        "training": {
            "epochs": 5,
            "batch_sentences": 8,
            "batch_pieces": 768,
            "encoder_lr": 1e-4,
            "lr": 1e-3,
        },
    },
}
"""`tuned` starts from the defaults of the class, which are ours."""
