"""Part-of-speech tags as vectors."""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor, nn

from spandet.encoding.inputs import TagInput
from spandet.encoding.part_settings import TagSettings
from spandet.encoding.parts import WordPart
from spandet.layers.dropout import Dropout


class Tags(WordPart):
    """Tags → vectors. The words of a sentence without tags have the unknown tag."""

    def __init__(self, settings: TagSettings, tags: Sequence[str]) -> None:
        super().__init__()
        self.dim = settings.dim
        self.input = TagInput(tags)
        self.embedding = nn.Embedding(1 + len(tags), settings.dim)
        self.dropout = Dropout(settings.dropout)

    def forward(self, ids: Int[Tensor, " item"]) -> Float[Tensor, "item dim"]:
        """One vector per word."""
        vectors: Tensor = self.dropout(self.embedding(ids))
        return vectors
