"""Graphs with weights of eight bits."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPERATORS = ["MatMul", "Gemm"]


def quantize(source: Path, target: Path) -> None:
    """Write a graph whose products with weights are computed in eight bits.

    Weights are of seven bits per channel, since processors without special instructions overflow
    with eight; activations are quantised as they come.
    """
    import onnx  # noqa: PLC0415 (an extra)
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 (an extra)

    model = onnx.load(source)
    # The optimiser turns weights around and leaves notes of their old shapes.
    del model.graph.value_info[:]
    with _quiet():
        quantize_dynamic(
            model,
            target,
            op_types_to_quantize=_OPERATORS,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """It advises all models to be prepared in a way that changes nothing here."""
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
