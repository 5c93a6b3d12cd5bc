"""Costs of the bare encoder and the whole model: same sentences, means weighted by the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from spandet.benchmarking import cost
from spandet.benchmarking.cost import (
    Cost,
    PredictionWorkload,
    TrainingWorkload,
    costs_by_length,
    group_by_length,
    predict_speed,
    weighted_mean,
)
from spandet.benchmarking.measuring import (
    Batch,
    Task,
    Timing,
    peak_memory,
    peak_memory_of,
    reset_peak_memory,
    sorted_batches,
)
from spandet.benchmarking.profiling import (
    parse_lengths,
    prediction_by_length,
    profile_training,
    stored_bytes,
    training_by_length,
)
from spandet.encoding import Encoder
from spandet.errors import UsageError
from spandet.inference.recognizer import Recognizer
from spandet.rendering.progress import ProgressDisplay
from support.benchmark_toys import RECIPE, documents, toy_folder

TIMING = Timing(sentences=8, batch=4, rounds=1)
SILENT = ProgressDisplay(silent=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.getbasetemp()) / "model"


class Recorded:
    """A workload that records which task gets which batch."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = lengths
        self.bare: list[Batch] = []
        self.whole: list[Batch] = []

    def batches(self, group: Sequence[int], size: int) -> list[Batch]:
        return sorted_batches([[number] for number in group], self.lengths, size)

    def tasks(self, batch: Batch) -> tuple[Task, Task]:
        return lambda: self.bare.append(batch), lambda: self.whole.append(batch)


@given(st.lists(st.integers(0, 100)))
def test_sentences_are_grouped_by_length(lengths: list[int]) -> None:
    groups = group_by_length(lengths)
    assert sorted(n for group in groups for n in group) == [n for n, i in enumerate(lengths) if i]
    bounds = [(1, 10), (11, 20), (21, 40), (41, 80), (81, 100)]
    for group, (low, high) in zip(groups, bounds, strict=True):
        assert all(low <= lengths[number] <= high for number in group)


@pytest.mark.parametrize("sentences", [1, 8, 1000])
def test_bare_encoder_and_whole_model_get_the_same_batches(
    sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "peak_memory_of", lambda work: work())
    lengths = [1 + number % 90 for number in range(300)]
    workload = Recorded(lengths)
    timing = Timing(sentences=sentences, batch=4, rounds=2)
    costs = costs_by_length(workload, timing, SILENT)
    peaks, timed = workload.whole[:5], workload.whole[5:]
    assert timed == workload.bare
    assert [max(lengths[n] for n in batch) for batch in peaks] == [10, 20, 40, 80, 90]
    assert [one.sentences for one in costs] == [40, 40, 70, 120, 30]
    assert [one.name for one in costs] == ["1–10", "11–20", "21–40", "41–80", "81+"]
    assert sum(one.timed for one in costs) == sum(map(len, timed)) / 2
    assert all(4 <= one.timed <= one.sentences for one in costs)
    if sentences == 1000:
        assert [one.timed for one in costs] == [one.sentences for one in costs]


def test_data_without_words_are_an_error() -> None:
    with pytest.raises(UsageError, match="no sentence with a word"):
        costs_by_length(Recorded([0, 0]), TIMING, SILENT)


def test_the_mean_over_lengths_is_weighted_by_the_data() -> None:
    short = Cost(name="1–10", sentences=30, timed=4, bare=1.0, whole=2.0, peak=None)
    long = Cost(name="81+", sentences=10, timed=4, bare=5.0, whole=6.0, peak=7)
    both = weighted_mean([short, long])
    assert (both.sentences, both.timed, both.peak) == (40, 8, 7)
    assert (both.bare, both.whole) == (2.0, 3.0)
    assert both.ratio == 1.5
    assert weighted_mean([short]).peak is None


def test_prediction_has_a_bare_and_a_whole_task(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognizer = Recognizer.from_pretrained(model)
    calls: list[str] = []
    for kind, name in ((Encoder, "forward"), (type(recognizer.detector), "detect")):
        real = getattr(kind, name)

        def noted(*given: object, name: str = name, real: Task = real, **more: object) -> object:
            calls.append(name)
            return real(*given, **more)

        monkeypatch.setattr(kind, name, noted)
    workload = PredictionWorkload(recognizer, documents(12, seed=5))
    batch = workload.batches(range(len(workload.lengths)), 4)[-1]
    bare, whole = workload.tasks(batch)
    bare()
    assert calls == ["forward"]
    whole()
    assert calls == ["forward", "forward", "detect"]


def test_predict_is_timed_on_whole_documents(model: Path) -> None:
    own = documents(30, seed=4)
    pace = predict_speed(Recognizer.from_pretrained(model), own, TIMING)
    assert pace.sentences >= 8
    counts = np.cumsum([len(document.sentences) for document in own])
    assert pace.sentences == counts[np.searchsorted(counts, 8)]
    assert pace.per_second > 0


@pytest.fixture(scope="module")
def step() -> TrainingWorkload:
    torch.manual_seed(0)
    recipe = RECIPE.changed(["training.warmup=0", "training.batch_sentences=4"])
    return TrainingWorkload(recipe, documents(24, seed=6))


def test_only_a_whole_step_changes_weights(step: TrainingWorkload) -> None:
    batches = step.batches(range(len(step.lengths)), 99)
    assert max(map(len, batches)) == 4
    modules = step.recognizer.modules()
    bare, whole = step.tasks(batches[1])
    before = {name: p.detach().clone() for name, p in modules.named_parameters()}
    bare()
    assert all(torch.equal(p, before[name]) for name, p in modules.named_parameters())
    assert all(p.grad is None for p in modules.parameters())
    first = sum(step.loss(batches[1]).sums.means().values())
    for _ in range(10):
        whole()
    assert sum(step.loss(batches[1]).sums.means().values()) < first
    assert all(p.grad is None for p in modules.parameters())


def test_submodules_take_no_longer_than_their_module(step: TrainingWorkload) -> None:
    seen = profile_training(step, 8)
    shares = {part.name: part.share for part in seen.modules}
    assert {"encoder", "detector"} <= shares.keys()
    assert 0.5 < shares["encoder"] + shares["detector"] <= 1.01
    for name, share in shares.items():
        parent = name.rpartition(".")[0]
        assert parent not in shares or share <= shares[parent]
    assert seen.forward > 0 < seen.backward
    assert not any(m._forward_hooks for m in step.recognizer.modules().modules())


def test_stored_bytes_exclude_weights() -> None:
    linear, given = nn.Linear(4, 3), torch.ones(5, 4)
    assert stored_bytes(linear, lambda: linear(given)) == 5 * 4 * 4
    assert stored_bytes(linear, lambda: torch.exp(linear(given))) == 5 * 4 * 4 + 5 * 3 * 4


def test_the_detector_alone_is_timed_by_length(model: Path, step: TrainingWorkload) -> None:
    own, recognizer = documents(5, seed=7), Recognizer.from_pretrained(model)
    found = list(prediction_by_length(recognizer, own, [1, 40, 200], TIMING))
    assert [one.words for one in found] == [1, 40, 200]
    assert all(one.seconds > 0 and one.kept is None for one in found)
    timed = list(training_by_length(step.recognizer, own, [1, 40, 80], TIMING))
    assert [one.words for one in timed] == [1, 40, 80]
    assert all(one.seconds > 0 and one.kept for one in timed)


def test_lengths_are_numbers_of_words() -> None:
    assert parse_lengths("16, 64,256") == [16, 64, 256]
    for wrong in ("16,", "0", "-3", "many"):
        with pytest.raises(UsageError, match="expected numbers of words such as 16,64,256"):
            parse_lengths(wrong)


def test_peak_memory_is_measured_and_reset() -> None:
    size = 60_000_000
    peak = peak_memory_of(lambda: np.ones(size, dtype=np.int8))
    if peak is None:
        pytest.skip("the system does not report peak memory")
    reset_peak_memory()
    after = peak_memory()
    assert after is not None
    assert after < peak
    assert peak - after > 0.8 * size
