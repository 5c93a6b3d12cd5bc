"""A second device for machines that have none: real numbers on the CPU that claim to be elsewhere.

Every operation of torch is seen on its way to the CPU. What is given on the pretended device is
computed, and the result is there too; where tensors of both devices meet, it fails, as a GPU would.
Only a copy from one to the other, and a CPU tensor without dimensions beside others, are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

PRETENDED = torch.device("meta")
"""The only device without a CPU's kernels that every build of torch knows."""
_COPIES = ("aten::_to_copy", "aten::copy_")


class DevicesMeetError(RuntimeError):
    """An operation was given tensors of two devices."""


class Elsewhere(Tensor):
    """A tensor that claims to be on the pretended device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        """Looks like what it holds."""
        made: Elsewhere = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=PRETENDED,
            requires_grad=held.requires_grad,
        )
        made.held = held
        return made

    def tolist(self) -> Any:
        """As a copy to the CPU would do."""
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Compute where the numbers are."""
        del types
        return _computed(func, args, dict(kwargs or {}))


class _Watching(TorchDispatchMode):
    """Makes new tensors where they are wanted: on the pretended device too."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        return _computed(func, args, dict(kwargs or {}))


class _Copying(TorchFunctionMode):
    """Copies what Python knows to the pretended device: torch would not say so in an operation."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        given = dict(kwargs or {})
        if func is Tensor.new_tensor:
            given.setdefault("device", args[0].device)
            given.setdefault("dtype", args[0].dtype)
            func, args = torch.tensor, args[1:]
        wanted = given.get("device")
        if func not in (torch.tensor, torch.as_tensor) or wanted is None:
            return func(*args, **given)
        if torch.device(wanted).type != PRETENDED.type or isinstance(args[0], Elsewhere):
            return func(*args, **given)
        return Elsewhere(func(*args, **given | {"device": "cpu"}))


@contextmanager
def pretended_device() -> Iterator[torch.device]:
    """Inside, there is a second device."""
    with _Copying(), _Watching():  # type: ignore[no-untyped-call]
        yield PRETENDED


def _computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in given if isinstance(tensor, Elsewhere)]
    here = [tensor for tensor in given if not isinstance(tensor, Elsewhere) and tensor.dim()]
    if there and here and func._schema.name not in _COPIES:
        shapes = [tuple(tensor.shape) for tensor in here]
        raise DevicesMeetError(f"{func} is given {shapes} on the CPU, and the rest elsewhere")
    wanted = kwargs.get("device")
    if wanted is not None:
        kwargs["device"] = torch.device("cpu")
    own_args, own_kwargs = tree_map(_held, (args, kwargs))
    result = func(*own_args, **own_kwargs)
    if func._schema.name[-1] == "_":  # in place
        return args[0]
    leaves = bool(there) if wanted is None else torch.device(wanted).type == PRETENDED.type
    return tree_map(_elsewhere, result) if leaves else result


def _held(value: Any) -> Any:
    return value.held if isinstance(value, Elsewhere) else value


def _elsewhere(value: Any) -> Any:
    return Elsewhere(value) if isinstance(value, Tensor) else value
