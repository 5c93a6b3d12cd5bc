"""The entity decoder: noisy spans, the words and a noise level in; boundaries and labels out.

The words are read once (`read`); every denoising step then costs only what the slots need.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spandet.layers.boundary_pointers import BoundaryPointers, PointerKind, Pointers
from spandet.layers.sinusoids import NumberEmbedding, sinusoids
from spandet.layers.slot_layer import Keys, SlotLayer, hidden_from, near
from spandet.spans.lookup import RangeMean, RowMaximum, at_words
from spandet.tensors import WordFeatures

SpanPooling = Literal["mean", "max", "ends", "mean+ends", "max+ends"]
TimeCode = Literal["mlp", "raw", "none"]


@dataclass(frozen=True, kw_only=True)
class DenoiserShape:
    """How a denoiser is built."""

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


@dataclass(frozen=True)
class ReadWords:
    """The words as each part of the decoder looks at them."""

    vectors: Float[Tensor, "batch word dim"]
    mask: Bool[Tensor, "batch word"]
    padding: Float[Tensor, "batch 1 1 word"]
    inside: tuple[RangeMean | RowMaximum, ...]
    ends: tuple[Float[Tensor, "batch word dim"], ...]
    keys: tuple[Keys | None, ...]
    pointed: Float[Tensor, "batch word twice"]


@dataclass(frozen=True)
class Denoised:
    """What a layer makes of the slots."""

    slots: Float[Tensor, "batch span dim"]
    pointers: Pointers


class Denoiser(nn.Module):
    """f(x_t, S, t), section 4.2."""

    def __init__(self, shape: DenoiserShape, *, words_dim: int) -> None:
        super().__init__()
        dim = shape.dim
        self.shape = shape
        self.entry = nn.Linear(words_dim, dim) if words_dim != dim else nn.Identity()
        self.ends = nn.Linear(dim, 2 * dim) if "ends" in shape.pooling else None
        self.time = NumberEmbedding(dim) if shape.time == "mlp" else None
        self.codes = NumberEmbedding(dim) if shape.slot_codes else None
        self.layers = nn.ModuleList(
            SlotLayer(
                dim=dim,
                heads=shape.heads,
                hidden=shape.hidden,
                dropout=shape.dropout,
                attends=(shape.self_attention, shape.cross_attention),
                reach=shape.reach,
            )
            for _ in range(shape.layers)
        )
        self.pointers = BoundaryPointers(
            dim=dim, kind=shape.pointer, reach=shape.reach, dropout=shape.dropout
        )
        self.dropout = nn.Dropout(shape.dropout)

    def read(self, words: WordFeatures) -> ReadWords:
        """All that depends on the words alone."""
        vectors = self.entry(words.features) * words.mask[..., None]
        tables: dict[str, type[RangeMean | RowMaximum]] = {"mean": RangeMean, "max": RowMaximum}
        return ReadWords(
            vectors,
            words.mask,
            hidden_from(words.mask),
            tuple(table(vectors) for name, table in tables.items() if name in self.shape.pooling),
            () if self.ends is None else self.ends(vectors).chunk(2, dim=-1),
            tuple(layer.read(vectors) for layer in cast("Iterable[SlotLayer]", self.layers)),
            self.pointers.read(vectors),
        )

    def forward(
        self,
        words: ReadWords,
        spans: Int[Tensor, "batch span 2"],
        levels: Int[Tensor, "batch draw"],
        mask: Bool[Tensor, "batch span"],
        *,
        every_layer: bool = False,
    ) -> tuple[Denoised, ...]:
        """Slots after the last layer, or after each of them.

        Args:
            words: From `read`.
            spans: Noisy spans. With several draws they stand one draw after the other, and only
                slots of the same draw see each other.
            levels: The noise level of each draw.
            mask: Slots that are real.
            every_layer: For losses on the way.
        """
        draws = levels.shape[1]
        own = spans.shape[1] // draws
        others = mask.reshape(-1, own)
        places = near(spans, words.mask.shape[1], self.shape.reach)
        codes = self.codes(torch.arange(own, device=spans.device)) if self.codes else None
        time = self._time(levels).repeat_interleave(own, dim=1)
        slots = self.dropout(self._pooled(words, spans))
        if self.shape.time_first:
            slots = slots + time
        outputs = []
        for number, layer in enumerate(self.layers, start=1):
            slots = layer(slots, codes, others, words.keys[number - 1], places, words.padding)
            if every_layer or number == len(self.layers):
                told = slots if self.shape.time_first else slots + time
                pointers = self.pointers(told, words.pointed, places, words.mask)
                outputs.append(Denoised(told, pointers))
        return tuple(outputs)

    def _time(self, levels: Int[Tensor, "batch draw"]) -> Float[Tensor, "batch draw dim"]:
        if self.time is not None:
            embedded: Tensor = self.time(levels)
            return embedded
        raw = sinusoids(levels, self.shape.dim)
        return raw if self.shape.time == "raw" else torch.zeros_like(raw)

    def _pooled(
        self, words: ReadWords, spans: Int[Tensor, "batch span 2"]
    ) -> Float[Tensor, "batch span dim"]:
        """Spans as vectors, by look-ups only: what is mapped was mapped once per word."""
        parts = [table.inside(spans) for table in words.inside]
        places = (spans[..., 0], spans[..., 1] - 1)
        parts += [at_words(end, place) for end, place in zip(words.ends, places, strict=False)]
        return torch.stack(parts).sum(dim=0)
