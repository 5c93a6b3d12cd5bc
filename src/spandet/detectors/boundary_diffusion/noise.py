"""Sections 3 and 4.1: noise schedule, noising and denoising of boundaries, random start points.

Level t of this code is timestep t + 1 of the paper, and level -1 is timestep 0: no noise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from spandet.detectors.boundary_diffusion.settings import Schedule
from spandet.seeding import generator
from spandet.spans.choices import Divisor, State
from spandet.spans.coordinates import to_latents, to_spans

_COSINE_OFFSET = 0.008
_MAX_VARIANCE = 0.999
_LINEAR_RANGE = (1e-4, 0.02)
_LINEAR_LEVELS = 1000
_UNIFORM_VARIANCE = 1 / 3
_PLASTIC = 1.32471795724474602596
"""The root of x³ = x + 1, used by the R2 low-discrepancy sequence."""
_MIN_WIDTH = 1e-4
_BLOCK = 64
_KEYS = 2**62


@dataclass(frozen=True)
class NoiseLevels:
    """Factors of the signal, √ᾱ_t, and of the noise, √(1 - ᾱ_t), at each level."""

    signal: Float[Tensor, "*level"]
    noise: Float[Tensor, "*level"]

    def at(self, levels: Int[Tensor, "*shape"]) -> "NoiseLevels":
        """The factors at the given levels, in their shape."""
        return NoiseLevels(self.signal[levels], self.noise[levels])


def noise_levels(schedule: Schedule, levels: int) -> NoiseLevels:
    """The variances β_t (eq. 2) of a schedule, and √ᾱ_t and √(1 - ᾱ_t) (eq. 3) from them.

    Computed in double precision.
    """
    if schedule == "cosine":
        share = torch.arange(levels + 1, dtype=torch.double) / levels
        curve = torch.cos((share + _COSINE_OFFSET) / (1 + _COSINE_OFFSET) * math.pi / 2) ** 2
        beta = (1 - curve[1:] / curve[:-1]).clamp(0, _MAX_VARIANCE)
    else:
        low, high = (end * _LINEAR_LEVELS / levels for end in _LINEAR_RANGE)
        beta = torch.linspace(low, high, levels, dtype=torch.double).clamp(max=_MAX_VARIANCE)
    alpha_bar = (1 - beta).cumprod(dim=0)
    return NoiseLevels(alpha_bar.sqrt().float(), (1 - alpha_bar).sqrt().float())


def gains(table: NoiseLevels, scale: float) -> Float[Tensor, "*level"]:
    """Factors that give noisy latents the variance of clean ones, at every level.

    With them, spans that are decoded from pure noise cover the sentence also if `scale` is not 1.
    """
    clean = scale * scale * _UNIFORM_VARIANCE
    return (clean / (table.signal**2 * clean + table.noise**2)).sqrt()


def noised(
    latents: Float[Tensor, "*#shape"], noise: Float[Tensor, "*#shape"], at: NoiseLevels
) -> Float[Tensor, "*#shape"]:
    """Eq. 4: x_t, from clean latents x_0 and noise ε."""
    return at.signal * latents + at.noise * noise


def denoised(
    latents: Float[Tensor, "*#shape"],
    clean: Float[Tensor, "*#shape"],
    now: NoiseLevels,
    then: NoiseLevels,
    *,
    eta: float = 0.0,
    fresh: Float[Tensor, "*#shape"] | None = None,
) -> Float[Tensor, "*#shape"]:
    """Eqs. 6-7: one DDIM step from the level `now` to the lower level `then`.

    Args:
        latents: Present state x_τ.
        clean: Predicted clean latents x̂_0.
        now: Factors of the present level.
        then: Factors of the next level.
        eta: Share of noise that is drawn again: 0 for none (the paper), 1 as in DDPM.
        fresh: New noise; needed only with `eta`.
    """
    old = (latents - now.signal * clean) / now.noise  # ε̂
    if eta == 0 or fresh is None:
        return then.signal * clean + then.noise * old
    share = (1 - (now.signal / then.signal) ** 2).clamp(min=0)
    drawn = eta * share.sqrt() * then.noise / now.noise
    kept = (then.noise**2 - drawn**2).clamp(min=0).sqrt()
    return then.signal * clean + kept * old + drawn * fresh


def sampling_times(first: int, steps: int) -> list[int]:
    """Section 4.1, timesteps: the levels τ from the highest, `first`, to the lowest, and then -1.

    At most `steps` levels, in equal steps.
    """
    # In whole numbers: a float just below one would be rounded down to the level before.
    return sorted({(first + 1) * step // steps - 1 for step in range(steps + 1)}, reverse=True)


class NoiseSpace(nn.Module):
    """Conversion between spans and latents, and noising and denoising of latents."""

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
        """Follow the model to another device, but stay in single precision."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.signal.device
        self.signal, self.noise = self._table.signal.to(device), self._table.noise.to(device)
        return self

    def from_unit(self, pairs: Float[Tensor, "*shape 2"]) -> Float[Tensor, "*shape 2"]:
        """Latents of pairs that are given as shares of the sentence; widths have a minimum."""
        if self.state == "width":
            first, width = pairs.unbind(dim=-1)
            pairs = torch.stack([first, width.clamp(min=_MIN_WIDTH)], dim=-1)
        return self.scale * (2 * pairs - 1)

    def latents(
        self, spans: Int[Tensor, "*#shape 2"], lengths: Int[Tensor, "*#shape"]
    ) -> Float[Tensor, "*#shape 2"]:
        """Clean latents x_0 of spans."""
        return to_latents(spans, lengths, scale=self.scale, state=self.state, divisor=self.divisor)

    def spans(
        self,
        latents: Float[Tensor, "*#shape 2"],
        lengths: Int[Tensor, "*#shape"],
        level: Int[Tensor, "*#shape"] | int,
    ) -> Int[Tensor, "*#shape 2"]:
        """The spans in whole words that noisy latents of a level stand for."""
        if self.spread:
            latents = latents * gains(self._at(level), self.scale)
        return to_spans(latents, lengths, scale=self.scale, state=self.state, divisor=self.divisor)

    def noised(
        self,
        latents: Float[Tensor, "*#shape 2"],
        noise: Float[Tensor, "*#shape 2"],
        level: Int[Tensor, "*#shape"] | int,
    ) -> Float[Tensor, "*#shape 2"]:
        """Clean latents with noise of a level."""
        return noised(latents, noise, self._at(level))

    def next(
        self,
        latents: Float[Tensor, "*#shape 2"],
        predicted: Float[Tensor, "*#shape 2"],
        levels: tuple[int, int],
        *,
        eta: float,
        fresh: Float[Tensor, "*#shape 2"] | None,
    ) -> Float[Tensor, "*#shape 2"]:
        """Latents at the second of two levels, given those at the first and predicted clean ones.

        An inverted prediction has a negative width, which is clamped like everything else.
        """
        clean = predicted.clamp(-self.scale, self.scale)
        now, then = (self._at(level) for level in levels)
        return denoised(latents, clean, now, then, eta=eta, fresh=fresh)

    def _at(self, level: Tensor | int) -> NoiseLevels:
        """The factors at the given levels, with an additional last axis."""
        index = torch.as_tensor(level, device=self.signal.device)[..., None]
        return NoiseLevels(self.signal, self.noise).at(index)


class KeyedNoise:
    """Gaussian noise for prediction; that of a slot does not depend on the number of slots."""

    def __init__(self, rngs: Sequence[Generator]) -> None:
        self._keys = [int(torch.randint(_KEYS, (), generator=rng)) for rng in rngs]

    def at(self, step: int, counts: Sequence[int]) -> Float[Tensor, "batch span 2"]:
        """The noise of one step, for `counts` slots of each sentence."""
        most = max([1, *counts])
        noise = torch.zeros(len(counts), most, 2)
        for row, (key, count) in enumerate(zip(self._keys, counts, strict=True)):
            rng = generator(key, "step", step)
            # Whole blocks, because torch uses another algorithm for few numbers than for many.
            blocks = [torch.randn(_BLOCK, 2, generator=rng) for _ in range(0, count, _BLOCK)]
            if blocks:
                noise[row, :count] = torch.cat(blocks)[:count]
        return noise


def low_discrepancy(count: int) -> Float[Tensor, "count 2"]:
    """Normally distributed pairs from a fixed, evenly spread sequence (R2).

    A larger `count` extends the sequence and keeps its beginning.
    """
    powers = torch.tensor([1 / _PLASTIC, 1 / _PLASTIC**2], dtype=torch.double)
    number = torch.arange(1, count + 1, dtype=torch.double)
    shares = (0.5 + number[:, None] * powers) % 1
    normal: Tensor = torch.special.ndtri(shares.clamp(1e-6, 1 - 1e-6))
    return normal.float()
