"""The two-layer network that the papers call "MLP"."""

from torch import nn


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    """Linear → GELU → Linear, half as wide in the middle."""
    middle = max(inputs // 2, 1)
    return nn.Sequential(nn.Linear(inputs, middle), nn.GELU(), nn.Linear(middle, outputs))
