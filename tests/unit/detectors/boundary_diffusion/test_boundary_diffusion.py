"""Boundary diffusion: laws of `forward` and `detect`, for all presets and ablations."""

from typing import Any

import pytest
import torch

from spandet.detectors.boundary_diffusion.detector import BoundaryDiffusion
from spandet.detectors.boundary_diffusion.settings import PRESETS, BoundaryDiffusionSettings
from spandet.detectors.boundary_diffusion.slots import SlotState
from spandet.errors import ConfigError
from spandet.inference.decoding import DecodingSettings, decode
from spandet.inference.engine import to_numpy
from spandet.seeding import generator
from spandet.tensors import GoldSpans, Losses, SpanPredictions, WordFeatures, total_loss

DIM, LABELS = 8, 4
SMALL = {"dim": 8, "heads": 2, "hidden": 16}


def detector(**settings: Any) -> BoundaryDiffusion:
    torch.manual_seed(0)
    values = BoundaryDiffusionSettings.build(SMALL | settings, where="detector")
    made = BoundaryDiffusion(values, dim=DIM, sentence_dim=DIM, labels=LABELS)
    with torch.no_grad():
        for (
            parameter
        ) in made.parameters():  # large enough to point somewhere and to have high scores
            parameter.normal_(std=0.5)
    return made.eval()


def words(*lengths: int, width: int = 0) -> WordFeatures:
    width = max(width, *lengths)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    rows = [torch.randn(64, DIM, generator=generator("row", n))[:width] for n in lengths]
    return WordFeatures(torch.stack(rows) * mask[..., None], mask)


def gold(*sentences: list[tuple[int, int, int]]) -> GoldSpans:
    most = max(len(items) for items in sentences)
    table = torch.tensor([items + [(0, 1, 0)] * (most - len(items)) for items in sentences])
    table = table.reshape(len(sentences), most, 3).long()
    return GoldSpans(table[..., :2], table[..., 2], table[..., 2] > 0)


def rngs(*lengths: int) -> list[torch.Generator]:
    return [generator("rng", length) for length in lengths]


def detected(made: BoundaryDiffusion, *lengths: int, width: int = 0) -> SpanPredictions:
    with torch.no_grad():
        return made.detect(words(*lengths, width=width), rngs(*lengths))


def preset(name: str) -> dict[str, Any]:
    return {**PRESETS[name]["detector"], **SMALL, "slots": 12}


VARIANTS: list[dict[str, Any]] = [
    {},
    preset("paper"),
    preset("released-code"),
    {"start": "low-discrepancy", "expansion": "random", "steps": 10, "settle": False},
    {"start": "gaussian", "eta": 1.0, "assignment": "matching", "targets_per_entity": 2},
    {"start": "gaussian", "eta": 0.5, "state": "width", "schedule": "linear", "levels": 50},
    {"self_attention": False, "cross_attention": False, "steps": 1, "score": "sum"},
    {"slots": 5, "eval_slots": 9, "start_noise": 1.0, "start_level": 1.0, "pooling": "max+ends"},
    {"fragments": True},
    {"label_view": "slot", "none_weight": "balanced", "expansion": "repeat", "draws": 2},
    {"time": "none", "reach": 0, "spread": False, "scale": 1.0, "layers": 1, "known_origin": 1.0},
]
GOLD: list[list[tuple[int, int, int]]] = [[(0, 2, 1), (1, 2, 2)], [], [(0, 12, 3)] * 9, []]
LENGTHS = (5, 1, 14, 0)


@pytest.mark.parametrize("settings", VARIANTS)
def test_predictions_are_the_same_alone_in_a_padded_batch_and_in_any_order(
    settings: dict[str, Any],
) -> None:
    made = detector(**settings)
    together = detected(made, *LENGTHS, width=17)
    turned = detected(made, *reversed(LENGTHS))
    for index, length in enumerate(LENGTHS):
        alone = detected(made, length)
        real = alone.mask[0]
        for batch, row in ((together, index), (turned, len(LENGTHS) - 1 - index)):
            assert torch.equal(batch.mask[row, : len(real)], real)
            assert not batch.mask[row, len(real) :].any()
            assert torch.equal(batch.spans[row, : len(real)][real], alone.spans[0][real])
            got = batch.label_probs[row, : len(real)][real]
            torch.testing.assert_close(got, alone.label_probs[0][real], rtol=0, atol=1e-5)
            for ours, theirs in zip(alone.trace, batch.trace, strict=True):
                assert ours.name == theirs.name
                assert torch.equal(ours.spans[0][real], theirs.spans[row, : len(real)][real])


def parts(losses: Losses) -> dict[str, tuple[float, float]]:
    return {name: (loss.total.item(), loss.count.item()) for name, loss in losses.items()}


def by_sentence(settings: dict[str, Any]) -> dict[str, Any]:
    """The same variants without those whose loss weights depend on the batch."""
    return settings | (
        {"none_weight": "balanced"} if settings.get("none_weight") == "batch" else {}
    )


@pytest.mark.parametrize("settings", [by_sentence(settings) for settings in VARIANTS])
def test_the_loss_of_a_batch_is_the_sum_of_its_sentences(settings: dict[str, Any]) -> None:
    made = detector(**settings)
    sums: dict[str, torch.Tensor] = {}
    for length, items in zip(LENGTHS, GOLD, strict=True):
        for name, pair in parts(made(words(length), gold(items), rngs(length))).items():
            sums[name] = sums.get(name, torch.zeros(2)) + torch.tensor(pair)
    batch = parts(made(words(*LENGTHS, width=17), gold(*GOLD), rngs(*LENGTHS)))
    assert set(batch) == set(sums)
    for name, pair in batch.items():
        torch.testing.assert_close(torch.tensor(pair), sums[name], rtol=1e-4, atol=1e-4)


def test_with_none_weight_batch_no_entity_weighs_as_much_as_all_entities_of_a_batch() -> None:
    made = detector(**preset("released-code"))
    sentences = {5: [(0, 2, 1)], 14: [(3, 9, 2)], 7: []}  # every slot has an entity, or none has

    def label_loss(*lengths: int) -> float:
        truth = gold(*(sentences[length] for length in lengths))
        return parts(made(words(*lengths), truth, rngs(*lengths)))["label"][0]

    first, second, empty = map(label_loss, sentences)
    assert label_loss(5, 14, 7) == pytest.approx(first + second + 2 * empty, rel=1e-5)
    assert label_loss(5, 14) == pytest.approx(first + second, rel=1e-5)
    assert PRESETS["paper"]["detector"]["none_weight"] == 1


@pytest.mark.parametrize("settings", VARIANTS)
def test_every_parameter_has_a_gradient_and_every_span_is_inside_its_sentence(
    settings: dict[str, Any],
) -> None:
    made = detector(**settings)
    total_loss(made(words(*LENGTHS), gold(*GOLD), rngs(*LENGTHS))).backward()
    lost = [name for name, p in made.named_parameters() if p.grad is None]
    assert not lost
    got = detected(made, 7, 3, 1)
    starts, ends = got.spans.unbind(dim=-1)
    fine = (starts >= 0) & (starts < ends) & (ends <= torch.tensor([[7], [3], [1]]))
    assert fine[got.mask].all()
    sums = got.label_probs[got.mask].sum(dim=-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("settings", VARIANTS)
def test_without_words_or_entities_there_is_no_nan(settings: dict[str, Any]) -> None:
    made = detector(**settings)
    nothing = WordFeatures(torch.zeros(2, 0, DIM), torch.zeros(2, 0, dtype=torch.bool))
    for some, count in ((nothing, 2), (words(6, 1), 2)):
        losses = made(some, gold([], []), rngs(*range(count)))
        assert torch.isfinite(total_loss(losses))
        assert losses["boundary"].total == 0
        assert losses["boundary"].count == 0 or made.settings.boundary_mean == "slots"
        total_loss(losses).backward()
    assert not made.detect(nothing, rngs(0, 0)).mask.any()


@pytest.mark.parametrize(("steps", "settle"), [(1, True), (4, True), (4, False)])
def test_a_trace_has_a_stage_for_the_start_and_one_for_each_step(steps: int, settle: bool) -> None:
    got = detected(detector(steps=steps, settle=settle, start="low-discrepancy"), 9, 4)
    levels = {1: [999], 4: [999, 749, 499, 249]}[steps]
    assert [stage.name for stage in got.trace] == ["noise", *[f"level {n}" for n in levels]]
    assert torch.equal(got.trace[-1].spans[got.mask].long(), got.spans[got.mask])
    assert got.trace[-1].label_probs is not None
    proposed = detected(detector(steps=steps, start_level=0.5), 9, 4)
    assert [stage.name for stage in proposed.trace][:2] == ["proposal", "level 500"]
    assert len(proposed.trace) == steps + 1


def test_a_slot_that_points_twice_at_the_same_span_stays_there() -> None:
    got = detected(detector(steps=10, start="gaussian", eta=1.0), 14)
    track = torch.stack([stage.spans[0] for stage in got.trace[1:]])
    for slot in range(track.shape[1]):
        path = [tuple(span) for span in track[:, slot].tolist()]
        repeated = [n for n in range(1, len(path)) if path[n] == path[n - 1]]
        if repeated:
            assert set(path[repeated[0] :]) == {path[repeated[0]]}
    free = detected(detector(steps=10, start="gaussian", eta=1.0, settle=False), 14)
    assert not torch.equal(torch.stack([stage.spans[0] for stage in free.trace[1:]]), track)


def test_slots_that_have_settled_are_not_computed() -> None:
    made = detector(steps=6, start="low-discrepancy")
    seen: list[int] = []
    made.denoiser.register_forward_hook(lambda _, given, __: seen.append(int(given[3].sum())))
    detected(made, 14, 9)
    assert seen == sorted(seen, reverse=True)
    assert len(seen) < 6 or seen[-1] < seen[0]


@pytest.mark.parametrize("start", ["gaussian", "low-discrepancy"])
def test_more_slots_keep_the_first_start_points(start: str) -> None:
    few = detected(detector(start=start, slots=60, eval_slots=7), 11)
    many = detected(detector(start=start, slots=60, eval_slots=130), 11)
    assert many.mask.shape == (1, 130)
    assert torch.equal(few.trace[0].spans[0], many.trace[0].spans[0, :7])


def test_prediction_is_random_only_with_certain_options() -> None:
    def spans(key: str, **settings: Any) -> torch.Tensor:
        with torch.no_grad():
            made = detector(steps=3, settle=False, **settings)
            return made.detect(words(14), [generator(key)]).trace[-2].spans

    fixed: list[dict[str, Any]] = [{}, {"start": "low-discrepancy"}]
    for settings in fixed:
        assert torch.equal(spans("a", **settings), spans("b", **settings))
    random: list[dict[str, Any]] = [{"start": "gaussian"}, {"start": "low-discrepancy", "eta": 1.0}]
    for settings in random:
        assert torch.equal(spans("a", **settings), spans("a", **settings))
        assert not torch.equal(spans("a", **settings), spans("b", **settings))


def targets_of(settings: dict[str, Any], items: list[tuple[int, int, int]]) -> Any:
    made, truth = detector(**settings), gold(items)
    slots = made._slots(words(14), truth, rngs(14))
    spans = made._corrupted(words(14), truth, slots, None)
    mask = slots.mask.repeat(1, made.settings.draws)
    layers = made.denoiser(made.denoiser.read(words(14)), spans, slots.levels, mask)
    return slots, made._targets(words(14), truth, slots, spans, layers[-1])


def test_full_repetition_leaves_no_slot_without_an_entity() -> None:
    _, targets = targets_of(preset("released-code"), [(0, 2, 1), (3, 9, 2)])
    assert torch.bincount(targets[0]).tolist() == [6, 6]
    _, targets = targets_of(preset("released-code"), [])
    assert (targets == -1).all()


def test_with_preset_paper_each_entity_is_the_target_of_one_slot() -> None:
    _, targets = targets_of(preset("paper"), [(0, 2, 1), (3, 9, 2)])
    assert sorted(targets[0].tolist()) == [-1] * 10 + [0, 1]
    _, targets = targets_of(preset("paper"), [(n % 13, n % 13 + 1, 1) for n in range(20)])
    assert len(set(targets[0].tolist())) == 12


def test_copies_with_little_noise_have_their_own_entity_as_target() -> None:
    settings = {"expansion": "random", "start": "gaussian", "known_origin": 0.5, "copies": 3}
    slots, targets = targets_of(settings, [(0, 2, 1), (5, 9, 2)])
    own = targets.view(slots.origin.shape)
    assert (slots.levels[0, :2] < 500).all()
    made = slots.origin[0, :2] >= 0
    assert torch.equal(own[0, :2][made], slots.origin[0, :2][made])
    assert not torch.equal(own[0, 2:], slots.origin[0, 2:])


def test_only_widths_have_a_minimum_in_random_spans() -> None:
    pairs = torch.tensor([[-0.2, -0.3], [0.4, 0.5]])
    for state, least in (("ends", -0.3), ("width", 1e-4)):
        space = detector(state=state, scale=2.0).space
        wanted = 2 * (2 * torch.tensor([[-0.2, least], [0.4, 0.5]]) - 1)
        torch.testing.assert_close(space.from_unit(pairs), wanted)


def test_heads_must_divide_the_size_of_word_vectors() -> None:
    settings = BoundaryDiffusionSettings(dim=0, heads=3)
    with pytest.raises(
        ConfigError, match=r"\[detector\] heads: .* 8, which must be .* heads, got 3"
    ):
        BoundaryDiffusion(settings, dim=DIM, sentence_dim=DIM, labels=LABELS)


def test_without_noise_a_copy_equals_its_entity() -> None:
    made, truth = detector(expansion="random", start="gaussian"), gold([(2, 5, 1), (13, 14, 2)])
    slots = made._slots(words(14), truth, rngs(14))
    slots.levels.zero_()
    slots.noise.zero_()
    spans = made._corrupted(words(14), truth, slots, None).view(1, 4, -1, 2)
    origin = slots.origin[0, 0]
    assert torch.equal(spans[0, 0][origin >= 0], truth.spans[0][origin[origin >= 0]])


def test_the_papers_filter_is_a_threshold_on_a_third_of_the_sum() -> None:
    settings = {**preset("paper"), "steps": 1}
    with_sum, plain = detector(**settings), detector(**settings | {"score": "label"})
    one, other = detected(with_sum, 14), detected(plain, 14)
    pointer_probs = one.trace[-1].scores
    assert pointer_probs is not None
    q = other.label_probs.max(dim=-1).values + 2 * pointer_probs
    named = other.label_probs.argmax(dim=-1) > 0
    assert named.any()
    got = one.label_probs.gather(2, other.label_probs.argmax(dim=-1, keepdim=True)).squeeze(-1)
    torch.testing.assert_close(got[named], q[named] / 3)
    phi = 1.8
    found = decode(to_numpy(one), DecodingSettings(threshold=phi / 3, crossing="keep"))
    legal = one.mask & named & (one.label_probs.argmax(dim=-1) > 0)
    wanted = {tuple(span) for span in one.spans[legal & (q > phi)].tolist()}
    assert {tuple(span) for span in found.spans.tolist()} == wanted


def test_inverted_pointers_are_no_entities() -> None:
    got = detected(detector(**preset("released-code")), 14, 7)
    starts, ends = got.trace[-1].spans.unbind(dim=-1)
    assert torch.equal(got.mask, starts < ends)
    assert got.mask.any()
    assert not got.mask.all()
    turned = (starts >= ends)[..., None]
    where = starts.long()[..., None].clamp(min=0).expand(-1, -1, 2)
    assert torch.equal(got.spans, torch.where(turned, where, got.trace[-1].spans.long()))


def test_empty_spans_do_not_change_other_predictions() -> None:
    settings = {**preset("released-code"), "label_view": "pointed"}
    got = detected(detector(**settings), 14, 7)
    assert (got.spans[..., 0] == got.spans[..., 1]).any()
    assert torch.isfinite(got.label_probs).all()
    alone = detected(detector(**settings), 7)
    count = alone.mask.shape[1]
    assert torch.equal(got.spans[1, :count], alone.spans[0])
    torch.testing.assert_close(got.label_probs[1, :count], alone.label_probs[0])


def test_equal_pointed_spans_have_equal_scores() -> None:
    got = detected(detector(), 14)
    seen: dict[tuple[int, ...], torch.Tensor] = {}
    for span, probs in zip(got.spans[0].tolist(), got.label_probs[0], strict=True):
        torch.testing.assert_close(probs, seen.setdefault(tuple(span), probs))
    assert len(seen) < got.spans.shape[1]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"steps": 2000}, "steps must be at most levels"),
        ({"dim": 10, "heads": 4}, "dim must be a multiple of heads"),
        ({"schedule": "sigmoid"}, "schedule"),
        ({"start_step": 1}, "did you mean start_level|has no setting start_step"),
    ],
)
def test_invalid_settings_are_errors(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        BoundaryDiffusionSettings.build(settings, where="detector")


@pytest.mark.parametrize("settings", VARIANTS)
def test_results_are_finite_in_half_precision(settings: dict[str, Any]) -> None:
    made = detector(**settings)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        losses = made(words(*LENGTHS), gold(*GOLD), rngs(*LENGTHS))
        got = detected(made, *LENGTHS)
    assert torch.isfinite(total_loss(losses))
    assert torch.isfinite(got.label_probs).all()


@pytest.mark.parametrize("name", ["paper", "released-code"])
@pytest.mark.parametrize("changes", [{}, {"draws": 3, "reach": 2, "auxiliary": True}])
def test_pointers_of_slots_with_an_entity_suffice_for_the_gradient(
    name: str, changes: dict[str, Any]
) -> None:
    made = detector(**preset(name) | changes)
    truth = gold([(0, 2, 1), (1, 2, 2), (3, 5, 3)], [], [(1, 3, 1)])

    def gradients(*, pairwise: bool) -> list[torch.Tensor]:
        made.denoiser.pointers.pairwise = pairwise
        made.zero_grad()
        total_loss(made(words(7, 4, 5), truth, rngs(7, 4, 5))).backward()
        return [p.grad.clone() for p in made.parameters() if p.grad is not None]

    few, all_slots = gradients(pairwise=True), gradients(pairwise=False)
    assert len(few) == len(all_slots)
    assert max(grad.abs().max() for grad in few) > 0
    for one, other in zip(few, all_slots, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def pointing(seed: int, **settings: Any) -> BoundaryDiffusion:
    """A detector whose pointers, with these seeds, predict spans that are not all inverted."""
    made = detector(**preset("paper") | {"expansion": "denoised", "draws": 4} | settings)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in made.denoiser.pointers.parameters():
            parameter.normal_()
    return made


def test_denoised_slots_are_the_states_of_later_denoising_steps() -> None:
    made, own, truth = pointing(7), words(9), gold([(2, 4, 1)])
    slots, read = made._slots(own, truth, rngs(9)), made.denoiser.read(own)
    denoised = made._denoised(own, read, slots, slots.mask.repeat(1, 4))
    spans = made._corrupted(own, truth, slots, denoised).unflatten(1, (4, -1))
    last, compared = made.settings.levels - 1, 0
    for draw, level in enumerate(slots.levels[0].tolist()):
        noise, nowhere = slots.noise[:, draw], torch.full((1, 12, 2), -1)
        start = SlotState(noise, nowhere, torch.zeros(1, 12, DIM), noise, slots.mask)
        state = made._renoised(made._step(start, read, last), own, (last, level), None)
        later = made.space.spans(state.latents, own.lengths[:, None], level)
        same = (slots.origin[:, draw] < 0) & (state.spans[..., 0] < state.spans[..., 1])
        assert torch.equal(spans[:, draw][same], later[same])
        compared += int(same.sum())
    assert compared > 4


def test_denoised_slots_follow_the_predictions_of_the_network() -> None:
    own, truth = words(9), gold([(2, 4, 1)])

    def corrupted(made: BoundaryDiffusion) -> torch.Tensor:
        slots, read = made._slots(own, truth, rngs(9)), made.denoiser.read(own)
        denoised = made._denoised(own, read, slots, slots.mask.repeat(1, 4))
        return made._corrupted(own, truth, slots, denoised)

    assert not torch.equal(corrupted(pointing(5)), corrupted(pointing(8)))
    both = (corrupted(pointing(seed, expansion="random")) for seed in (5, 8))
    assert torch.equal(*both)
