"""The entity decoder: noisy spans, the words and a noise level in; boundaries and labels out.

The words are read once (`read`); every denoising step then costs only what the slots need.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spandet.detectors.boundary_diffusion.boundary_pointers import (
    BoundaryPointers,
    PointerKind,
    Pointers,
)
from spandet.detectors.boundary_diffusion.sinusoids import (
    NumberEmbedding,
    alternating_sinusoids,
    sinusoids,
    wide,
)
from spandet.detectors.boundary_diffusion.slot_layer import Keys, SlotLayer, hidden_from, near
from spandet.layers.dropout import Dropout
from spandet.spans.pooling import RangeMean, RowMaximum, at_words
from spandet.tensors import WordFeatures

SpanPooling = Literal["mean", "max", "ends", "mean+ends", "max+ends"]
TimeCode = Literal["mlp", "raw", "alternating", "none"]


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
class MappedWords:
    """Linear maps of the words for everything in the decoder that uses words."""

    mask: Bool[Tensor, "batch word"]
    vectors: Float[Tensor, "batch word dim"]
    ends: tuple[Float[Tensor, "batch word dim"], ...]
    """As first and as last word of a span, if these are pooled."""
    keys: tuple[Keys | None, ...]
    """For each layer; None without cross-attention."""
    pointed: Float[Tensor, "batch word twice"]
    """For the pointers."""


@dataclass(frozen=True)
class ReadWords:
    """The words, mapped, and tables for pooling them over spans."""

    mapped: MappedWords
    inside: tuple[RangeMean | RowMaximum, ...]


@dataclass(frozen=True)
class Denoised:
    """What a layer makes of the slots."""

    slots: Float[Tensor, "batch span dim"]
    pointers: Pointers


class Denoiser(nn.Module):
    """f(x_t, S, t) of eq. 5 from discrete spans on: H̄ = SpanEncoder(H_S, H_X) + E_t, section 4.2.

    H_S are the words, H_X the pooled slots and E_t the code of the noise level.
    """

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
        self.dropout = Dropout(shape.dropout)

    def read(self, words: WordFeatures) -> ReadWords:
        """All that depends on the words alone."""
        mapped = self.map_words(words)
        tables: dict[str, type[RangeMean | RowMaximum]] = {"mean": RangeMean, "max": RowMaximum}
        pooling = self.shape.pooling
        used = (table for name, table in tables.items() if name in pooling)
        return ReadWords(mapped, tuple(table(mapped.vectors) for table in used))

    def map_words(self, words: WordFeatures) -> MappedWords:
        """The linear maps of the words."""
        vectors = self.entry(words.features) * words.mask[..., None]
        layers = cast("Iterable[SlotLayer]", self.layers)
        return MappedWords(
            mask=words.mask,
            vectors=vectors,
            ends=() if self.ends is None else tuple(self.ends(vectors).chunk(2, dim=-1)),
            keys=tuple(layer.read(vectors) for layer in layers),
            pointed=self.pointers.read(vectors),
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
        slots = self.dropout(self._pooled(words, spans))
        return self.refine(words.mapped, slots, spans, levels, mask, every_layer=every_layer)

    def refine(
        self,
        words: MappedWords,
        slots: Float[Tensor, "batch span dim"],
        spans: Int[Tensor, "batch span 2"],
        levels: Int[Tensor, "batch draw"],
        mask: Bool[Tensor, "batch span"],
        *,
        every_layer: bool,
    ) -> tuple[Denoised, ...]:
        """The same for pooled slots."""
        own = spans.shape[1] // levels.shape[1]
        others = mask.reshape(-1, own)
        places = near(spans, words.mask.shape[1], self.shape.reach)
        codes = self.codes(torch.arange(own, device=spans.device)) if self.codes else None
        time = self._time(levels)[:, :, None].expand(-1, -1, own, -1).flatten(1, 2)
        if self.shape.time_first:
            slots = slots + time
        padding = hidden_from(words.mask)
        outputs: list[Denoised] = []
        for number, layer in enumerate(self.layers):
            slots = layer(slots, codes, others, words.keys[number], places, padding)
            if every_layer or number == len(self.layers) - 1:
                told = slots if self.shape.time_first else slots + time  # H̄, section 4.2
                pointers: Pointers = self.pointers(told, words.pointed, places, words.mask)
                outputs.append(Denoised(told, pointers))
        return tuple(outputs)

    def _time(self, levels: Int[Tensor, "batch draw"]) -> Float[Tensor, "batch draw dim"]:
        if self.time is not None:
            embedded: Tensor = self.time(levels)
            return embedded
        dtype = self.pointers.word.weight.dtype
        if self.shape.time == "alternating":  # E_t, with the paper's timesteps from 1 to T
            return alternating_sinusoids(levels + 1, self.shape.dim, wide(dtype)).to(dtype)
        raw = sinusoids(levels, self.shape.dim, wide(dtype)).to(dtype)
        return raw if self.shape.time == "raw" else torch.zeros_like(raw)

    def _pooled(
        self, words: ReadWords, spans: Int[Tensor, "batch span 2"]
    ) -> Float[Tensor, "batch span dim"]:
        """H_X of section 4.2, by look-ups only: what is mapped was mapped once per word."""
        parts = [table.inside(spans) for table in words.inside]
        places, ends = (spans[..., 0], spans[..., 1] - 1), words.mapped.ends
        parts += [at_words(end, place) for end, place in zip(ends, places, strict=False)]
        return torch.stack(parts).sum(dim=0)
