"""Where to compute."""

from __future__ import annotations

import torch

from spandet.errors import UsageError


def device_of(name: str | torch.device | None) -> torch.device:
    """The device of this name; "auto" is the best that there is, None the processor.

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
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
