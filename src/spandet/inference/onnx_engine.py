"""The computation of a prediction with ONNX Runtime: one graph for the whole model, no torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from spandet.config import DetectorSettings, Settings
from spandet.encoding.examples import Example
from spandet.encoding.preparation import Preparation
from spandet.errors import MissingExtraError, UsageError
from spandet.inference.batching import batches
from spandet.inference.candidates import Candidates
from spandet.layers.layout import Sequences, padded_layout
from spandet.spans.choices import MAX_EXPORTED_WORDS

GRAPH = "model.onnx"
"""The graph of a whole model in its folder."""
OUTPUTS = ("spans", "label_probs", "mask")
"""The outputs of the graph: the fields of `Candidates`."""
_ENCODER, _DETECTOR = "encoder", "detector"


def has_graph(folder: Path) -> bool:
    """Whether a model has a graph, and onnxruntime is installed."""
    return (folder / GRAPH).exists() and find_spec("onnxruntime") is not None


@dataclass(frozen=True)
class GraphInputs:
    """Makes the inputs of the graph of a model."""

    preparation: Preparation
    detector: Settings

    def of(self, examples: Sequence[Example]) -> dict[str, np.ndarray]:
        """The inputs of one batch by name: fields of `Prepared`, and those of the detector."""
        arrays = dict(_flat(vars(self.preparation.prepare(examples)), _ENCODER))
        if isinstance(self.detector, DetectorSettings):
            own = self.detector.graph_inputs([len(example.words) for example in examples])
            arrays |= {f"{_DETECTOR}.{name}": array for name, array in own.items()}
        return arrays


def _flat(value: Any, path: str) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays in a mapping or dataclass, by path; sequences are laid out as padded grids."""
    if isinstance(value, Sequences) and value.batch_sizes is not None:
        value = padded_layout(value.lengths.tolist())
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(item, f"{path}.{name}")
    elif is_dataclass(value):
        for field in fields(value):
            yield from _flat(getattr(value, field.name), f"{path}.{field.name}")


class OnnxEngine:
    """The graph of a whole model. `predict` uses `prepare`, `batches` and `candidates` only."""

    def __init__(
        self, folder: Path, preparation: Preparation, detector: Settings, *, labels: int
    ) -> None:
        """Load the graph of a model.

        Args:
            folder: The folder of the model.
            preparation: Converts sentences to arrays.
            detector: The settings of the detector.
            labels: Number of labels, "no entity" included.

        Raises:
            UsageError: the graph is damaged.
            MissingExtraError: onnxruntime is not installed.
        """
        self.folder = folder
        self.preparation = preparation
        self._inputs = GraphInputs(preparation, detector)
        self._labels = labels
        self._session = session(folder / GRAPH)
        self._names = [each.name for each in self._session.get_inputs()]

    def prepare(self, examples: Sequence[Example]) -> Sequence[Example]:
        """The examples with their sub-word pieces."""
        return self.preparation.with_pieces(examples)

    def batches(self, examples: Sequence[Example], pieces: int) -> Iterable[tuple[int, ...]]:
        """The numbers of prepared examples in batches of up to so many pieces."""
        words, own = [len(example.words) for example in examples], self.preparation
        return batches(own.together(examples), own.sizes(examples), words, pieces)

    def candidates(self, examples: Sequence[Example]) -> Candidates:
        """The scored spans of one batch.

        Raises:
            UsageError: a sentence is too long for the graph.
        """
        longest = max((len(example.words) for example in examples), default=0)
        if longest > MAX_EXPORTED_WORDS:
            raise UsageError(
                f"a sentence of {longest} words is too long for the ONNX graph of a model, which "
                f'takes at most {MAX_EXPORTED_WORDS}: load the model with engine="torch"'
            )
        count = len(examples)
        if not longest:
            return Candidates(
                np.zeros((count, 0, 2), np.int64),
                np.zeros((count, 0, self._labels), np.float32),
                np.zeros((count, 0), np.bool_),
            )
        arrays = self._inputs.of(examples)
        outputs = self._session.run(OUTPUTS, {name: arrays[name] for name in self._names})
        return Candidates(*outputs)


def session(path: Path, threads: int = 1) -> Any:
    """Load a graph for the CPU. Any number of threads may run it at once.

    Raises:
        UsageError: the graph is damaged.
        MissingExtraError: onnxruntime is not installed.
    """
    try:
        import onnxruntime  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(needs="a model with ONNX graphs", extra="onnx") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they are raised as well
    # A model may have many graphs: the threads of idle ones must not wait in busy loops.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except onnxruntime_errors() as error:
        reason = str(error).strip().split("\n")[0]
        raise UsageError(f"{path} cannot be run by onnxruntime ({reason})") from None


def onnxruntime_errors() -> tuple[type[Exception], ...]:
    """The exceptions of onnxruntime for damaged graphs, and for inputs that do not fit a graph."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: PLC0415 (an extra)

    return (
        state.Fail,
        state.InvalidArgument,
        state.InvalidProtobuf,
        state.InvalidGraph,
        state.NoSuchFile,
        state.RuntimeException,
    )
