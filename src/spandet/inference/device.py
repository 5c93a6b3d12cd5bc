"""Device and precision of prediction and training."""

from __future__ import annotations

from typing import Literal, cast

import torch

from spandet.errors import ConfigError, UsageError

Precision = Literal["fp32", "bf16", "fp16"]
"""Arithmetic of the forward pass."""


def device_of(name: str | torch.device | None) -> torch.device:
    """The device of this name; "auto" is a GPU if there is one, None is the CPU.

    Raises:
        UsageError: there is no such device on this machine.
    """
    if name == "auto":
        return torch.device(_best())
    try:
        device = torch.device("cpu" if name is None else name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).split("\n")[0]
        raise UsageError(f"cannot compute on the device {str(name)!r}: {reason}") from None
    return device


def _best() -> str:
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found.type if found else "cpu"


def precision_of(wanted: str, *, where: str, bf16_on_cpu: bool = False) -> Precision:
    """The precision for the best device; "auto" is half precision if the hardware supports it.

    Args:
        wanted: "auto", "fp32", "bf16" or "fp16".
        where: Section of the setting, for the error message.
        bf16_on_cpu: Whether "auto" may be bf16 on a CPU with instructions for it.

    Raises:
        ConfigError: the device cannot compute in this precision.
    """
    device = device_of("auto").type
    if wanted == "fp16" and device == "cpu":
        raise ConfigError(f"[{where}] precision: fp16 needs a GPU, and there is none; try auto")
    if wanted != "auto":
        return cast("Precision", wanted)
    if device == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if device == "cpu" and bf16_on_cpu and _has_bf16_instructions() else "fp32"


def _has_bf16_instructions() -> bool:
    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))
