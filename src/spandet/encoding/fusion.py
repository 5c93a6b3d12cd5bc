"""Fusion of the vectors of all parts to one vector per word."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spandet.encoding.part_settings import FusionSettings
from spandet.errors import ConfigError
from spandet.layers.choices import Cell
from spandet.layers.layout import Sequences
from spandet.layers.recurrent import BiRNN

_CELLS: dict[str, Cell] = {"bilstm": "lstm", "bigru": "gru"}
_DEFAULT_DIM = 128


class Fusion(nn.Module):
    """The vectors of all parts → one vector per word."""

    def __init__(self, settings: FusionSettings, *, transformer_dim: int, other_dim: int) -> None:
        super().__init__()
        self._bypass = settings.bypass
        arriving = transformer_dim + other_dim
        if settings.bypass and (settings.kind == "none" or not transformer_dim or not other_dim):
            raise ConfigError(
                "[encoder.fusion] bypass: needs a transformer, another part and a recurrent kind"
            )
        if settings.kind == "none":
            self.net = None
            self.dim = settings.dim or arriving
        else:
            self.dim = settings.dim or transformer_dim or _DEFAULT_DIM
            self.net = _net(settings, other_dim if settings.bypass else arriving, self.dim)
            arriving = self.net.dim + (transformer_dim if settings.bypass else 0)
        maps = settings.bypass or arriving != self.dim or (settings.kind == "none" and settings.dim)
        self.project = nn.Linear(arriving, self.dim) if maps else None
        self.norm = nn.LayerNorm(self.dim) if settings.norm else None

    def forward(
        self,
        transformer: Float[Tensor, "item a"] | None,
        others: list[Float[Tensor, "item _"]],
        sequences: Sequences | None,
    ) -> Float[Tensor, "item dim"]:
        """Compute one vector per word (Proposer and Regressor, eqs. 1 and 4).

        The parts are concatenated in another order than in eq. 1, which only permutes weights.
        """
        own = [] if transformer is None else [transformer]
        if self.net is None:
            joined = torch.cat([*own, *others], dim=-1)
        elif self._bypass:
            joined = torch.cat([*own, self.net(torch.cat(others, dim=-1), sequences)], dim=-1)
        else:
            joined = self.net(torch.cat([*own, *others], dim=-1), sequences)
        fused = joined if self.project is None else self.project(joined)
        return fused if self.norm is None else self.norm(fused)


def _net(settings: FusionSettings, input_dim: int, dim: int) -> BiRNN:
    output_dim = settings.recurrent_dim or dim
    if output_dim % 2:
        raise ConfigError(
            f"[encoder.fusion] dim: both directions need the same size, got {output_dim}"
        )
    return BiRNN(
        cell=_CELLS[settings.kind],
        input_dim=input_dim,
        dim=output_dim,
        layers=settings.layers,
        dropout=settings.dropout,
    )
