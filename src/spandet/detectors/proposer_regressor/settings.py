"""What can be chosen in proposer-regressor, and what its presets choose."""

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, MultipleOf
from pydantic import model_validator

from spandet.config import Natural, Settings, Share, Weight
from spandet.detectors.proposer_regressor.pyramid import Message, Pool
from spandet.detectors.proposer_regressor.set_loss import Reduction
from spandet.layers.proposals import EMBEDDING_STD, Query, Update
from spandet.layers.recurrent import Cell
from spandet.layers.spatial_attention import FLOOR, Attention
from spandet.spans.assignment import Matching, Rest

Count = Annotated[int, Gt(0)]


class ProposerRegressorSettings(Settings):
    """What can be chosen. Defaults are the paper's or, where it errs or is silent, what works."""

    name: Literal["proposer-regressor"] = "proposer-regressor"
    kernels: tuple[Annotated[int, Gt(1)], ...] = (2, 2)
    """Convolutions of the pyramid from the bottom up; () leaves only the words."""
    use_backward: bool = True
    """Ablation: without it the pyramid is only read upwards."""
    cell: Cell = "gru"
    """Recurrent nets of the pyramid."""
    recurrent_dim: Annotated[int, Ge(0), MultipleOf(2)] = 0
    """Size of their output, both directions together; 0: twice the word vector (the paper)."""
    pool: Pool = "mean"
    """What of the words below joins a cell's features."""
    message: Message = "finished"
    """What a level tells the one below: its finished features, or what they are made from."""
    message_start: Literal["linear", "convolution"] = "linear"
    """First weights of the transposed convolutions that carry it: those of a linear map, with a
    bias of 0, or those of a stock transposed convolution."""
    proposals: Literal["words", "cells"] = "words"
    """One proposal per word, or one per cell of the pyramid: several per word."""
    query: Query = "mixed"
    """The first query: word and covering cells mixed, or the lowest level's features."""
    layers: Natural = 3
    """Rounds of refinement."""
    eval_layers: Natural | None = None
    """Rounds in prediction; None: all."""
    heads: Count = 8
    attention: Attention = "dot+spatial"
    """"dot" is the ablation without spatial modulation; the last one is linear in the length."""
    window: Count = 64
    """Proposals that spatial_window looks at."""
    global_heads: Natural = 0
    """Heads without spatial modulation."""
    sentence_key: bool = False
    """One more key, the sentence as a whole, which no place hides."""
    scale_heads: bool = False
    """Weigh what heads saw by their say in the location."""
    precision_floor: Weight = FLOOR
    """What is added to Θ, so that no Gaussian is flat in any direction; 0: nothing (the paper)."""
    update: Update = "gate"
    """How queries take in what they saw; the ablation of the gate is "ffn" or "residual"."""
    update_norm: bool = False
    """Normalise after the gate; for more than three layers."""
    ffn_dim: Count = 2048
    use_category_embedding: bool = True
    """Ablation: without it queries do not know what they are taken for."""
    category_std: Weight = EMBEDDING_STD
    """Standard deviation of the categories' first embeddings; the authors' is 1."""
    use_location_iteration: bool = True
    """Ablation: without it proposals stay where the proposer put them."""
    use_logits_iteration: bool = True
    """Ablation: without it layers do not change labels; the head still does."""
    tied_pointer: bool = False
    """The same maps for queries and for words."""
    max_width: Natural = 32
    """Widest span in words that can be pointed at; 0: any, which is cubic in the length."""
    classify_spans: bool = True
    """Look at the words of the span that was found before naming it."""
    matching: Matching = "relative"
    """Least cost of all proposals, or of the matched ones alone (the paper's algorithm)."""
    rest: Rest = "greedy"
    """Proposals that are left go to the cheapest of all entities and none, or to none."""
    reduction: Reduction = "proposals"
    """Mean over all proposals; or, per sentence, the mean or the sum (the paper) of its own."""
    none_weight: Weight = 1.0
    """What a proposal for nothing counts in the label loss."""
    none_prior: Weight = 5.0
    """The logit of "no entity" before anything is learnt; 0: a fresh model names every word."""
    layer_weight: Weight = 0.0
    """What the loss after the proposer and after each layer but the last counts."""
    layer_copies: Count = 1
    """Proposals that each entity takes in these losses; 1: as in the last."""
    spans_per_proposal: Count = 3
    """How many of its most probable spans a proposal may give in prediction; with `classify_spans`
    the next best ones are learnt, too."""
    span_weight: Weight = 0.0
    """What the probability of the span counts in a candidate's score; 0: labels alone decide."""
    min_odds: Share = 0.02
    """A span goes on to decoding when its label is surer than this share of "no entity"."""
    dropout: Share = 0.1

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
"""Stock first weights and no opinion before the first lesson; one span per proposal, and no second
look at it."""
_ENCODER = {"characters": {"cell": "gru", "pooling": "mean", "end_sign": False}}
"""Eq. 2, where a recipe reads characters."""
_DECODING = {"threshold": 0.0, "tune": False, "crossing": "keep", "one_label": False}
"""Algorithm 2: a set of whatever is likelier than "no entity", with nothing to tune."""
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
        "encoder": _ENCODER,
        "decoding": _DECODING,
    },
}
