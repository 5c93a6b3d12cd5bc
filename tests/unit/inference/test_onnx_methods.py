"""Methods of models that ONNX graphs compute: finding, flattening, recording and replacing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from spandet.inference import onnx_methods
from spandet.inference.flattening import (
    RESULT,
    Arguments,
    classes_of,
    flatten,
    is_structure,
    rebuild,
    tensor_paths,
)
from spandet.inference.onnx_methods import empty_weights, exported_modules, find_graph, methods_of
from spandet.layers.layout import Sequences
from spandet.layers.recurrent import BiRNN
from spandet.layers.sequences import packed, padded
from spandet.layers.span_scorer import SpanScorer
from spandet.onnx_export.recording import Calls, _recording
from spandet.tensors import WordFeatures


@dataclass(frozen=True)
class Inner:
    first: Tensor
    width: int | None


@dataclass(frozen=True)
class Outer:
    inners: tuple[Inner, ...]
    mask: Tensor
    extra: Tensor | None = None


class Levels(nn.Module):
    """A module whose method takes a number, and a dataclass."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))

    def at(self, number: int, items: Inner, *, twice: bool = False) -> Outer:
        mapped: Tensor = self.maps[number](items.first)
        return Outer((Inner(2 * mapped if twice else mapped, items.width),), items.first)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"levels": Levels()})
        self.head = nn.Sequential(nn.Linear(2, 3), nn.GELU())
        self.norm = nn.LayerNorm(3)

    def forward(self, items: Tensor) -> Tensor:
        for number in range(2):
            outer = self.levels.at(number, Inner(items, 7))
            items = outer.inners[0].first
        result: Tensor = self.norm(self.head(items))
        return result

    @property
    def levels(self) -> Levels:
        levels = self.inner["levels"]
        assert isinstance(levels, Levels)
        return levels


class FakeGraph:
    """A replacement for a session: each output is ten times an input."""

    def __init__(self, path: Path, inputs: tuple[str, ...] | None) -> None:
        del path, inputs

    def __call__(self, tensors: Mapping[str, Tensor]) -> list[Tensor]:
        return [10 * tensor for tensor in tensors.values()]


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {**onnx_methods.METHODS, Levels: ("at",)}
    monkeypatch.setattr(onnx_methods, "METHODS", rows)
    monkeypatch.setattr(onnx_methods, "Graph", FakeGraph)


def nested() -> Outer:
    return Outer((Inner(torch.ones(2), 3), Inner(torch.zeros(1), None)), torch.tensor([True]))


def test_a_nested_value_survives_flattening_and_json() -> None:
    value = nested()
    flat = flatten(value, RESULT)
    assert list(flat.tensors) == [
        "result.inners.0.first",
        "result.inners.1.first",
        "result.mask",
    ]
    assert list(tensor_paths(flat.structure)) == list(flat.tensors)
    classes = {"Inner": Inner, "Outer": Outer}
    structure = json.loads(json.dumps(flat.structure))
    assert is_structure(structure, classes)
    made = rebuild(structure, flat.tensors, classes)
    assert made.inners[0].first is value.inners[0].first
    assert [inner.width for inner in made.inners] == [3, None]
    assert made.mask is value.mask
    assert made.extra is None


def test_a_result_that_is_an_argument_is_no_output() -> None:
    mask = torch.tensor([True])
    flat = flatten(Outer((), mask), RESULT, {"words.mask": mask})
    assert flat.tensors == {}
    assert rebuild(flat.structure, {"words.mask": mask}, {"Outer": Outer}).mask is mask


def test_packed_sequences_are_flattened_as_a_grid() -> None:
    lengths = [3, 1, 2]
    made = rebuild(
        flatten(packed(lengths), "s").structure,
        flatten(packed(lengths), "s").tensors,
        {"Sequences": Sequences},
    )
    assert made.batch_sizes is None
    assert torch.equal(made.take, padded(lengths).take)


def test_unsupported_values_are_errors() -> None:
    with pytest.raises(TypeError, match=r"result\.1 is a set, expected tensors and constants"):
        flatten((1, {2}), RESULT)


@pytest.mark.parametrize(
    "structure",
    [
        None,
        "tensor",
        {},
        {"class": "Elsewhere", "fields": {}},
        {"class": "Inner", "fields": {"first": {"tensor": "result"}}},
        {"class": "Inner", "fields": []},
        [{"tensor": "result"}, 3],
        {"tensor": "a", "input": "b"},
    ],
)
def test_invalid_structures_are_detected(structure: object) -> None:
    assert not is_structure(structure, {"Inner": Inner})


def test_the_classes_of_a_method_are_those_of_its_annotations() -> None:
    assert classes_of(Levels().at) == {"Inner": Inner, "Outer": Outer}
    scorer = SpanScorer(dim=4, inner=2, dropout=0.0)
    assert set(classes_of(scorer.forward)) == {"WordFeatures", "ProposalScores"}


def test_every_method_in_the_table_exists_and_has_known_classes() -> None:
    for module, methods in onnx_methods.METHODS.items():
        for name in methods:
            classes_of(getattr(module, name))


def test_whole_numbers_and_booleans_are_fixed_arguments() -> None:
    arguments = Arguments.of(signature(Levels().at), 1, Inner(torch.ones(2), 7))
    assert arguments.fixed == (1, 0)
    assert list(arguments.tensors) == ["items.first"]


def test_modules_inside_an_exported_module_are_not_exported() -> None:
    found = {path: methods_of(module) for path, module in exported_modules(Model())}
    assert found == {"inner.levels": ("at",), "head": ("forward",)}


def test_calls_are_recorded_for_each_fixed_argument_and_then_no_more() -> None:
    model, items = Model(), torch.randn(4, 2)
    expected = model(items)
    recorded: dict[tuple[str, str], dict[tuple[int, ...], Calls]] = {}
    with _recording(model, recorded):
        assert torch.equal(model(items), expected)
    model(items)
    names = [calls.method.name for own in recorded.values() for calls in own.values()]
    assert names == ["inner.levels.at.0.0", "inner.levels.at.1.0", "head.forward"]
    first = recorded["inner.levels", "at"][0, 0]
    assert len(first.calls) == 1
    assert first.calls[0].inputs["items.first"] is items
    assert first.calls[0].result.structure["fields"]["mask"] == {"input": "items.first"}


def test_a_graph_computes_its_fixed_arguments_and_torch_the_others() -> None:
    model, items = Model(), torch.randn(4, 2)
    expected = model.levels.at(0, Inner(items, 7))
    result = {
        "class": "Outer",
        "fields": {
            "inners": [
                {"class": "Inner", "fields": {"first": {"tensor": "a"}, "width": {"value": 5}}}
            ],
            "mask": {"input": "items.first"},
            "extra": {"value": None},
        },
    }
    graph = find_graph(model, "inner.levels.at.1.0", result)
    assert graph is not None
    graph.load(model, Path("none"))
    made = model.levels.at(1, Inner(items, 7))
    assert torch.equal(made.inners[0].first, 10 * items)
    assert made.inners[0].width == 5
    assert made.mask is items
    for other in (model.levels.at(0, Inner(items, 7)), model.levels.at(0, items=Inner(items, 7))):
        assert torch.equal(other.inners[0].first, expected.inners[0].first)
    twice = model.levels.at(1, Inner(items, 7), twice=True).inners[0].first
    assert not torch.equal(twice, 10 * items)


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("elsewhere.forward", {"tensor": "result"}),
        ("head.backward", {"tensor": "result"}),
        ("head.forward.x", {"tensor": "result"}),
        ("head.0.forward", {"tensor": "result"}),
        ("head.forward", {"class": "Outer", "fields": {}}),
        ("inner.levels.at.0", None),
    ],
)
def test_a_graph_that_does_not_fit_the_model_is_not_found(name: str, result: object) -> None:
    assert find_graph(Model(), name, result) is None


def test_graphs_of_version_1_get_their_old_inputs() -> None:
    root = nn.ModuleDict({"head": nn.Linear(2, 2)})
    root["net"] = recurrent = BiRNN(cell="gru", input_dim=2, dim=4)
    root["scorer"] = scores = SpanScorer(dim=4, inner=2, dropout=0.0)
    old = {name: find_graph(root, name, None) for name in ("head.forward", "net.on_grid")}
    assert [each and each.method.name for each in old.values()] == ["head.forward", "net.run"]
    net = old["net.on_grid"]
    assert net is not None
    arguments = Arguments.of(signature(recurrent.run), torch.ones(3, 2), padded([3]))
    assert net.inputs is not None
    assert set(net.inputs) < set(arguments.tensors)
    scorer = find_graph(root, "scorer.score", None)
    assert scorer is not None
    assert is_structure(scorer.result, classes_of(scores.forward))
    words = WordFeatures(torch.ones(1, 2, 4), torch.ones(1, 2, dtype=torch.bool))
    assert list(flatten(words, "words").tensors) == list(scorer.inputs or ())
    assert find_graph(root, "net.sideways", None) is None


def test_weights_in_graphs_are_empty_and_cannot_be_used() -> None:
    model = Model()
    empty_weights(model, ["head.0.weight"])
    assert model.state_dict()["head.0.weight"].numel() == 0
    with pytest.raises(RuntimeError):
        model(torch.randn(4, 2))
