"""The diffusion process on span boundaries: noise levels, noising, and the way back (DDIM).

Numbers of equations are those of DiffusionNER (Shen et al., ACL 2023).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

Schedule = Literal["cosine", "linear"]

_COSINE_OFFSET = 0.008
_MOST_NOISE = 0.999
_LINEAR_RANGE = (1e-4, 0.02)
_LINEAR_LEVELS = 1000
_UNIFORM_VARIANCE = 1 / 3
_PLASTIC = 1.32471795724474602596
"""The root of x³ = x + 1: its powers spread points in a plane most evenly (the R2 sequence)."""


@dataclass(frozen=True)
class NoiseLevels:
    """What is left of the signal at each level (√ᾱ), and how much noise there is (√(1 − ᾱ))."""

    signal: Float[Tensor, "*level"]
    noise: Float[Tensor, "*level"]

    def at(self, levels: Int[Tensor, "*shape"]) -> "NoiseLevels":
        """Only these levels, in this shape."""
        return NoiseLevels(self.signal[levels], self.noise[levels])


def noise_levels(schedule: Schedule, levels: int) -> NoiseLevels:
    """The table of √ᾱ and √(1 − ᾱ) (eq. 3) for a schedule of β (eq. 2), in double precision.

    The steps of eq. 1 are never taken one by one. Level t of the table is timestep t + 1 of the
    paper.
    """
    if schedule == "cosine":
        share = torch.arange(levels + 1, dtype=torch.double) / levels
        curve = torch.cos((share + _COSINE_OFFSET) / (1 + _COSINE_OFFSET) * math.pi / 2) ** 2
        beta = (1 - curve[1:] / curve[:-1]).clamp(0, _MOST_NOISE)
    else:
        low, high = (end * _LINEAR_LEVELS / levels for end in _LINEAR_RANGE)
        beta = torch.linspace(low, high, levels, dtype=torch.double).clamp(max=_MOST_NOISE)
    left = (1 - beta).cumprod(dim=0)  # ᾱ
    return NoiseLevels(left.sqrt().float(), (1 - left).sqrt().float())


def gains(table: NoiseLevels, scale: float) -> Float[Tensor, "*level"]:
    """Factors that give noisy latents the spread of clean ones, whatever their level.

    With them, spans read from pure noise lie all over the sentence also where `scale` is not 1.
    """
    clean = scale * scale * _UNIFORM_VARIANCE
    return (clean / (table.signal**2 * clean + table.noise**2)).sqrt()


def noised(
    latents: Float[Tensor, "*#shape"], noise: Float[Tensor, "*#shape"], at: NoiseLevels
) -> Float[Tensor, "*#shape"]:
    """Eq. 4: clean latents at a noise level."""
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
    """Eqs. 6-7: one DDIM step towards the clean latents that a network has guessed.

    Args:
        latents: The present state.
        clean: The guess.
        now: The present noise level.
        then: The next, lower one.
        eta: How much of the noise is drawn anew: 0 none (the paper), 1 as in DDPM.
        fresh: Noise to draw from; only needed with `eta`.
    """
    old = (latents - now.signal * clean) / now.noise  # eq. 6
    if eta == 0 or fresh is None:
        return then.signal * clean + then.noise * old  # eq. 7
    share = (1 - (now.signal / then.signal) ** 2).clamp(min=0)
    drawn = eta * share.sqrt() * then.noise / now.noise
    kept = (then.noise**2 - drawn**2).clamp(min=0).sqrt()
    return then.signal * clean + kept * old + drawn * fresh


def sampling_times(first: int, steps: int) -> list[int]:
    """The levels of a descent from `first` in equal steps; the last one is −1, without noise.

    τ of section 4.1, from its last element to its first.
    """
    # In whole numbers: a float just below one would be rounded down to the level before.
    return sorted({(first + 1) * step // steps - 1 for step in range(steps + 1)}, reverse=True)


def low_discrepancy(count: int) -> Float[Tensor, "count 2"]:
    """Normally distributed pairs that cover the plane evenly; more of them only adds to these."""
    powers = torch.tensor([1 / _PLASTIC, 1 / _PLASTIC**2], dtype=torch.double)
    number = torch.arange(1, count + 1, dtype=torch.double)
    shares = (0.5 + number[:, None] * powers) % 1
    normal: Tensor = torch.special.ndtri(shares.clamp(1e-6, 1 - 1e-6))
    return normal.float()
