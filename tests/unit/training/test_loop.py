from __future__ import annotations

import json
import math
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from spandet.errors import TrainingError, TrainingInterrupted
from spandet.evaluation import evaluate
from spandet.training.checkpoint import CHECKPOINT, LossSums, read_checkpoint
from spandet.training.log import LOG
from support.training_toys import Toy, largest_difference


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / LOG).read_text().splitlines()]
    return [line for line in found if line["kind"] == kind]


def test_training_reduces_the_loss_and_learns_dev(tmp_path: Path) -> None:
    toy = Toy(tmp_path, sentences=60, dev=20, epochs=6, lr=0.1, encoder_lr=0.1)

    state = toy.run()

    first, last = state.history[0], state.history[-1]
    assert last.dev is not None
    assert last.dev.f1 > 0.95
    assert sum(last.losses.values()) < 0.1 * sum(first.losses.values())


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    runs = [Toy(tmp_path, dropout=0.3, seed=seed) for seed in (5, 5, 6)]
    for toy in runs:
        toy.run()

    assert largest_difference(runs[0].weights(), runs[1].weights()) == 0
    assert largest_difference(runs[0].weights(), runs[2].weights()) > 0


def test_the_loss_of_an_epoch_is_a_true_mean(tmp_path: Path) -> None:
    toy = Toy(tmp_path, sentences=10, epochs=1, lr=1e-30, encoder_lr=0, batch_sentences=3)
    alone = Toy(tmp_path, sentences=10, epochs=1, lr=1e-30, encoder_lr=0, batch_sentences=1)

    assert toy.run().history[0].losses == pytest.approx(alone.run().history[0].losses)


def test_batches_of_a_step_are_averaged(tmp_path: Path) -> None:
    """A step on two batches has the mean of their gradients."""
    toy = Toy(tmp_path, sentences=8, epochs=1, accumulation=2, clip=0)
    first, second = toy.plan()
    gradients = []

    def keep() -> float:
        gradients.append([p.grad.clone() for p in toy.encoder.parameters() if p.grad is not None])
        toy.engine._optimizer.zero_grad()
        return 0.0

    toy.engine.update = keep  # type: ignore[method-assign]
    for group in ([first], [second], [first, second]):
        toy.loop._step(group, at=0.0)
    toy.close()

    one, other, both = gradients
    for a, b, mean in zip(one, other, both, strict=True):
        assert torch.allclose((a + b) / 2, mean, atol=1e-7)


def test_a_step_is_a_group_of_batches(tmp_path: Path) -> None:
    toy = Toy(tmp_path, sentences=28, epochs=1, batch_sentences=4, accumulation=3)
    assert len(toy.plan()) == 7

    assert toy.run().step == 3  # the last one has only one batch


@pytest.mark.parametrize("at", [1, 4, 6, 9])
def test_a_resumed_run_equals_an_uninterrupted_run_exactly(tmp_path: Path, at: int) -> None:
    values: dict[str, Any] = {"dropout": 0.2, "frozen_epochs": 1, "log_steps": 2, "epochs": 2}
    whole = Toy(tmp_path, **values)
    whole.run()
    log = (tmp_path / LOG).read_text()
    broken = Toy(tmp_path, **values, checkpoint_minutes=0)
    stop_after(broken, steps=at)
    with pytest.raises(KeyError):
        broken.run()

    resumed = Toy(tmp_path, **values)
    saved = read_checkpoint(tmp_path / CHECKPOINT)
    tensors, state = saved.tensors, saved.state
    resumed.engine.learner.restore(tensors)
    resumed.loop.state = resumed.state = state
    resumed.run()

    assert state.step == whole.state.step == 12
    assert largest_difference(whole.weights(), resumed.weights()) == 0
    assert [r.losses for r in state.history] == [r.losses for r in whole.state.history]
    assert [r.dev for r in state.history] == [r.dev for r in whole.state.history]
    assert log.count("\n") == 8


def test_evaluation_on_dev_changes_only_the_log(tmp_path: Path) -> None:
    runs = []
    for every in (0, 2):
        (tmp_path / str(every)).mkdir()
        runs.append(Toy(tmp_path / str(every), dropout=0.2, evaluation_steps=every))
        runs[-1].run()

    assert largest_difference(runs[0].weights(), runs[1].weights()) == 0
    assert lines(tmp_path / "0", "evaluation") == []
    evaluations = lines(tmp_path / "2", "evaluation")
    assert [line["step"] for line in evaluations] == [2, 4, 8, 10]  # not where an epoch ends
    assert [line["sentences"] for line in evaluations] == [8, 16, 32, 40]
    assert all(0 <= line["dev"]["f1"] <= 1 for line in evaluations)


def stop_after(toy: Toy, *, steps: int) -> None:
    """Raise an exception in the middle of a step, like a crash."""
    update = toy.engine.update

    def crash() -> float:
        if toy.state.step == steps:
            raise KeyError
        return update()

    toy.engine.update = crash  # type: ignore[method-assign]


def test_a_frozen_transformer_is_not_changed_and_computed_once(tmp_path: Path) -> None:
    toy = Toy(tmp_path, sentences=24, epochs=3, frozen_epochs=3, dev=None, batch_sentences=4)
    before = toy.weights()

    toy.run()

    after = toy.weights()
    assert torch.equal(before["encoder.transformer.weight"], after["encoder.transformer.weight"])
    assert not torch.equal(before["encoder.rest.weight"], after["encoder.rest.weight"])
    assert toy.encoder.transformer_calls == 6  # 24 sentences by four, once for three epochs


def test_cached_outputs_give_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = Toy(tmp_path, encoder_lr=0, clip=0)
    cached.run()
    plain = Toy(tmp_path, encoder_lr=0, clip=0)
    monkeypatch.setattr(plain.loop, "_update_frozen_outputs", lambda: None)
    plain.run()

    assert plain.encoder.transformer_calls > cached.encoder.transformer_calls
    assert largest_difference(cached.weights(), plain.weights()) < 1e-6


def test_a_signal_while_outputs_are_cached_stops_the_run(tmp_path: Path) -> None:
    toy = Toy(tmp_path, frozen_epochs=1)
    toy.stop.signal = signal.SIGINT

    with pytest.raises(TrainingInterrupted, match=r"epoch 1 after step 0"):
        toy.run()
    assert toy.encoder.transformer_calls == 1


def test_the_transformer_is_trained_after_the_frozen_epochs(tmp_path: Path) -> None:
    toy = Toy(tmp_path, epochs=2, frozen_epochs=1)
    before = toy.weights()["encoder.transformer.weight"]

    toy.run()

    assert not torch.equal(before, toy.weights()["encoder.transformer.weight"])


def test_a_nan_loss_stops_the_run(tmp_path: Path) -> None:
    toy = Toy(tmp_path, checkpoint_minutes=0)
    stop_after(toy, steps=3)
    with pytest.raises(KeyError):
        toy.run()
    good = toy.weights()
    toy = Toy(tmp_path)
    toy.detector.broken = True

    with pytest.raises(
        TrainingError,
        match=r"epoch 1, step 1: the loss is not a finite number: found nan, nothing nan; the last "
        r"good state is in .*checkpoint\.safetensors",
    ):
        toy.run()

    saved = read_checkpoint(tmp_path / CHECKPOINT)
    tensors, state = saved.tensors, saved.state
    assert state.step == 3
    assert torch.equal(tensors["model/encoder.rest.weight"], good["encoder.rest.weight"])


def test_a_nan_gradient_changes_no_weights(tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    before = toy.weights()
    toy.encoder.rest.weight.register_hook(lambda gradient: gradient * math.inf)

    with pytest.raises(TrainingError, match=r"epoch 1, step 1: the gradient is not a finite num"):
        toy.run()

    assert largest_difference(before, toy.weights()) == 0


def test_after_a_signal_the_current_step_is_finished(tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    update = toy.engine.update

    def signalled() -> float:
        if toy.state.step == 3:
            toy.stop.signal = signal.SIGTERM
        return update()

    toy.engine.update = signalled  # type: ignore[method-assign]
    with pytest.raises(TrainingInterrupted, match=r"epoch 1 after step 5; .*--resume") as caught:
        toy.run()

    assert caught.value.signal == signal.SIGTERM
    saved = read_checkpoint(tmp_path / CHECKPOINT)
    tensors, state = saved.tensors, saved.state
    assert (state.epoch, state.position, state.step) == (0, 5, 5)
    assert torch.equal(tensors["model/encoder.rest.weight"], toy.encoder.rest.weight)


def test_after_a_signal_dev_is_not_evaluated(tmp_path: Path) -> None:
    toy = Toy(tmp_path, epochs=1)
    predict = toy.recognizer.predict

    def signalled(*arguments: Any, **named: Any) -> Any:
        toy.stop.signal = signal.SIGINT
        return predict(*arguments, **named)

    toy.recognizer.predict = signalled  # type: ignore[method-assign]
    with pytest.raises(TrainingInterrupted):
        toy.run()
    state = read_checkpoint(tmp_path / CHECKPOINT).state
    assert (state.epoch, state.position, state.history) == (0, 6, [])

    again = Toy(tmp_path, epochs=1)
    again.loop.state = again.state = state
    assert len(again.run().history) == 1
    assert state.step == 6


def test_the_best_epoch_is_kept_and_patience_stops_the_run(tmp_path: Path) -> None:
    toy = Toy(tmp_path, epochs=9, patience=2)
    scores = iter([0.1, 0.5, 0.4, 0.5, 0.9])
    score_of = toy.loop._score

    def score() -> Any:
        found = score_of()
        assert found is not None
        f1 = next(scores)
        return found.model_copy(update={"f1": f1, "threshold": f1 / 2, "f1_untuned": 1 - f1})

    toy.loop._score = score  # type: ignore[method-assign]
    state = toy.run()

    assert [record.dev.f1 for record in state.history if record.dev] == [0.1, 0.5, 0.4, 0.5]
    assert state.best == 2
    assert toy.recognizer.saves == 2
    assert toy.recognizer.decoding.threshold == 0.25  # of the best epoch, as it was saved


def test_a_model_with_low_scores_is_evaluated_at_its_tuned_threshold(tmp_path: Path) -> None:
    """Correct entities with low scores count, as in prediction with the tuned threshold."""
    toy = Toy(tmp_path, sentences=60, dev=20, epochs=1, lr=0.1, encoder_lr=0.1)
    toy.loop._untuned = 0.999
    scored = toy.run().history[0].dev

    assert scored is not None
    assert scored.f1_untuned < 0.1 < scored.f1
    dev = toy.loop.dev or ()
    used = evaluate(dev, toy.recognizer.predict(dev), resamples=0).micro
    assert (used.precision, used.recall, used.f1) == (scored.precision, scored.recall, scored.f1)


def test_an_untuned_threshold_is_not_changed(tmp_path: Path) -> None:
    toy = Toy(tmp_path, epochs=1, tune=False)
    toy.recognizer.decoding = toy.recognizer.decoding.model_copy(update={"threshold": 0.25})
    toy.loop._untuned = 0.25
    scored = toy.run().history[0].dev
    assert scored is not None
    assert scored.f1 == scored.f1_untuned
    assert toy.recognizer.decoding.threshold == scored.threshold == 0.25


def test_without_dev_the_last_epoch_is_kept(tmp_path: Path) -> None:
    toy = Toy(tmp_path, dev=None, epochs=3, patience=1)
    state = toy.run()

    assert (state.best, toy.recognizer.saves) == (3, 3)
    assert [record.dev for record in state.history] == [None] * 3


def test_the_log_has_all_events(tmp_path: Path) -> None:
    toy = Toy(tmp_path, sentences=24, epochs=2, batch_sentences=4, log_steps=4)
    toy.run()

    steps, epochs = lines(tmp_path, "step"), lines(tmp_path, "epoch")
    assert [line["step"] for line in steps] == [4, 8, 12]
    assert [line["step"] for line in epochs] == [6, 12]
    assert steps[0].keys() == {
        "kind",
        "step",
        "epoch",
        "learning_rates",
        "losses",
        "sentences_per_second",
        "seconds",
    }
    assert steps[0]["losses"].keys() == {"found", "nothing"}
    assert epochs[1]["dev"].keys() == {"precision", "recall", "f1", "threshold", "f1_untuned"}


def test_sums_give_means() -> None:
    sums = LossSums()
    sums.add(LossSums(totals={"a": 3.0, "b": 0.0}, counts={"a": 1.0, "b": 0.0}))
    sums.add(LossSums(totals={"a": 1.0, "b": 0.0}, counts={"a": 3.0, "b": 0.0}))

    assert sums.means() == {"a": 1.0, "b": 0.0}
    assert str(sums) == "a 1, b 0"
