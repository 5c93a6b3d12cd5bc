"""Arguments and results of model methods as named tensors, and back.

A graph takes and returns tensors; methods of models take and return dataclasses of tensors, tuples,
numbers and None. `flatten` names every tensor by its path ("words.mask") and describes the rest as
a structure that JSON can hold; `rebuild` makes the same objects from structure and tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from torch import Tensor

from spandet.layers.layout import Sequences
from spandet.layers.sequences import on_grid

Structure = Any
"""{"tensor": path}, {"input": path} for a result that is an argument, {"value": constant},
{"class": name, "fields": {field: structure}}, or a list of structures for a tuple."""
Classes = Mapping[str, type]
RESULT = "result"
"""The path of a method's result."""
_CONSTANTS = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Flat:
    """Tensors by path, and the structure that contains them."""

    tensors: dict[str, Tensor]
    structure: Structure


def flatten(value: object, path: str, inputs: Mapping[str, Tensor] | None = None) -> Flat:
    """Name the tensors in a value.

    Args:
        value: A tensor, a constant, or a tuple or dataclass of such.
        path: The name of the value itself.
        inputs: Tensors that need no copy: where the value holds one, only its path is noted.

    Raises:
        TypeError: the value holds something else.
    """
    known = {id(tensor): name for name, tensor in (inputs or {}).items()}
    tensors: dict[str, Tensor] = {}

    def walk(value: object, path: str) -> Structure:
        if isinstance(value, Tensor):
            if id(value) in known:
                return {"input": known[id(value)]}
            tensors[path] = value
            return {"tensor": path}
        if isinstance(value, _CONSTANTS):
            return {"value": value}
        if isinstance(value, tuple):
            return [walk(item, f"{path}.{number}") for number, item in enumerate(value)]
        if isinstance(value, Sequences):
            value = on_grid(value)  # packed sequences have sizes that a graph cannot leave open
        if is_dataclass(value) and not isinstance(value, type):
            own = {f.name: walk(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value)}
            return {"class": type(value).__name__, "fields": own}
        raise TypeError(f"{path} is a {type(value).__name__}, expected tensors and constants")

    structure = walk(value, path)
    return Flat(tensors, structure)


def rebuild(structure: Structure, tensors: Mapping[str, Tensor], classes: Classes) -> Any:
    """Make the value that `flatten` described.

    Args:
        structure: From `flatten`.
        tensors: By path, those of the inputs included.
        classes: The dataclasses by name, from `classes_of`.
    """
    if isinstance(structure, list):
        return tuple(rebuild(item, tensors, classes) for item in structure)
    if "value" in structure:
        return structure["value"]
    if "class" in structure:
        own = structure["fields"].items()
        made = {name: rebuild(field, tensors, classes) for name, field in own}
        return classes[structure["class"]](**made)
    return tensors[structure["tensor"] if "tensor" in structure else structure["input"]]


def is_structure(structure: Structure, classes: Classes) -> bool:
    """Whether `rebuild` can use this value, which was read from a file."""
    if isinstance(structure, list):
        return all(is_structure(item, classes) for item in structure)
    if not isinstance(structure, dict):
        return False
    if structure.keys() == {"class", "fields"}:
        made, own = classes.get(structure["class"]), structure["fields"]
        return (
            made is not None
            and isinstance(own, dict)
            and own.keys() == {field.name for field in fields(made)}
            and all(is_structure(field, classes) for field in own.values())
        )
    return len(structure) == 1 and not structure.keys().isdisjoint(("tensor", "input", "value"))


def tensor_paths(structure: Structure) -> Iterator[str]:
    """The paths of the tensors in a structure, in the order of `flatten`; inputs are left out."""
    if isinstance(structure, list):
        for item in structure:
            yield from tensor_paths(item)
    elif "fields" in structure:
        yield from tensor_paths(list(structure["fields"].values()))
    elif "tensor" in structure:
        yield structure["tensor"]


def classes_of(method: Callable[..., Any]) -> Classes:
    """The dataclasses in the annotations of a method, nested ones included, by name."""
    found: dict[str, type] = {}

    def walk(annotation: Any) -> None:
        for inner in get_args(annotation):
            walk(inner)
        if is_dataclass(annotation) and isinstance(annotation, type):
            found[annotation.__name__] = annotation
            for field in get_type_hints(annotation).values():
                walk(field)

    for annotation in get_type_hints(method).values():
        walk(annotation)
    return found


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call, flat."""

    tensors: dict[str, Tensor]
    structure: dict[str, Structure]
    """The structure of each argument, by parameter name."""
    fixed: tuple[int, ...]
    """Arguments that are whole numbers or booleans: each combination has a graph of its own."""

    @classmethod
    def of(cls, signature: inspect.Signature, *args: object, **kwargs: object) -> Arguments:
        """Flatten the arguments of a call of a method with this signature."""
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        flat = {name: flatten(value, name) for name, value in bound.arguments.items()}
        return cls(
            {path: tensor for each in flat.values() for path, tensor in each.tensors.items()},
            {name: each.structure for name, each in flat.items()},
            tuple(int(value) for value in bound.arguments.values() if isinstance(value, int)),
        )
