"""A simulated second device: tensors on the CPU that report another device.

Every torch operation is intercepted. Operations on tensors of the simulated device are computed on
the CPU, and their results are on the simulated device; operations on tensors of both devices fail,
as with a GPU. Only copies between devices, and CPU tensors without dimensions, are allowed.
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
"""The only device besides the CPU that every build of torch has."""
_COPIES = ("aten::_to_copy", "aten::copy_")


class DevicesMeetError(RuntimeError):
    """An operation on tensors of two devices."""


class Elsewhere(Tensor):
    """A tensor that reports the simulated device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        """Wrap a CPU tensor, with its shape and type."""
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
        """The values, like those of a copy on the CPU."""
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Compute on the CPU."""
        del types
        return _computed(func, args, dict(kwargs or {}))


class _DispatchMode(TorchDispatchMode):
    """Creates new tensors on the requested device, including the simulated one."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        return _computed(func, args, dict(kwargs or {}))


class _FunctionMode(TorchFunctionMode):
    """Creates tensors from Python values on the simulated device, which is no torch operation."""

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
    """Simulate a second device inside the block."""
    with _FunctionMode(), _DispatchMode():  # type: ignore[no-untyped-call]
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
