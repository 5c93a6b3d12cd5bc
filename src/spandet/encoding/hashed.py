"""Hashed features of words in tables that are trained from scratch; needs no vocabulary."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from spandet.encoding.inputs import FEATURES, HashedInput
from spandet.encoding.part_settings import HashedSettings
from spandet.encoding.parts import FormPart
from spandet.layers.dropout import Dropout


class Hashed(FormPart):
    """Words → vectors, from their hashed features."""

    def __init__(self, settings: HashedSettings) -> None:
        super().__init__()
        self.dim = settings.dim
        self.input = HashedInput(settings.rows)
        self._sums = settings.join == "sum"
        self.table = nn.Embedding(
            FEATURES * settings.rows, settings.dim if self._sums else settings.dim // FEATURES
        )
        # Small, because rows of features that do not occur in training keep these values.
        nn.init.normal_(self.table.weight, std=0.1)
        self.dropout = Dropout(settings.dropout)

    def forward(self, rows: Int[Tensor, "form feature"]) -> Float[Tensor, "form dim"]:
        """One vector per word."""
        vectors = self.table(rows)  # form feature dim
        joined: Tensor = vectors.sum(dim=1) if self._sums else vectors.flatten(1)
        return self.dropout(joined)  # type: ignore[no-any-return]
