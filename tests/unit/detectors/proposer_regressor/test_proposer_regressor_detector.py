"""Proposer and regressor as a whole: batches, pruning, options, presets, and long sentences."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from spandet import generate
from spandet.detectors.proposer_regressor.detector import ProposerRegressor
from spandet.detectors.proposer_regressor.head import HeadOutput
from spandet.detectors.proposer_regressor.settings import PRESETS, ProposerRegressorSettings
from spandet.errors import ConfigError
from spandet.inference.decoding import DecodingSettings, decode
from spandet.inference.engine import to_numpy
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.layers.regressor import GaussianHead, RegressorLayer
from spandet.tensors import Losses, SpanPredictions, WordFeatures, total_loss
from support.sentence_toys import Item, gold_spans, word_features

DIM, LABELS = 16, 4
ENTITIES: dict[int, list[Item]] = {
    6: [(0, 2, 1), (1, 2, 2), (3, 6, 3), (3, 6, 1)],
    1: [(0, 1, 2)],
    9: [],
    0: [],
    2: [(0, 1, 1), (1, 2, 2), (0, 2, 3), (0, 2, 1)],  # more than proposals
}


def detector(**settings: Any) -> ProposerRegressor:
    values = ProposerRegressorSettings.build({"heads": 4, **settings}, where="detector")
    made = ProposerRegressor(values, dim=DIM, sentence_dim=DIM, labels=LABELS)
    torch.manual_seed(0)  # the same weights, whatever the initialisation has drawn before
    with torch.no_grad():
        for parameter in made.parameters():  # large enough for predictions that differ much
            parameter.normal_(std=0.4)
    return made.eval()


PLAIN: dict[str, Any] = {
    "classify_spans": False,
    "spans_per_proposal": 1,
    "span_weight": 1.0,
    "min_odds": 0.1,
}


def plain(**settings: Any) -> ProposerRegressor:
    """One span per proposal, which is not classified again."""
    return detector(**{**PLAIN, **settings})


def words(*lengths: int, width: int = 0) -> WordFeatures:
    return word_features(*lengths, dim=DIM, width=width)


def parts(losses: Losses) -> dict[str, tuple[float, float]]:
    return {name: (loss.total.item(), loss.count.item()) for name, loss in losses.items()}


ABLATIONS: list[dict[str, Any]] = [
    {"use_backward": False},
    {"attention": "dot"},
    {"update": "ffn", "ffn_dim": 32},
    {"update": "residual"},
    {"use_category_embedding": False},
    {"use_location_iteration": False},
    {"use_logits_iteration": False},
    {"kernels": []},
    {"kernels": [2, 2, 2]},
    {"kernels": [2, 3]},
    {"layers": 0},
    {"layers": 5},
    {"heads": 1},
]
BEYOND: list[dict[str, Any]] = [
    PLAIN,
    {"attention": "spatial"},
    {"attention": "spatial_window", "window": 4},
    {"global_heads": 2, "sentence_key": True},
    {"proposals": "cells", "sentence_key": True},
    {"classify_spans": True, "spans_per_proposal": 3, "min_odds": 0.0},
    {"layer_weight": 0.5, "layer_copies": 2, "none_weight": 0.3},
    {"layer_weight": 0.5, "cell": "lstm", "recurrent_dim": 8},
    {"max_width": 2, "spans_per_proposal": 2, "min_odds": 0.2},
]
PRESET_OPTIONS = [
    {**PRESETS["paper"]["detector"]},
    {**PRESETS["released-code"]["detector"], "ffn_dim": 32},
]
VARIANTS: list[dict[str, Any]] = [{}, *ABLATIONS, *BEYOND, *PRESET_OPTIONS]


def name(settings: dict[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in settings.items()) or "default"


def check_spans(got: SpanPredictions, lengths: Tensor, widest: int) -> None:
    """Spans lie in their sentences, and probabilities sum to 1."""
    starts, ends = got.spans.unbind(dim=-1)
    fine = (starts >= 0) & (starts < ends) & (ends <= lengths[:, None])
    assert (fine & (ends - starts <= widest))[got.mask].all()
    sums = got.label_probs[got.mask].sum(dim=-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("settings", VARIANTS, ids=name)
def test_a_sentence_alone_is_the_same_as_in_a_padded_batch(settings: dict[str, Any]) -> None:
    made = detector(**settings)
    together = made.detect(words(*ENTITIES, width=11), [])
    check_spans(together, torch.tensor(list(ENTITIES)), made.settings.max_width or 99)
    sums: dict[str, tuple[float, float]] = {}
    for row, (length, items) in enumerate(ENTITIES.items()):
        alone, real = made.detect(words(length), []), together.mask[row]
        assert torch.equal(together.spans[row][real], alone.spans[0][alone.mask[0]])
        own = alone.label_probs[0][alone.mask[0]]
        torch.testing.assert_close(together.label_probs[row][real], own, atol=1e-4, rtol=1e-4)
        losses = parts(made(words(length), gold_spans(items), []))
        before = {key: sums.get(key, (0.0, 0.0)) for key in losses}
        sums = {key: (before[key][0] + t, before[key][1] + c) for key, (t, c) in losses.items()}
    batch = parts(made(words(*ENTITIES, width=11), gold_spans(*ENTITIES.values()), []))
    assert batch.keys() == sums.keys()
    for key, pair in batch.items():
        assert pair == pytest.approx(sums[key], rel=1e-3, abs=1e-3)


def unused(settings: dict[str, Any]) -> Iterator[str]:
    """Prefixes of the parameters that an option leaves unused."""
    if not settings.get("use_location_iteration", True):
        yield ".votes."  # boundaries do not change
    if settings.get("heads") == 1:
        yield ".votes."  # with one head, the softmax over heads is constant
    if settings.get("kernels") == []:
        yield "propose.scores."  # one cell per word: nothing to choose from


@pytest.mark.parametrize("settings", VARIANTS, ids=name)
def test_every_parameter_has_a_gradient(settings: dict[str, Any]) -> None:
    made = detector(**settings)
    total_loss(made(words(*ENTITIES), gold_spans(*ENTITIES.values()), [])).backward()
    idle = tuple(unused(settings))
    for label, parameter in made.named_parameters():
        if any(part in label for part in idle):
            assert parameter.grad is None or not parameter.grad.abs().max() > 1e-6, label
            continue
        assert parameter.grad is not None, label
        assert torch.isfinite(parameter.grad).all(), label
        assert parameter.ndim < 2 or parameter.grad.abs().max() > 0, label


def decoded(made: ProposerRegressor, given: WordFeatures, **options: Any) -> set[Any]:
    keep_all = options.pop("keep_all", False)
    found = decode(
        to_numpy(made.detect(given, [], keep_all=keep_all)),
        DecodingSettings(crossing="keep", one_label=False, **{"threshold": 0.0, **options}),
    )
    rows = zip(found.sentence.tolist(), found.spans.tolist(), found.labels.tolist(), strict=True)
    return {(sentence, *span, label) for sentence, span, label in rows}


def undecided(made: ProposerRegressor, given: WordFeatures) -> ProposerRegressor:
    """Make "no entity" so probable that half of the proposals are no entities."""
    with torch.no_grad():
        output: HeadOutput = made.head(made._states(given, len(made.layers))[-1], given)
        logits = output.label_logits[output.mask]
        bias = made.head.label_change[2].bias
        assert isinstance(bias, Tensor)
        bias[0] += (logits[:, 1:].amax(dim=1) - logits[:, 0]).median() - 0.01
    return made


def algorithm_two(made: ProposerRegressor, given: WordFeatures) -> set[Any]:
    """Every proposal, every span, every label; no shortcut."""
    output: HeadOutput = made.head(made._states(given, len(made.layers))[-1], given)
    result = set()
    for row, length in enumerate(given.lengths.tolist()):
        every = [(s, e) for s in range(length) for e in range(s + 1, length + 1)]
        for proposal in range(int(output.mask[row].sum())):
            chosen = torch.zeros_like(output.mask)
            chosen[row, proposal] = True
            scores = output.span_scores.where(chosen).at(torch.tensor(every)[None])[0]
            probs = output.label_logits[row, proposal].softmax(dim=0)
            span_prob, span = scores.softmax(dim=0).max(dim=0)
            label = int(probs[1:].argmax()) + 1
            if probs[label] * span_prob > probs[0]:
                result.add((row, *every[int(span)], label))
    return result


@pytest.mark.parametrize("preset", ["paper", "released-code"])
def test_prediction_equals_algorithm_2_over_all_spans(preset: str) -> None:
    given = words(9, 2, 0, 6)
    made = undecided(detector(**PRESETS[preset]["detector"]), given)
    wanted = algorithm_two(made, given)
    assert 1 < len(wanted) < 17
    assert decoded(made, given) == wanted
    assert PRESETS[preset]["decoding"] == {
        "threshold": 0.0,
        "crossing": "keep",
        "one_label": False,
    }


@pytest.mark.parametrize(
    ("options", "floor"), [*((own, 0.0) for own in PRESET_OPTIONS), ({}, 1e-4)]
)
def test_initial_weights_of_presets_and_defaults(options: dict[str, Any], floor: float) -> None:
    """Presets are initialised as in the released code."""
    values = ProposerRegressorSettings.build({"heads": 4, **options}, where="detector")
    torch.manual_seed(0)
    made = ProposerRegressor(values, dim=DIM, sentence_dim=0, labels=LABELS)
    floors = [own.floor for own in made.modules() if isinstance(own, GaussianHead)]
    assert floors == [floor] * 4
    is_theirs = floor == 0
    first, downwards = made.layers[0], list(made.pyramid.downwards)
    assert isinstance(first, RegressorLayer)
    assert first.categories is not None
    spread = first.categories.std().item()
    assert spread == pytest.approx(1.0 if is_theirs else 0.02, rel=0.3)
    assert all(bool(own.state_dict()["bias"].any()) == is_theirs for own in downwards)


@pytest.mark.parametrize(
    "settings", [{}, {"spans_per_proposal": 3}, {"classify_spans": True}], ids=name
)
@pytest.mark.parametrize("min_odds", [0.0, 0.3, 1.0])
def test_pruning_does_not_change_predictions(settings: dict[str, Any], min_odds: float) -> None:
    given = words(9, 2, 0, 6)
    made = undecided(detector(**settings, min_odds=min_odds), given)
    pruned, full = made.detect(given, []), made.detect(given, [], keep_all=True)
    dropped = full.spans.shape[1] - pruned.spans.shape[1]
    assert dropped > 0 if min_odds == 1 else dropped >= 0
    assert int(full.mask.sum()) == int(pruned.mask.sum()) > 0
    torch.testing.assert_close(full.label_probs[full.mask], pruned.label_probs[pruned.mask])
    for weight in (min_odds, 1.0):
        assert decoded(made, given, min_odds=weight) == decoded(
            made, given, min_odds=weight, keep_all=True
        )


def test_lower_min_odds_keep_more_candidates() -> None:
    given = words(9, 6)
    few, all_of_them = (undecided(plain(min_odds=e), given) for e in (1.0, 0.0))
    assert decoded(few, given) == decoded(all_of_them, given)
    assert decoded(few, given, min_odds=0.0) == decoded(few, given)
    assert decoded(few, given) < decoded(all_of_them, given, min_odds=0.0)
    assert int(all_of_them.detect(given, []).mask.sum()) == 15


@pytest.mark.parametrize("weight", [1.0, 0.5, 0.0])
def test_scores_are_label_and_span_against_no_entity(weight: float) -> None:
    made = plain(min_odds=0.0, spans_per_proposal=2, span_weight=weight)
    given = words(5)
    got = made.detect(given, [])
    output: HeadOutput = made.head(made._states(given, 3)[-1], given)
    labels = output.label_logits[0].softmax(dim=-1).repeat_interleave(2, dim=0)
    spans = output.span_scores.where(output.mask).best(2)[1].exp().flatten()
    joint = torch.cat([labels[:, :1], labels[:, 1:] * spans[:, None] ** weight], dim=1)
    torch.testing.assert_close(got.label_probs[0], joint / joint.sum(dim=1, keepdim=True))


def test_a_proposal_can_predict_several_spans() -> None:
    given = words(6, 1)
    one = plain(min_odds=0.0).detect(given, [], keep_all=True)
    three = plain(min_odds=0.0, spans_per_proposal=3).detect(given, [], keep_all=True)
    assert one.spans.shape == (2, 6, 2)
    assert three.spans.shape == (2, 18, 2)
    assert three.mask.sum(dim=1).tolist() == [18, 1]  # one word has one span
    of_each = three.spans[0].view(6, 3, 2)
    assert torch.equal(of_each[:, 0], one.spans[0])
    assert all(len(set(map(tuple, own))) == 3 for own in of_each.tolist())


def test_all_predicted_spans_are_classified_in_training() -> None:
    given, gold = words(6, 1), gold_spans([(0, 2, 1)], [])
    one, three = (
        detector(min_odds=0.0, classify_spans=True, spans_per_proposal=k)(given, gold, [])
        for k in (1, 3)
    )
    assert three["span_label"].count - one["span_label"].count == 2 * 6  # one word has one span


@pytest.mark.parametrize(("prior", "named"), [(5.0, 2), (0.0, 2 + 3 * 6 + 1)])
def test_with_none_prior_a_fresh_model_classifies_only_entities(prior: float, named: int) -> None:
    given, gold = words(6, 1), gold_spans([(0, 2, 1), (0, 1, 2)], [])
    values = ProposerRegressorSettings(heads=4, rest="none", none_prior=prior)
    torch.manual_seed(0)
    made = ProposerRegressor(values, dim=DIM, sentence_dim=0, labels=LABELS)
    assert made(given, gold, [])["span_label"].count == named


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 9])
def test_the_trace_has_the_proposer_and_every_layer(rounds: int) -> None:
    made, given = plain(eval_layers=rounds), words(5, 3)
    got = made.detect(given, [], keep_all=True)
    count = min(rounds, 3)
    assert [stage.name for stage in got.trace] == [
        "proposed",
        *[f"layer {number}" for number in range(1, count + 1)],
    ]
    states = made._states(given, count)
    for stage, state in zip(got.trace, states, strict=True):
        real = state.mask
        torch.testing.assert_close(stage.spans[real], state.soft_spans[real])
        assert stage.label_probs is not None
        own = state.label_logits.softmax(dim=-1)
        torch.testing.assert_close(stage.label_probs[real], own[real])
    shallow = plain(layers=count)
    shallow.load_state_dict(made.state_dict(), strict=False)
    torch.testing.assert_close(
        got.label_probs, shallow.detect(given, [], keep_all=True).label_probs
    )


def test_first_locations_contain_their_words() -> None:
    trace = plain().detect(words(8), [], keep_all=True).trace
    start, end = trace[0].spans[0].unbind(dim=-1)
    word = torch.arange(8)
    assert (start <= word + 1e-4).all()
    assert (end >= word + 1 - 1e-4).all()
    assert (end - start <= 5 + 1e-4).all()  # at most from a window before to a window after
    assert not torch.allclose(trace[1].spans, trace[0].spans)


NOTHING = [words(0, 0), words(0, width=4), words()]


@pytest.mark.parametrize("given", NOTHING, ids=["no words", "only padding", "no sentence"])
@pytest.mark.parametrize("settings", [{}, *BEYOND[3:6]], ids=name)
def test_sentences_without_words_have_no_entities(
    given: WordFeatures, settings: dict[str, Any]
) -> None:
    made = detector(**settings)
    total = total_loss(made(given, gold_spans(*[[] for _ in given.mask]), []))
    assert total == 0
    got = made.detect(given, [])
    assert got.spans.shape == (len(given.mask), 0, 2)
    assert len(got.trace) == 4
    assert decoded(made, given) == set()


@pytest.mark.parametrize("settings", [{}, *BEYOND], ids=name)
def test_without_entities_there_is_a_loss_and_no_nan(settings: dict[str, Any]) -> None:
    losses = detector(**settings)(words(6, 1, 0), gold_spans([], [], []), [])
    assert losses["span"].total == 0
    assert losses["label"].total > 0
    assert torch.isfinite(total_loss(losses))


def test_half_precision_is_close_to_full_precision() -> None:
    given, gold = words(12, 6), gold_spans([(9, 12, 1)], ENTITIES[6])
    for settings in ({}, {"sentence_key": True, "classify_spans": True}, {"proposals": "cells"}):
        torch.manual_seed(0)
        values = ProposerRegressorSettings.build({"heads": 4, **settings}, where="detector")
        made = ProposerRegressor(values, dim=DIM, sentence_dim=0, labels=LABELS).eval()
        full = total_loss(made(given, gold, []))
        with torch.autocast("cpu", torch.bfloat16):
            half = total_loss(made(given, gold, []))
            made.detect(given, [])
        assert half.item() == pytest.approx(full.item(), rel=0.05)


def test_auxiliary_losses_are_weighted_and_named() -> None:
    given, gold = words(*ENTITIES), gold_spans(*ENTITIES.values())
    bare = parts(plain()(given, gold, []))
    assert set(bare) == {"label", "span"}
    once = parts(plain(layer_weight=1.0)(given, gold, []))
    half = parts(plain(layer_weight=0.5)(given, gold, []))
    assert set(half) == {*bare, *(f"{key}_{n}" for key in bare for n in range(3))}
    assert half["label"] == bare["label"]
    for key in set(half) - set(bare):
        assert half[key] == pytest.approx((once[key][0] / 2, once[key][1]))


def test_one_span_with_two_labels_can_be_learnt_and_predicted() -> None:
    given, gold = words(4), gold_spans([(1, 3, 1), (1, 3, 3)])
    values = ProposerRegressorSettings(classify_spans=True, layers=1, kernels=(), heads=4)
    torch.manual_seed(0)
    made = ProposerRegressor(values, dim=DIM, sentence_dim=0, labels=LABELS).eval()
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    for _ in range(30):
        optimizer.zero_grad()
        total_loss(made(given, gold, [])).backward()
        optimizer.step()
    assert decoded(made, given) == {(0, 1, 3, 1), (0, 1, 3, 3)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": [2]}, "has no setting kernel; did you mean kernels"),
        ({"kernels": [1]}, "kernels"),
        ({"global_heads": 5}, "global_heads must be at most heads"),
        ({"heads": 17}, "heads: must be at most the word vector's size, 16"),
        ({"recurrent_dim": 7}, "recurrent_dim: .*multiple of 2"),
        ({"attention": "spatial_window", "proposals": "cells"}, 'needs proposals = "words"'),
        ({"attention": "spatial_window", "sentence_key": True}, 'needs proposals = "words"'),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        detector(**settings)


@pytest.mark.parametrize("preset", [*PRESETS, None])
def test_a_saved_model_predicts_the_same(preset: str | None, tmp_path: Path) -> None:
    section: dict[str, Any] = {"name": "proposer-regressor", "heads": 4, "ffn_dim": 32}
    section |= {"preset": preset} if preset else {}
    encoder = {"hashed": {}, "fusion": {"dim": 16, "norm": True}}
    documents = list(generate(6, seed=3))
    torch.manual_seed(0)
    made = Recognizer.build(
        ModelSettings.resolve({"encoder": encoder, "detector": section}), documents
    )
    assert isinstance(made.detector, ProposerRegressor)
    assert (made.detector.head.pointer.answer is None) == (preset == "paper")
    made.modules().eval()
    made.save_pretrained(tmp_path / "model")
    again = Recognizer.from_pretrained(tmp_path / "model")
    assert again.settings == made.settings
    found = [list(document.entities) for document in made.predict(documents)]
    assert [list(document.entities) for document in again.predict(documents)] == found


LONG = """
import resource, sys
import torch
from spandet.detectors.proposer_regressor.detector import ProposerRegressor
from spandet.detectors.proposer_regressor.settings import ProposerRegressorSettings
from spandet.tensors import GoldSpans, WordFeatures, total_loss

made = ProposerRegressor(ProposerRegressorSettings(), dim=32, sentence_dim=0, labels=6)
words = WordFeatures(torch.randn(1, 1000, 32), torch.ones(1, 1000, dtype=torch.bool))
starts = torch.arange(0, 990, 10)
spans = torch.stack([starts, starts + 1 + starts % 7], dim=1)[None]
gold = GoldSpans(spans, 1 + spans[..., 0] % 5, torch.ones(1, len(starts), dtype=torch.bool))
total_loss(made(words, gold, [])).backward()
with torch.no_grad():
    made.eval().detect(words, [], keep_all=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_a_sentence_of_a_thousand_words_needs_less_than_four_gigabytes() -> None:
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4096


def test_the_linear_attention_is_linear_in_memory() -> None:
    """A thousand words with the window keep less for the gradient than 250 without, squared."""

    def kept(length: int, **settings: Any) -> int:
        made = detector(layers=1, kernels=[], **settings)
        sizes: list[int] = []

        def pack(tensor: Tensor) -> Tensor:
            sizes.append(tensor.untyped_storage().nbytes())
            return tensor

        state = made._states(words(length), 0)[0]
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            made.layers[0](state)
        return sum(sizes)

    narrow = {"attention": "spatial_window", "window": 8}
    assert kept(400, **narrow) < 4.5 * kept(100, **narrow)
    assert kept(400) > 10 * kept(100)
