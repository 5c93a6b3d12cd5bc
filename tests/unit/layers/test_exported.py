"""Parts of models, and what answers for them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn

from spandet.layers.exported import (
    Exportable,
    Part,
    answer_by,
    answer_itself,
    is_exported,
    method_of,
    parts_of,
    without_weights,
)


class Leveled(Exportable):
    """A module whose method has a fixed argument."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))

    def parts(self) -> Iterable[Part]:
        return [Part(method="at", fixed=(number,)) for number in range(2)]

    def at(self, number: int, items: Tensor) -> Tensor:
        mapped: Tensor = self.maps[number](items)
        return mapped


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"leveled": Leveled()})
        self.head = nn.Sequential(nn.Linear(2, 3), nn.GELU())
        self.norm = nn.LayerNorm(3)

    def forward(self, items: Tensor) -> Tensor:
        leveled = self.inner["leveled"]
        assert isinstance(leveled, Leveled)
        result: Tensor = self.norm(self.head(leveled.at(1, leveled.at(0, items))))
        return result


def test_no_part_lies_inside_another() -> None:
    names = [part.name for part in parts_of(Model())]
    assert names == ["inner.leveled.at.0", "inner.leveled.at.1", "head.forward"]


def test_somebody_else_answers_until_it_answers_itself() -> None:
    model, items = Model(), torch.randn(4, 2)
    expected = model(items)
    parts = list(parts_of(model))
    asked: list[str] = []
    methods = [method_of(model, part) for part in parts]
    for part, own in zip(parts, methods, strict=True):

        def answer(*inputs: Tensor, part: Part = part, own: object = own) -> Tensor:
            asked.append(part.name)
            assert callable(own)
            result: Tensor = own(*part.fixed, *inputs)
            return result

        answer_by(model, part, answer)
    assert torch.equal(model(items), expected)
    assert asked == [part.name for part in parts]
    assert is_exported(model.head, "forward")
    answer_itself(model, parts)
    assert torch.equal(model(items), expected)
    assert len(asked) == len(parts)
    assert not is_exported(model.head, "forward")


def test_a_fixed_argument_without_an_answer_is_left_to_torch() -> None:
    model, items = Model(), torch.randn(4, 2)
    leveled = model.inner["leveled"]
    assert isinstance(leveled, Leveled)
    expected = leveled.at(0, items)
    answer_by(model, Part("inner.leveled", "at", (1,)), lambda items: items * 0)
    assert torch.equal(leveled.at(0, items), expected)
    assert torch.equal(leveled.at(1, items), torch.zeros(4, 2))


def test_weights_that_are_gone_are_empty_and_cannot_be_used() -> None:
    model = Model()
    without_weights(model, ["head.0.weight"])
    assert model.state_dict()["head.0.weight"].numel() == 0
    with pytest.raises(RuntimeError):
        model(torch.randn(4, 2))
