"""Parts of a model that can run outside of torch: methods that take and give nothing but tensors.

All around them stays as it is, so a model with exported parts is built, called, traced and decoded
by the same code as any other; only the methods themselves are answered by onnxruntime.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spandet.errors import MissingExtraError, UsageError

Fixed = tuple[int, ...]
Answer = Tensor | tuple[Tensor, ...]
_INPUT = "input_"


@dataclass(frozen=True)
class Part:
    """A method that takes tensors and gives a tensor or a tuple of some."""

    module: str = ""
    """The path of the module that has it."""
    method: str = "forward"
    fixed: Fixed = ()
    """First arguments that are no tensors: each of their values makes a part of its own."""

    @property
    def name(self) -> str:
        """Tells it from all other parts of a model."""
        return ".".join([self.module, self.method, *(str(int(value)) for value in self.fixed)])

    def at(self, module: str) -> "Part":
        """The same method of a module with this path."""
        return replace(self, module=module)


class Exportable(nn.Module, ABC):
    """A module that has parts. Nothing inside of it is a part by itself."""

    @abstractmethod
    def parts(self) -> Iterable[Part]:
        """Its methods that can be exported, without the module's path."""


_PLAIN = (nn.Linear, nn.Sequential)
"""Modules of torch that are parts where nothing around them is one."""


def parts_of(root: nn.Module) -> Iterator[Part]:
    """All parts of a model, none inside another."""
    for name, module in root.named_children():
        if isinstance(module, Exportable):
            yield from (part.at(name) for part in module.parts())
        elif isinstance(module, _PLAIN):
            yield Part(name)
        else:
            yield from (part.at(f"{name}.{part.module}") for part in parts_of(module))


class OnnxPart:
    """Answers a method by a graph. Any number of threads may call it at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._session = _session(path)
        names: list[str] = [each.name for each in self._session.get_inputs()]
        self._inputs = [(int(name.removeprefix(_INPUT)), name) for name in names]

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a graph that does not fit its inputs raises."""
        return _onnxruntime_errors()

    def __call__(self, *inputs: Tensor | None) -> Answer:
        """What the method would give; arguments that are None have no place in the graph."""
        given = [tensor for tensor in inputs if tensor is not None]
        feed = {name: given[i].detach().cpu().contiguous().numpy() for i, name in self._inputs}
        outputs = [torch.from_numpy(each) for each in self._session.run(None, feed)]
        moved = tuple(output.to(given[0].device) for output in outputs)
        return moved[0] if len(moved) == 1 else moved


def input_names(count: int) -> list[str]:
    """The names of a graph's inputs: their places survive if it has no use for some of them."""
    return [f"{_INPUT}{number}" for number in range(count)]


def _session(path: Path) -> Any:
    try:
        import onnxruntime  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(needs="a model with ONNX parts", extra="onnx") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they are raised as well
    # A model has many parts: the threads of those that are not at work must not wait busily.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except _onnxruntime_errors() as error:
        reason = str(error).strip().split("\n")[0]
        raise UsageError(f"{path} cannot be run by onnxruntime ({reason})") from None


def _onnxruntime_errors() -> tuple[type[Exception], ...]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: PLC0415 (an extra)

    return (
        state.Fail,
        state.InvalidProtobuf,
        state.InvalidGraph,
        state.NoSuchFile,
        state.RuntimeException,
    )


def owner_of(root: nn.Module, part: Part) -> nn.Module:
    """The module that has the part's method."""
    return root.get_submodule(part.module)


def method_of(root: nn.Module, part: Part) -> Callable[..., Any]:
    """The part's method as it is now."""
    method: Callable[..., Any] = getattr(owner_of(root, part), part.method)
    return method


def is_exported(module: nn.Module, method: str) -> bool:
    """Is a method of this module answered by something else?"""
    return method in vars(module)


class _Choice:
    """A method of which only some values of its fixed arguments are answered by something else."""

    def __init__(self, otherwise: Callable[..., Any], fixed: int) -> None:
        self.otherwise = otherwise
        self.fixed = fixed
        self.answers: dict[Fixed, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        answer = self.answers.get(arguments[: self.fixed])
        if answer is None:
            return self.otherwise(*arguments)
        return answer(*arguments[self.fixed :])


def answer_by(root: nn.Module, part: Part, answer: Callable[..., Any]) -> None:
    """From now on, let `answer` do what the part's method does; it gets the tensors alone."""
    owner = owner_of(root, part)
    if not part.fixed:
        vars(owner)[part.method] = answer
        return
    choice = vars(owner).setdefault(part.method, _Choice(method_of(root, part), len(part.fixed)))
    choice.answers[part.fixed] = answer


def answer_itself(root: nn.Module, parts: Iterable[Part]) -> None:
    """Let methods be what they are again."""
    for part in parts:
        vars(owner_of(root, part)).pop(part.method, None)


def without_weights(root: nn.Module, names: Iterable[str]) -> None:
    """Empty the parameters of these names: what used them runs elsewhere."""
    for name in names:
        path, _, own = name.rpartition(".")
        empty = nn.Parameter(torch.empty(0), requires_grad=False)
        setattr(root.get_submodule(path), own, empty)
