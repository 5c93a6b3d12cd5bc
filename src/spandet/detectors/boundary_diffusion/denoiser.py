"""Section 4.2: the denoising network f_θ without its classifier.

Input: noisy spans in whole words, the words, and a noise level. Output: slot vectors and pointers.
The words are mapped once (`read`); each denoising step then computes only what slots need.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spandet.detectors.boundary_diffusion.pointers import BoundaryPointers, Pointers
from spandet.detectors.boundary_diffusion.settings import DenoiserShape
from spandet.detectors.boundary_diffusion.span_encoder import (
    Keys,
    NumberEmbedding,
    SlotLayer,
    alternating_sinusoids,
    at_least_single,
    padding_bias,
    sinusoids,
    word_distances,
)
from spandet.layers.dropout import Dropout
from spandet.spans.pooling import RangeMean, RowMaximum, at_words
from spandet.tensors import WordFeatures


@dataclass(frozen=True)
class MappedWords:
    """The words, mapped for every part of the denoiser that reads them."""

    mask: Bool[Tensor, "batch word"]
    vectors: Float[Tensor, "batch word dim"]
    ends: tuple[Float[Tensor, "batch word dim"], ...]
    """For pooling: as first and as last word of a span; empty without boundary words."""
    keys: tuple[Keys | None, ...]
    """For the cross-attention of each layer; None without it."""
    pointed: Float[Tensor, "batch word twice"]
    """For the pointers."""


@dataclass(frozen=True)
class ReadWords:
    """The mapped words, and tables to pool them over spans."""

    mapped: MappedWords
    inside: tuple[RangeMean | RowMaximum, ...]


@dataclass(frozen=True)
class Denoised:
    """Slots after a layer of the span encoder, and their pointers."""

    slots: Float[Tensor, "batch span dim"]
    """H̄_X"""
    pointers: Pointers


class Denoiser(nn.Module):
    """Eq. 5: f_θ(x_τ, S, τ), from discrete spans to the pointers that x̂_0 is read from."""

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
        """Compute everything that depends on the words alone, H_S."""
        mapped = self.map_words(words)
        tables: dict[str, type[RangeMean | RowMaximum]] = {"mean": RangeMean, "max": RowMaximum}
        pooling = self.shape.pooling
        used = (table for name, table in tables.items() if name in pooling)
        return ReadWords(mapped, tuple(table(mapped.vectors) for table in used))

    def map_words(self, words: WordFeatures) -> MappedWords:
        """Apply all linear maps to the words."""
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
        pointer_gradients: bool = True,
    ) -> tuple[Denoised, ...]:
        """Slots and pointers after the last layer, or after each layer.

        Args:
            words: From `read`.
            spans: Noisy spans, one draw after the other; only slots of the same draw attend to each
                other.
            levels: Noise level of each draw.
            mask: Mask of the slots.
            every_layer: Return all layers, for auxiliary losses.
            pointer_gradients: Compute pointers with gradients; otherwise see `point`.
        """
        slots = self.dropout(self._pooled(words, spans))
        return self.refine(
            words.mapped,
            slots,
            spans,
            levels,
            mask,
            every_layer=every_layer,
            pointer_gradients=pointer_gradients,
        )

    def refine(
        self,
        words: MappedWords,
        slots: Float[Tensor, "batch span dim"],
        spans: Int[Tensor, "batch span 2"],
        levels: Int[Tensor, "batch draw"],
        mask: Bool[Tensor, "batch span"],
        *,
        every_layer: bool,
        pointer_gradients: bool = True,
    ) -> tuple[Denoised, ...]:
        """Section 4.2, span encoder: H̄_X = SpanEncoder(H_S, H_X) + E_t, and the pointers.

        `slots` are H_X; with `time_first`, E_t is added to them instead.
        """
        own = spans.shape[1] // levels.shape[1]
        others = mask.reshape(-1, own)
        distances = word_distances(spans, words.mask.shape[1], self.shape.reach)
        codes = self.codes(torch.arange(own, device=spans.device)) if self.codes else None
        time = self._time(levels)[:, :, None].expand(-1, -1, own, -1).flatten(1, 2)
        if self.shape.time_first:
            slots = slots + time
        padding = padding_bias(words.mask)
        outputs: list[Denoised] = []
        for number, layer in enumerate(self.layers):
            slots = layer(slots, codes, others, words.keys[number], distances, padding)
            if every_layer or number == len(self.layers) - 1:
                final = slots if self.shape.time_first else slots + time
                with nullcontext() if pointer_gradients else torch.no_grad():
                    pointers: Pointers = self.pointers(final, words.pointed, distances, words.mask)
                outputs.append(Denoised(final, pointers))
        return tuple(outputs)

    def point(
        self,
        words: MappedWords,
        layer: Denoised,
        spans: Int[Tensor, "batch span 2"],
        chosen: Int[Tensor, "batch chosen"],
    ) -> Pointers:
        """The pointers of the chosen slots of each sentence, with gradients."""
        rows = torch.arange(len(chosen), device=chosen.device)[:, None]
        distances = word_distances(spans[rows, chosen], words.mask.shape[1], self.shape.reach)
        slots = layer.slots[rows, chosen]
        pointers: Pointers = self.pointers(slots, words.pointed, distances, words.mask)
        return pointers

    def _time(self, levels: Int[Tensor, "batch draw"]) -> Float[Tensor, "batch draw dim"]:
        """Section 4.2, timestep embedding: E_t."""
        if self.time is not None:
            embedded: Tensor = self.time(levels)
            return embedded
        dtype = self.pointers.word.weight.dtype
        if self.shape.time == "alternating":  # timesteps are 1 to T
            return alternating_sinusoids(levels + 1, self.shape.dim, at_least_single(dtype)).to(
                dtype
            )
        raw = sinusoids(levels, self.shape.dim, at_least_single(dtype)).to(dtype)
        return raw if self.shape.time == "raw" else torch.zeros_like(raw)

    def _pooled(
        self, words: ReadWords, spans: Int[Tensor, "batch span 2"]
    ) -> Float[Tensor, "batch span dim"]:
        """Section 4.2, mean pooling: H_X, or a sum of other poolings, by look-ups in tables."""
        parts = [table.inside(spans) for table in words.inside]
        places, ends = (spans[..., 0], spans[..., 1] - 1), words.mapped.ends
        parts += [at_words(end, place) for end, place in zip(ends, places, strict=False)]
        return torch.stack(parts).sum(dim=0)
