"""Selection of device and precision, for prediction and training."""

from __future__ import annotations

import pytest
import torch

from spandet.errors import ConfigError
from spandet.inference.device import device_of, precision_of
from spandet.training.step import build_accelerator


@pytest.mark.parametrize("where", ["training", "pretraining"])
def test_fp16_needs_a_gpu(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spandet.inference.device._best", lambda: "cpu")
    with pytest.raises(ConfigError, match=rf"^\[{where}\] precision: fp16 needs a GPU"):
        precision_of("fp16", where=where)


@pytest.mark.parametrize("instructions", [{}, {"avx512_bf16": True}, {"amx_bf16": True}])
def test_auto_on_a_cpu(instructions: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Half precision only if it is allowed and fast."""
    monkeypatch.setattr("spandet.inference.device._best", lambda: "cpu")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: instructions)

    assert precision_of("auto", where="x") == "fp32"
    wanted = "bf16" if instructions else "fp32"
    assert precision_of("auto", where="x", bf16_on_cpu=True) == wanted


@pytest.mark.parametrize("bf16_on_cpu", [False, True])
def test_auto_on_a_gpu(bf16_on_cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for device, supported, wanted in (
        ("cuda", True, "bf16"),
        ("cuda", False, "fp16"),
        ("mps", True, "fp32"),
    ):
        monkeypatch.setattr("spandet.inference.device._best", lambda device=device: device)
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported", lambda supported=supported, **_: supported
        )
        assert precision_of("auto", where="x", bf16_on_cpu=bf16_on_cpu) == wanted
        assert precision_of("fp16", where="x") == "fp16"


def test_training_and_auto_prediction_use_the_same_device() -> None:
    for precision, name in (("fp32", "no"), ("bf16", "bf16")):
        accelerator = build_accelerator(precision)  # type: ignore[arg-type]
        assert accelerator.device.type == device_of("auto").type
        assert accelerator.mixed_precision == name
