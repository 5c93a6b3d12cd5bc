"""Boundary diffusion with the preset `paper` computes the equations of the paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from papers import boundary_diffusion_paper as paper
from papers.boundary_diffusion_paper import Array, Entity
from spandet.detectors.boundary_diffusion.detector import BoundaryDiffusion
from spandet.detectors.boundary_diffusion.noise import (
    KeyedNoise,
    NoiseLevels,
    noise_levels,
    sampling_times,
)
from spandet.detectors.boundary_diffusion.noise import denoised as ddim_step
from spandet.detectors.boundary_diffusion.noise import noised as noise_added
from spandet.detectors.boundary_diffusion.pointers import BoundaryPointers, with_pointers
from spandet.detectors.boundary_diffusion.settings import Schedule
from spandet.detectors.boundary_diffusion.span_encoder import Attention, SlotLayer, word_distances
from spandet.inference.decoding import DecodedSpans, DecodingSettings, decode
from spandet.inference.engine import to_numpy
from spandet.inference.model_settings import ModelSettings
from spandet.layers.label_losses import label_weights
from spandet.seeding import generator
from spandet.spans.coordinates import to_latents, to_spans
from spandet.tensors import SpanPredictions, WordFeatures, total_loss
from support.sentence_toys import gold_spans

DIM, HEADS, SLOTS, LEVELS, STEPS, LABELS = 8, 2, 5, 60, 4, 4
CLOSE = 1e-9

SENTENCES: dict[str, tuple[int, list[Entity]]] = {
    "nested": (7, [Entity(1, 4, 1), Entity(2, 3, 2), Entity(2, 2, 1)]),
    "crossing": (6, [Entity(0, 3, 1), Entity(2, 5, 3)]),
    "two labels on a span": (5, [Entity(1, 2, 1), Entity(1, 2, 2)]),
    "no entity": (4, []),
    "one word": (1, [Entity(0, 0, 3)]),
    "as many entities as spans": (6, [Entity(i, i, 1 + i % 3) for i in range(SLOTS)]),
}
ABLATIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "without self-attention": {"self_attention": False},
    "without cross-attention": {"cross_attention": False},
    "linear": {"schedule": "linear"},
}


@dataclass(frozen=True)
class Case:
    """A detector with random weights, a sentence for it, and the same for the transcription."""

    detector: BoundaryDiffusion
    decoding: DecodingSettings
    words: Tensor
    entities: list[Entity]
    seed: str

    @property
    def rngs(self) -> list[torch.Generator]:
        return [generator(self.seed, "chance")]

    @property
    def features(self) -> WordFeatures:
        return WordFeatures(self.words[None], torch.ones(1, len(self.words), dtype=torch.bool))

    @property
    def left(self) -> list[float]:
        schedule = self.detector.settings.schedule
        betas = paper.cosine_variances if schedule == "cosine" else paper.linear_variances
        return paper.signal_left(betas(LEVELS))

    @property
    def scale(self) -> float:
        return self.detector.settings.scale

    def loss(self) -> Tensor:
        gold = gold_spans([(e.left, e.right + 1, e.kind) for e in self.entities])
        return total_loss(self.detector(self.features, gold, self.rngs))

    def loss_of_the_paper(self) -> float:
        """Algorithm 1 with the random numbers of `loss`, for each of the K spans on average."""
        gold = gold_spans([(e.left, e.right + 1, e.kind) for e in self.entities])
        slots = self.detector._slots(self.features, gold, self.rngs)
        order = [self.entities[i] for i in slots.origin[0, 0].tolist() if i >= 0]
        shares = [(a, b) for a, b in slots.random[0, 0, len(order) :].double().tolist()]
        printed = self.detector.settings.pointer_loss == "likelihood"
        total = paper.training_loss(
            network(self.detector),
            self.words.detach().numpy(),
            self.entities,
            paper.expanded_randomly(order, shares, len(self.words), self.scale),
            slots.noise[0, 0].double().numpy(),
            1 + int(slots.levels[0, 0]),
            left=self.left,
            scale=self.scale,
            boundary=paper.likelihood if printed else paper.likelihood_of_all_words,
        )
        return total / SLOTS


def case(sentence: str, *, seed: int = 0, **changes: Any) -> Case:
    small = {"heads": HEADS, "hidden": 12, "slots": SLOTS, "levels": LEVELS, "steps": STEPS}
    section = {"name": "boundary-diffusion", "preset": "paper", **small, **changes}
    chosen = ModelSettings.resolve({"encoder": {"hashed": {}}, "detector": section})
    made = BoundaryDiffusion(
        chosen.detector,  # type: ignore[arg-type]
        dim=DIM,
        sentence_dim=DIM,
        labels=LABELS,
    )
    rng = generator("paper", sentence, seed)
    with torch.no_grad():
        for parameter in made.double().parameters():
            parameter.normal_(std=0.5, generator=rng)
    length, entities = SENTENCES[sentence]
    words = torch.randn(length, DIM, generator=rng, dtype=torch.double)
    return Case(made.eval(), chosen.decoding, words, entities, f"{sentence} {seed}")


def array(tensor: Tensor) -> Array:
    copy: Array = tensor.detach().double().numpy().copy()
    return copy


def linear(layer: nn.Module) -> paper.Linear:
    assert isinstance(layer, nn.Linear)
    return paper.Linear(array(layer.weight), array(layer.bias))


def norm(layer: nn.LayerNorm) -> paper.Norm:
    return paper.Norm(array(layer.weight), array(layer.bias))


def attention(layer: Attention | None, after: nn.LayerNorm | None) -> paper.Attention | None:
    if layer is None or after is None:
        return None
    return paper.Attention(
        query=linear(layer.ask),
        key=linear(layer.key),
        value=linear(layer.value),
        out=linear(layer.out),
        norm=norm(after),
        heads=layer.heads,
    )


def pointer(layer: BoundaryPointers, number: int) -> paper.Pointer:
    assert layer.hidden is not None
    assert layer.out is not None
    assert layer.out_bias is not None
    own = slice(number * DIM, (number + 1) * DIM)
    return paper.Pointer(
        array(layer.word.weight[own]),
        array(layer.slot.weight[own]),
        linear(layer.hidden[number]),
        paper.Linear(array(layer.out[number : number + 1]), array(layer.out_bias[number])),
    )


def network(detector: BoundaryDiffusion) -> paper.Network:
    """The weights of a detector in the paper's symbols."""
    (layer,) = detector.denoiser.layers
    assert isinstance(layer, SlotLayer)
    assert detector.slot_head is not None
    return paper.Network(
        attention(layer.slots, layer.slots_norm),
        attention(layer.words, layer.words_norm),
        paper.FeedForward(linear(layer.net[0]), linear(layer.net[3]), norm(layer.net_norm)),
        pointer(detector.denoiser.pointers, 0),
        pointer(detector.denoiser.pointers, 1),
        (linear(detector.slot_head[0]), linear(detector.slot_head[2])),
    )


# Sections 3 and 4.1


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
@pytest.mark.parametrize("timesteps", [10, 1000, 1500])
def test_the_table_of_levels_is_eq_3_of_the_schedule(schedule: Schedule, timesteps: int) -> None:
    betas = getattr(paper, f"{schedule}_variances")(timesteps)
    left = np.array(paper.signal_left(betas))
    table = noise_levels(schedule, timesteps)
    np.testing.assert_allclose(table.signal.double().numpy(), np.sqrt(left), rtol=1e-6)
    np.testing.assert_allclose(table.noise.double().numpy(), np.sqrt(1 - left), rtol=1e-6)


def test_eq_3_is_the_chain_of_eqs_1_and_2() -> None:
    betas = paper.cosine_variances(12)
    left, rng = paper.signal_left(betas), np.random.default_rng(0)
    start = rng.normal(size=(4, 2))
    silent = [np.zeros((4, 2))] * 12
    np.testing.assert_allclose(
        paper.forward_chain(start, betas, silent), math.sqrt(left[-1]) * start, rtol=1e-12
    )
    variance = 0.0  # independent noises add up as their squares
    for step in range(12):
        noises = [np.full((1, 2), float(n == step)) for n in range(12)]
        variance += float(paper.forward_chain(np.zeros((1, 2)), betas, noises)[0, 0]) ** 2
    assert variance == pytest.approx(1 - left[-1], rel=1e-12)


def at(left: float) -> NoiseLevels:
    table = torch.tensor([left, 1 - left], dtype=torch.double).sqrt()
    return NoiseLevels(table[0], table[1])


@pytest.mark.parametrize("seed", range(5))
def test_noising_and_denoising_are_eqs_4_6_and_7(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clean, noise = rng.normal(size=(2, 6, 2))
    before, now = sorted(rng.uniform(0.01, 0.99, size=2), reverse=True)
    x = paper.noisy_spans(clean, now, noise)
    got = noise_added(torch.from_numpy(clean), torch.from_numpy(noise), at(now))
    np.testing.assert_allclose(got.numpy(), x, atol=CLOSE)
    guess = rng.normal(size=(6, 2))
    wanted = paper.refined(guess, paper.predicted_noise(x, guess, now), before)
    step = ddim_step(got, torch.from_numpy(guess), at(now), at(before))
    np.testing.assert_allclose(step.numpy(), wanted, atol=CLOSE)


@pytest.mark.parametrize("timesteps", [7, 60, 1000, 1500])
def test_the_denoising_timesteps_are_those_of_the_paper(timesteps: int) -> None:
    for steps in range(1, min(timesteps, 90) + 1):
        levels = sampling_times(timesteps - 1, steps)
        tau = paper.denoising_times(timesteps, steps)
        assert [level + 1 for level in levels] == [*reversed(tau), 0]


@pytest.mark.parametrize("length", [1, 2, 3, 9, 40])
def test_boundaries_are_normalised_and_discretised_as_in_the_paper(length: int) -> None:
    pairs = [(a, b) for a in range(length) for b in range(a, length)]
    spans, lengths = torch.tensor([(a, b + 1) for a, b in pairs]), torch.tensor([length])
    latents = to_latents(spans, lengths, scale=1.5, state="ends", divisor="length")
    wanted = [paper.normalized(a, b, length, 1.5) for a, b in pairs]
    np.testing.assert_allclose(latents.numpy(), wanted, atol=1e-6)
    assert paper.discretized(np.array(wanted), length, 1.5) == pairs
    noise = torch.randn(300, 2, generator=generator("noise"), dtype=torch.double)
    read = to_spans(noise, lengths, scale=1.5, state="ends", divisor="length")
    found = paper.discretized(noise.numpy(), length, 1.5)
    assert [(a, b - 1) for a, b in read.tolist()] == found


@pytest.mark.parametrize("sentence", ["nested", "crossing", "one word"])
def test_repetition_duplicates_entities_equally_often(sentence: str) -> None:
    own = case(sentence, expansion="repeat")
    gold = gold_spans([(e.left, e.right + 1, e.kind) for e in own.entities])
    slots = own.detector._slots(own.features, gold, own.rngs)
    wanted = paper.expanded_by_repetition(own.entities, SLOTS)
    got = [own.entities[i] for i in slots.origin[0, 0].tolist()]
    assert sorted(Counter(got).values()) == sorted(Counter(wanted).values())


# Section 4.2


@pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)
@pytest.mark.parametrize("sentence", ["nested", "one word"])
def test_a_denoising_step_is_eq_5(sentence: str, changes: dict[str, Any]) -> None:
    own = case(sentence, **changes)
    weights, words = network(own.detector), own.words.numpy()
    x = np.random.default_rng(3).normal(size=(SLOTS, 2))
    spans = paper.discretized(x, len(words), own.scale)
    for t in (1, 17, LEVELS):
        (layer,) = own.detector.denoiser(
            own.detector.denoiser.read(own.features),
            torch.tensor([[(a, b + 1) for a, b in spans]]),
            torch.tensor([[t - 1]]),
            torch.ones(1, SLOTS, dtype=torch.bool),
        )
        pooled = paper.mean_pooled(words, spans)
        hidden = paper.span_representations(weights, words, pooled, t)
        np.testing.assert_allclose(array(layer.slots[0]), hidden, atol=CLOSE)
        wanted = paper.denoised(weights, words, x, t, own.scale)
        first, last = layer.pointers.probs(exclusive=False)
        np.testing.assert_allclose(array(first[0]), wanted.left, atol=CLOSE)
        np.testing.assert_allclose(array(last[0]), wanted.right, atol=CLOSE)
        labels = own.detector._label_logits(own.features, layer.slots, layer.slots[..., :2].long())
        np.testing.assert_allclose(array(labels.softmax(-1)[0]), wanted.kind, atol=CLOSE)


def test_the_pointers_of_the_released_code_are_the_papers_with_merged_matrices() -> None:
    own = case("nested")
    mlp = own.detector.denoiser.pointers
    merged = BoundaryPointers(dim=DIM, kind="perceptron", reach=0, dropout=0.9).double()
    assert mlp.hidden is not None
    with torch.no_grad():
        for number, layer in enumerate(mlp.hidden):
            assert isinstance(layer, nn.Linear)
            part = slice(number * DIM, (number + 1) * DIM)
            merged.word.weight[part] = layer.weight @ mlp.word.weight[part]
            merged.slot.weight[part] = layer.weight @ mlp.slot.weight[part]
            merged.word.bias[part], merged.slot.bias[part] = layer.bias, 0
        for name in ("out", "out_bias"):
            getattr(merged, name).copy_(getattr(mlp, name))
    slots = torch.randn(1, SLOTS, DIM, generator=generator("slots"), dtype=torch.double)
    places = word_distances(torch.zeros(1, SLOTS, 2, dtype=torch.long), len(own.words), 0)
    logits = [
        layer.train()(slots, layer.read(own.words[None]), places, own.features.mask)
        for layer in (mlp, merged)  # learning: neither has dropout of its own
    ]
    for name in ("first_logits", "last_logits"):
        one, other = (getattr(own_logits, name) for own_logits in logits)
        torch.testing.assert_close(one, other, rtol=0, atol=CLOSE)
    wanted = paper.boundary_probabilities(pointer(mlp, 0), own.words.numpy(), slots[0].numpy())
    np.testing.assert_allclose(array(logits[1].first_logits[0].sigmoid()), wanted, atol=CLOSE)


# Appendix A, the training objective and algorithm 1


@pytest.mark.parametrize("pointer_loss", ["bce", "likelihood"])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_loss_is_algorithm_1(sentence: str, pointer_loss: str) -> None:
    for seed in range(3):
        own = case(sentence, seed=seed, pointer_loss=pointer_loss)
        assert own.loss().item() == pytest.approx(own.loss_of_the_paper(), abs=CLOSE, rel=CLOSE)


@pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)
def test_the_loss_of_an_ablation_is_algorithm_1(changes: dict[str, Any]) -> None:
    own = case("crossing", **changes)
    assert own.loss().item() == pytest.approx(own.loss_of_the_paper(), abs=CLOSE, rel=CLOSE)


def differences(own: Case, tensor: Tensor, index: int, step: float = 1e-6) -> float:
    """How the transcription's loss changes with one number."""
    flat, values = tensor.detach().view(-1), []
    before = flat[index].item()
    for sign in (1, -1):
        flat[index] = before + sign * step
        values.append(own.loss_of_the_paper())
    flat[index] = before
    return (values[0] - values[1]) / (2 * step)


def test_gradients_are_those_of_the_paper() -> None:
    own = case("nested", seed=1)
    own.words.requires_grad_()
    own.loss().backward()
    rng = np.random.default_rng(0)
    tensors = {"words": own.words, **dict(own.detector.named_parameters())}
    for name, tensor in tensors.items():
        index = int(rng.integers(tensor.numel()))
        assert tensor.grad is not None, name
        got = tensor.grad.flatten()[index].item()
        assert got == pytest.approx(differences(own, tensor, index), rel=1e-5, abs=1e-7), name


# Section 4.3 and algorithm 2


def steps_of(own: Case) -> Iterator[tuple[paper.Predicted, Tensor]]:
    """The spans of the transcription and of the trace at each step."""
    start = KeyedNoise(own.rngs).at(0, [SLOTS])[0].double().numpy()
    history = paper.generated(
        network(own.detector),
        own.words.numpy(),
        start,
        left=own.left,
        steps=own.detector.settings.steps,
        scale=own.scale,
    )
    with torch.no_grad():
        found = own.detector.detect(own.features, own.rngs)
    for predicted, stage in zip(history, found.trace[1:], strict=True):
        yield predicted, stage.spans[0].long()


@pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_spans_of_every_step_are_those_of_algorithm_2(
    sentence: str, changes: dict[str, Any]
) -> None:
    own = case(sentence, **changes)
    for predicted, spans in steps_of(own):
        pairs = [one.entity[:2] for one in paper.candidates(predicted)]
        assert [(left, end - 1) for left, end in spans.tolist()] == pairs


def entities_of(found: DecodedSpans) -> set[Entity]:
    rows = zip(found.spans.tolist(), found.labels.tolist(), strict=True)
    return {Entity(start, end - 1, label) for (start, end), label in rows}


@pytest.mark.parametrize("phi", [1.5, 2.0, 2.5])
def test_entities_are_those_of_algorithm_2(phi: float) -> None:
    sizes = []
    for sentence, seed in [(name, seed) for name in SENTENCES for seed in range(4)]:
        own = case(sentence, seed=seed)
        *_, (predicted, _) = steps_of(own)
        with torch.no_grad():
            found = own.detector.detect(own.features, own.rngs)
        chosen = decode(to_numpy(found), own.decoding.model_copy(update={"threshold": phi / 3}))
        got = entities_of(chosen)
        assert got == paper.inferred(predicted, phi)
        sizes.append(len(got))
    assert any(sizes)
    assert case("nested").decoding.threshold == pytest.approx(2.5 / 3)


@pytest.mark.parametrize("phi", [1.5, 2.0, 2.5])
def test_de_duplication_and_filter_are_those_of_section_4_3(phi: float) -> None:
    decoding = case("nested").decoding.model_copy(update={"threshold": phi / 3})
    by_score, rng = 0, np.random.default_rng(0)
    for _ in range(30):  # few words and many candidates: some have the same boundaries
        left, right = rng.uniform(0.2, 1, size=(2, 8, 2))
        kinds = np.array([paper.softmax(row) for row in rng.normal(size=(8, LABELS), scale=3)])
        predicted = paper.Predicted(left, right, kinds)
        spans = torch.from_numpy(np.stack([left.argmax(1), right.argmax(1) + 1], axis=1))[None]
        types = torch.from_numpy(kinds)[None]
        sums = torch.from_numpy(np.stack([left.max(1), right.max(1)], axis=1))[None]
        said = SpanPredictions(
            spans,
            with_pointers(types, sums),
            spans[..., 0] < spans[..., 1],
            type_probs=types[..., 1:].max(dim=-1).values,
        )
        wanted = paper.inferred(predicted, phi)
        assert entities_of(decode(to_numpy(said), decoding)) == wanted
        usual = decoding.model_copy(update={"merge_by": "score"})
        by_score += entities_of(decode(to_numpy(said), usual)) != wanted
    assert by_score  # it makes a difference


def test_probabilities_at_the_end_are_those_of_the_paper() -> None:
    own = case("nested")
    *_, (predicted, _) = steps_of(own)
    with torch.no_grad():
        found = own.detector.detect(own.features, own.rngs)
    wanted = paper.candidates(predicted)
    assert found.type_probs is not None
    for k, one in enumerate(wanted):
        if one.entity.kind and (one.boundaries + one.kind) / 3 > 0.5:
            assert found.type_probs[0, k].item() == pytest.approx(one.kind, abs=CLOSE)
            score = found.label_probs[0, k, one.entity.kind].item()
            assert 3 * score == pytest.approx(one.boundaries + one.kind, abs=CLOSE)


# The released code, where it differs


def test_no_entity_weighs_as_much_as_all_entities_of_the_batch() -> None:
    rng = torch.Generator().manual_seed(0)
    for batch in range(1, 6):
        labels = torch.randint(0, 3, (batch * SLOTS,), generator=rng)
        sentence = torch.arange(batch).repeat_interleave(SLOTS)
        matched = sum(label > 0 for label in labels.tolist())
        nil = matched / (len(labels) - matched) if 0 < matched < len(labels) else 1.0
        wanted = [1.0 if label else nil for label in labels.tolist()]
        assert label_weights(labels, sentence, "batch").tolist() == pytest.approx(wanted)
    nothing = torch.zeros(SLOTS, dtype=torch.long)
    assert label_weights(nothing, nothing, "batch").tolist() == [1.0] * SLOTS
