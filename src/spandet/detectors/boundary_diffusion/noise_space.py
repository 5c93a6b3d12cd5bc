"""The space that boundaries are noised in: spans in and out, at any noise level."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from spandet.detectors.boundary_diffusion.diffusion import (
    NoiseLevels,
    Schedule,
    denoised,
    gains,
    noise_levels,
    noised,
)
from spandet.spans.coordinates import Divisor, State, to_latents, to_spans

_LEAST_WIDTH = 1e-4


class NoiseSpace(nn.Module):
    """Pairs of numbers from -scale to scale, and more noise the higher the level."""

    signal: Tensor
    noise: Tensor

    def __init__(
        self,
        schedule: Schedule,
        levels: int,
        *,
        scale: float,
        state: State,
        spread: bool,
        divisor: Divisor = "last",
    ) -> None:
        super().__init__()
        self.scale, self.state, self.spread, self.divisor = scale, state, spread, divisor
        self._table = noise_levels(schedule, levels)
        self.register_buffer("signal", self._table.signal, persistent=False)
        self.register_buffer("noise", self._table.noise, persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "NoiseSpace":
        """Go along to another device, but stay in full precision: latents are places."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.signal.device
        self.signal, self.noise = self._table.signal.to(device), self._table.noise.to(device)
        return self

    def from_unit(self, pairs: Float[Tensor, "*shape 2"]) -> Float[Tensor, "*shape 2"]:
        """Latents of pairs that are given as shares of the sentence; widths are never negative."""
        if self.state == "width":
            first, width = pairs.unbind(dim=-1)
            pairs = torch.stack([first, width.clamp(min=_LEAST_WIDTH)], dim=-1)
        return self.scale * (2 * pairs - 1)

    def latents(
        self, spans: Int[Tensor, "*#shape 2"], lengths: Int[Tensor, "*#shape"]
    ) -> Float[Tensor, "*#shape 2"]:
        """Clean latents: x_0 of section 4.1."""
        return to_latents(spans, lengths, scale=self.scale, state=self.state, divisor=self.divisor)

    def spans(
        self,
        latents: Float[Tensor, "*#shape 2"],
        lengths: Int[Tensor, "*#shape"],
        level: Int[Tensor, "*#shape"] | int,
    ) -> Int[Tensor, "*#shape 2"]:
        """The spans that noisy latents stand for."""
        if self.spread:
            latents = latents * gains(self._at(level), self.scale)
        return to_spans(latents, lengths, scale=self.scale, state=self.state, divisor=self.divisor)

    def noised(
        self,
        latents: Float[Tensor, "*#shape 2"],
        noise: Float[Tensor, "*#shape 2"],
        level: Int[Tensor, "*#shape"] | int,
    ) -> Float[Tensor, "*#shape 2"]:
        """Clean latents at a noise level (eq. 4)."""
        return noised(latents, noise, self._at(level))

    def next(
        self,
        latents: Float[Tensor, "*#shape 2"],
        guess: Float[Tensor, "*#shape 2"],
        levels: tuple[int, int],
        *,
        eta: float,
        fresh: Float[Tensor, "*#shape 2"] | None,
    ) -> Float[Tensor, "*#shape 2"]:
        """From one level to the next, given a guess at what is clean (eqs. 6-7)."""
        clean = guess.clamp(-self.scale, self.scale)
        now, then = (self._at(level) for level in levels)
        return denoised(latents, clean, now, then, eta=eta, fresh=fresh)

    def _at(self, level: Tensor | int) -> NoiseLevels:
        """The table at these levels, one axis more than they have."""
        index = torch.as_tensor(level, device=self.signal.device)[..., None]
        return NoiseLevels(self.signal, self.noise).at(index)
