"""Settings of proposer-regressor, and its presets."""

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, MultipleOf
from pydantic import model_validator

from spandet.config import DetectorSettings, Natural, Share, Weight
from spandet.layers.choices import EMBEDDING_STD, FLOOR, Attention, Cell
from spandet.spans.choices import Matching, Rest

Pool = Literal["mean", "max"]
Message = Literal["finished", "merged"]
Query = Literal["mixed", "lowest"]
Reduction = Literal["proposals", "sentences", "sum"]
Count = Annotated[int, Gt(0)]


class ProposerRegressorSettings(DetectorSettings):
    """Options of proposer-regressor; docs/methods/proposer-regressor.md has the paper's values."""

    name: Literal["proposer-regressor"] = "proposer-regressor"
    kernels: tuple[Annotated[int, Gt(1)], ...] = (2, 2)
    """Kernel sizes of the pyramid's convolutions, from the lowest; (): one level, the words."""
    use_backward: bool = True
    """Use the backward blocks of the pyramid; false: forward blocks only (ablation)."""
    cell: Cell = "gru"
    """Recurrent network of the pyramid."""
    recurrent_dim: Annotated[int, Ge(0), MultipleOf(2)] = 0
    """Output size of the recurrent networks, both directions; 0: twice the word vector."""
    pool: Pool = "mean"
    """Pooling of the words of a cell that is added to its features."""
    message: Message = "finished"
    """Features that a level passes down: the finished ones, or both directions before merging."""
    message_start: Literal["linear", "convolution"] = "linear"
    """Initial weights of the transposed convolutions: those of `nn.Linear` with a bias of 0, or
    those of `nn.ConvTranspose1d`."""
    proposals: Literal["words", "cells"] = "words"
    """One proposal per word, or one per cell of the pyramid."""
    query: Query = "mixed"
    """First query: word plus weighted mean of its cells, or the lowest level's feature."""
    layers: Natural = 3
    """Number of regressor layers."""
    eval_layers: Natural | None = None
    """Regressor layers in prediction, at most `layers`; None: all of them."""
    heads: Count = 8
    """Number of attention heads."""
    attention: Attention = "dot+spatial"
    """Attention by dot product, by position, by both, or by position within `window`."""
    window: Count = 64
    """Number of proposals that `attention = "spatial_window"` attends to."""
    global_heads: Natural = 0
    """Number of heads without a Gaussian."""
    sentence_key: bool = False
    """Add a key for the whole sentence to the attention."""
    scale_heads: bool = False
    """Multiply the output of each head by its weight in the new boundaries."""
    precision_floor: Weight = FLOOR
    """Added to the diagonal of Θ, so that no Gaussian is flat in any direction; 0: not added."""
    update: Literal["gate", "ffn", "residual"] = "gate"
    """Update of the queries: GRU gate, feed-forward network, or residual connection only."""
    ffn_dim: Count = 2048
    """Inner size of the feed-forward network of `update = "ffn"`."""
    use_category_embedding: bool = True
    """Add an embedding of the current label probabilities to the queries; false: ablation."""
    category_std: Weight = EMBEDDING_STD
    """Standard deviation of the initial label embeddings."""
    use_location_iteration: bool = True
    """Let each layer change the boundaries; false: ablation."""
    use_logits_iteration: bool = True
    """Let each layer change the label logits; false: only the head does (ablation)."""
    tied_pointer: bool = False
    """Use the same linear maps for queries and for words in the head."""
    max_width: Natural = 32
    """Widest span in words that the head can predict; 0: any, in time cubic in the length."""
    classify_spans: bool = True
    """Classify each predicted span by its words, in addition to the proposal's label."""
    matching: Matching = "relative"
    """Costs that matching minimises: those of all proposals, or of the matched ones ("raw")."""
    rest: Rest = "greedy"
    """Unmatched proposals: the cheapest of all entities and none, or always none."""
    reduction: Reduction = "proposals"
    """Average the loss over all proposals, or average or sum it up per sentence."""
    none_weight: Weight = 1.0
    """Weight of proposals without an entity in the label loss."""
    none_prior: Weight = 5.0
    """Initial logit of "no entity"."""
    layer_weight: Weight = 0.0
    """Weight of the losses after the proposer and after each layer but the last."""
    layer_copies: Count = 1
    """Proposals per entity in these losses; 1: matching as in the last layer."""
    spans_per_proposal: Count = 3
    """Number of most probable spans that each proposal predicts."""
    span_weight: Weight = 0.0
    """Weight of the log probability of the span in the score; 0: the label alone decides."""
    min_odds: Share = 0.02
    """A span is kept for decoding if a label's probability exceeds this share of "no entity"."""
    dropout: Share = 0.1
    """Dropout in the pyramid, the regressor and the classifier of spans."""

    @model_validator(mode="after")
    def _fits_together(self) -> "ProposerRegressorSettings":
        if self.global_heads > self.heads:
            raise ValueError(f"global_heads must be at most heads ({self.heads})")
        if self.attention == "spatial_window" and (self.proposals == "cells" or self.sentence_key):
            raise ValueError('attention = "spatial_window" needs proposals = "words", no key')
        return self


_AUTHORS: dict[str, Any] = {
    "message_start": "convolution",
    "precision_floor": 0.0,
    "category_std": 1.0,
    "classify_spans": False,
    "spans_per_proposal": 1,
    "span_weight": 1.0,
    "min_odds": 1.0,
    "none_prior": 0.0,
}
"""Values of both presets: initial weights of the released code, one span per proposal, which is not
classified again, and the paper's rule of prediction."""
_ENCODER = {
    "transformer": {"layers": 4, "context": 128},
    "characters": {
        "embedding_dim": 50,
        "dim": 100,
        "cell": "gru",
        "pooling": "mean",
        "end_sign": False,
        "dropout": 0.0,
    },
    "tags": {"dim": 50, "dropout": 0.0},
    "word_vectors": {"dropout": 0.0},
    "fusion": {"kind": "bigru", "norm": True},
}
"""Sections 3.1 and 4.2; recipes set `fusion.recurrent_dim` to twice the size of all parts."""
_DECODING = {"threshold": 0.0, "crossing": "keep", "one_label": False}
"""Keep every prediction that is more probable than "no entity"."""
_TRAINING = {
    "epochs": 5,
    "batch_sentences": 4,
    "batch_pieces": 8192,  # so that batches with context are not cut
    "encoder_lr": 2e-5,
    "lr": 2e-5,
    "warmup": 0.1,
    "schedule": "cosine",
    "tune": False,
}
"""Sections 4.2 and 4.4; the batch size is that of the released code."""
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "detector": {
            "query": "lowest",
            "tied_pointer": True,
            "max_width": 0,
            "matching": "raw",
            "reduction": "sum",
            **_AUTHORS,
        },
        "encoder": _ENCODER,
        "decoding": _DECODING,
        "training": _TRAINING,
    },
    "released-code": {
        "detector": {
            "kernels": (2, 3),
            "pool": "max",
            "message": "merged",
            "scale_heads": True,
            "update": "ffn",
            "max_width": 0,
            "matching": "raw",
            "rest": "none",
            "reduction": "sentences",
            **_AUTHORS,
        },
        "encoder": {**_ENCODER, "transformer": {"layers": 4, "context": 64}},
        "decoding": _DECODING,
        "training": {**_TRAINING, "schedule": "linear"},
    },
    "tuned": {
        "detector": {"cell": "lstm", "recurrent_dim": 256, "dropout": 0.2},
        "encoder": {
            "transformer": {"freeze_embeddings": True},
            "fusion": {"kind": "bilstm", "norm": True},
        },
        "training": {
            "epochs": 4,
            "batch_sentences": 16,
            "batch_pieces": 1024,
            "encoder_lr": 1e-4,
            "lr": 5e-4,
        },
    },
}
"""`tuned` starts from the defaults of the class, which are ours."""
