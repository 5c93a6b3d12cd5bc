"""Noise: published values of the schedules, and round trips of spans and latents."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from spandet.detectors.boundary_diffusion.noise import (
    NoiseLevels,
    denoised,
    gains,
    low_discrepancy,
    noise_levels,
    noised,
    sampling_times,
)
from spandet.detectors.boundary_diffusion.settings import Schedule
from spandet.seeding import generator
from spandet.spans.choices import State
from spandet.spans.coordinates import to_latents, to_spans

STATES: list[State] = ["ends", "width"]


@pytest.mark.parametrize(
    ("schedule", "left"),
    [
        ("cosine", [0.999959, 0.898706, 0.647478, 0.340810, 0.094046, 2.43e-9]),
        ("linear", [0.999900, 0.659039, 0.195146, 0.025879, 0.001532, 4.036e-5]),
    ],
)
def test_schedules_have_their_published_values(schedule: Schedule, left: list[float]) -> None:
    table = noise_levels(schedule, 1000).at(torch.tensor([0, 199, 399, 599, 799, 999]))
    assert (table.signal.double() ** 2).tolist() == pytest.approx(left, rel=5e-3)
    torch.testing.assert_close(table.signal**2 + table.noise**2, torch.ones(6))


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
@pytest.mark.parametrize("levels", [10, 100, 1500])
def test_noise_never_decreases_with_the_level(schedule: Schedule, levels: int) -> None:
    noise = noise_levels(schedule, levels).noise
    assert len(noise) == levels
    assert (noise.diff() >= 0).all()
    assert 0 < noise[0] < noise[-1] <= 1


def all_spans(words: int) -> Tensor:
    first, last = torch.triu_indices(words, words)
    return torch.stack([first, last + 1], dim=1)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("words", [1, 2, 3, 25, 60, 200])
def test_latents_of_a_span_give_the_same_span(words: int, scale: float, state: State) -> None:
    spans = all_spans(words)
    lengths = torch.full((len(spans),), words)
    latents = to_latents(spans, lengths, scale=scale, state=state)
    assert latents.abs().max() <= scale
    assert torch.equal(to_spans(latents, lengths, scale=scale, state=state), spans)


@pytest.mark.parametrize("state", STATES)
def test_any_latents_give_a_span_inside_the_sentence(state: State) -> None:
    latents = 3 * torch.randn(500, 2, generator=generator("points"))
    lengths = torch.randint(1, 9, (500,), generator=generator("lengths"))
    starts, ends = to_spans(latents, lengths, scale=1.0, state=state).unbind(dim=1)
    assert ((starts >= 0) & (starts < ends) & (ends <= lengths)).all()


def test_noised_latents_have_the_right_mean_and_variance() -> None:
    table = noise_levels("cosine", 1000).at(torch.tensor(399))
    clean = torch.full((20_000,), 0.7)
    noisy = noised(clean, torch.randn(20_000, generator=generator("ε")), table)
    assert noisy.mean().item() == pytest.approx(0.7 * 0.647478**0.5, abs=0.02)
    assert noisy.var().item() == pytest.approx(1 - 0.647478, rel=0.05)


@pytest.mark.parametrize("steps", [1, 2, 5, 10, 37])
@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_denoising_with_the_right_prediction_gives_the_clean_latents(
    steps: int, schedule: Schedule
) -> None:
    table, clean = noise_levels(schedule, 1000), torch.tensor([[-0.5, 0.25], [0.9, -1.0]])
    noise = torch.randn(2, 2, generator=generator("start"))
    times = sampling_times(999, steps)
    latents = noised(clean, noise, table.at(torch.tensor(999)))
    for now, then in pairwise(times):
        no_noise = NoiseLevels(torch.tensor(1.0), torch.tensor(0.0))
        after = table.at(torch.tensor(then)) if then >= 0 else no_noise
        latents = denoised(latents, clean, table.at(torch.tensor(now)), after)
        torch.testing.assert_close(latents, noised(clean, noise, after), rtol=0, atol=1e-4)
    torch.testing.assert_close(latents, clean)


def test_eta_is_the_share_of_new_noise() -> None:
    table = noise_levels("cosine", 1000)
    clean, old, fresh = (torch.randn(1000, generator=generator(name)) for name in "xyz")
    now, then = table.at(torch.tensor(799)), table.at(torch.tensor(599))
    latents = noised(clean, old, now)
    rest = denoised(latents, clean, now, then, eta=1.0, fresh=fresh) - then.signal * clean
    assert (rest @ fresh / (fresh @ fresh)).item() == pytest.approx(0.726, abs=0.02)
    assert rest.var().item() == pytest.approx(1 - 0.340810, rel=0.1)
    last = table.at(torch.tensor(199))  # from the first level, the old noise is forgotten
    start = table.at(torch.tensor(999))
    rest = denoised(noised(clean, old, start), clean, start, last, eta=1.0, fresh=fresh)
    torch.testing.assert_close(rest, noised(clean, fresh, last), rtol=0, atol=1e-3)


def test_sampling_times() -> None:
    assert sampling_times(999, 1) == [999, -1]
    assert sampling_times(999, 5) == [999, 799, 599, 399, 199, -1]
    assert sampling_times(999, 10) == [999, 899, 799, 699, 599, 499, 399, 299, 199, 99, -1]
    assert sampling_times(0, 5) == [0, -1]


def test_low_discrepancy_noise_is_normal_and_extends() -> None:
    many = low_discrepancy(400)
    assert torch.equal(low_discrepancy(37), many[:37])
    assert many.mean(dim=0).tolist() == pytest.approx([0, 0], abs=0.02)
    assert many.std(dim=0).tolist() == pytest.approx([1, 1], abs=0.05)
    shares = torch.special.ndtr(low_discrepancy(64))
    cells = {(int(8 * a), int(8 * b)) for a, b in shares.tolist()}
    random = torch.rand(64, 2, generator=generator("cells"))
    assert len(cells) > 1.2 * len({(int(8 * a), int(8 * b)) for a, b in random.tolist()})


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("level", [0, 300, 999])
def test_gains_restore_the_variance_of_clean_latents(scale: float, level: int) -> None:
    table = noise_levels("cosine", 1000).at(torch.tensor(level))
    clean = scale * (2 * torch.rand(20_000, generator=generator("clean")) - 1)
    noisy = noised(clean, torch.randn(20_000, generator=generator("noise")), table)
    spread = (noisy * gains(table, scale)).std() / clean.std()
    assert spread.item() == pytest.approx(1, abs=0.03)
