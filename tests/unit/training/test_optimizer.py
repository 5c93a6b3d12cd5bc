from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from spandet.training.optimizer import (
    build_optimizer,
    restore,
    set_learning_rates,
    share_of_peak,
    state_of,
)
from spandet.training.recipe import TrainingSettings


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pretrained = nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4))
        self.head = nn.Linear(4, 2)
        self.still = nn.Parameter(torch.ones(2, 2), requires_grad=False)


def names(model: nn.Module) -> dict[nn.Parameter, str]:
    return {parameter: name for name, parameter in model.named_parameters()}


def test_groups_by_origin_and_decay() -> None:
    model = Model()
    settings = TrainingSettings(lr=0.5, encoder_lr=0.25, weight_decay=0.1)
    optimizer = build_optimizer(model, model.pretrained.parameters(), settings)
    of = names(model)
    groups = {
        (group["peak_lr"], group["weight_decay"]): {of[p] for p in group["params"]}
        for group in optimizer.param_groups
    }

    assert groups == {
        (0.25, 0.1): {"pretrained.0.weight"},
        (0.25, 0.0): {"pretrained.1.weight", "pretrained.1.bias"},
        (0.5, 0.1): {"head.weight"},
        (0.5, 0.0): {"head.bias"},
    }


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("linear", [0.0, 0.5, 1.0, 0.5, 0.0]),
        ("cosine", [0.0, 0.5, 1.0, 0.5, 0.0]),
        ("constant", [0.0, 0.5, 1.0, 1.0, 1.0]),
    ],
)
def test_schedules(schedule: str, expected: list[float]) -> None:
    settings = TrainingSettings.build({"schedule": schedule, "warmup": 0.2}, where="training")

    shares = [share_of_peak(done, settings) for done in (0.0, 0.1, 0.2, 0.6, 1.0)]

    assert shares == pytest.approx(expected)


@given(
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(["linear", "cosine", "constant"]),
)
def test_the_share_of_the_peak_rate_is_between_0_and_1(
    done: float, warmup: float, schedule: str
) -> None:
    settings = TrainingSettings.build({"schedule": schedule, "warmup": warmup}, where="training")

    assert -1e-9 <= share_of_peak(done, settings) <= 1 + 1e-9


def test_the_transformer_warms_up_after_the_frozen_epochs() -> None:
    model = Model()
    settings = TrainingSettings(
        epochs=4, frozen_epochs=2, warmup=0.5, lr=1.0, encoder_lr=1.0, schedule="constant"
    )
    optimizer = build_optimizer(model, model.pretrained.parameters(), settings)

    def rates(at: float) -> dict[bool, float]:
        set_learning_rates(optimizer, settings, at)
        return {group["pretrained"]: group["lr"] for group in optimizer.param_groups}

    assert rates(1.0) == {True: 0.0, False: 0.5}
    assert rates(2.5) == {True: 0.5, False: 1.0}
    assert rates(3.5) == {True: 1.0, False: 1.0}


def test_parameters_without_gradient_have_no_state() -> None:
    model = Model()
    settings = TrainingSettings()
    optimizer = build_optimizer(model, (), settings)
    model.head(torch.ones(1, 4)).sum().backward()
    optimizer.step()

    state = state_of(optimizer, names(model))

    assert {key.split("/")[0] for key in state} == {"head.weight", "head.bias"}


def test_without_bias_correction_adamw_equals_a_plain_loop() -> None:
    settings = TrainingSettings(
        lr=0.1, encoder_lr=0.05, epochs=1, schedule="constant", warmup=0, bias_correction=False
    )
    torch.manual_seed(0)
    model = Model().double()
    optimizer = build_optimizer(model, model.pretrained.parameters(), settings)
    set_learning_rates(optimizer, settings, at=0)
    rows = [(p, group) for group in optimizer.param_groups for p in group["params"]]
    values = [p.detach().clone() for p, _ in rows]
    means = [torch.zeros_like(value) for value in values]
    squares = [torch.zeros_like(value) for value in values]
    for step in range(6):
        optimizer.zero_grad()
        model.head(model.pretrained(torch.tensor([step % 5]))).square().sum().backward()
        for i, (parameter, group) in enumerate(rows):
            g, (beta1, beta2) = parameter.grad, settings.betas
            means[i] = beta1 * means[i] + (1 - beta1) * g
            squares[i] = beta2 * squares[i] + (1 - beta2) * g * g
            change = means[i] / (squares[i].sqrt() + settings.eps)
            values[i] = values[i] - group["lr"] * (change + group["weight_decay"] * values[i])
        optimizer.step()
        for value, (parameter, _) in zip(values, rows, strict=True):
            torch.testing.assert_close(parameter.detach(), value, rtol=1e-12, atol=1e-12)


def test_frozen_epochs_may_be_a_stage_with_a_schedule_of_its_own() -> None:
    model = Model()
    settings = TrainingSettings(
        epochs=10, frozen_epochs=4, warmup=0.25, lr=1.0, encoder_lr=0.5, first_stage_scale=2.0
    )
    optimizer = build_optimizer(model, model.pretrained.parameters(), settings)

    def triangle(done: float, *, scale: float) -> float:
        return done / 0.25 if done < 0.25 else scale * (1 - done) / 0.75

    for at in (0, 0.5, 0.99, 1, 2, 3.9, 4, 5, 5.5, 7, 10):
        set_learning_rates(optimizer, settings, at)
        rates = {group["pretrained"]: group["lr"] for group in optimizer.param_groups}
        second = triangle((at - 4) / 6, scale=1) if at >= 4 else 0.0
        first = triangle(at / 4, scale=2) if at < 4 else second
        assert rates == pytest.approx({True: 0.5 * second, False: first}), at


@pytest.mark.parametrize("bias_correction", [True, False])
def test_a_restored_optimizer_continues_identically(bias_correction: bool) -> None:
    def learn(model: Model, optimizer: torch.optim.Optimizer, steps: range) -> None:
        for step in steps:
            set_learning_rates(optimizer, settings, at=step / 10)
            optimizer.zero_grad()
            indices = torch.tensor([step % 5])
            model.head(model.pretrained(indices)).square().sum().backward()
            optimizer.step()

    settings = TrainingSettings(lr=0.1, encoder_lr=0.1, epochs=1, bias_correction=bias_correction)
    torch.manual_seed(0)
    model = Model()
    optimizer = build_optimizer(model, model.pretrained.parameters(), settings)
    learn(model, optimizer, range(5))
    twin = Model()
    twin.load_state_dict(model.state_dict())
    other = build_optimizer(twin, twin.pretrained.parameters(), settings)
    kept = {key: value.clone() for key, value in state_of(optimizer, names(model)).items()}
    restore(other, kept, names(twin))
    learn(model, optimizer, range(5, 10))
    learn(twin, other, range(5, 10))

    for name, value in model.state_dict().items():
        assert torch.equal(value, twin.state_dict()[name]), name
