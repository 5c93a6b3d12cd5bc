"""Part-of-speech tags as vectors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from spandet.encoding.examples import Example
from spandet.encoding.parts import PartSettings, WordPart
from spandet.encoding.vocabulary import Counts, Vocabulary, frequent
from spandet.layers.dropout import Dropout

_UNKNOWN = 0


class TagSettings(PartSettings):
    """An embedding of the part-of-speech tags that come with the words."""

    dim: int = Field(default=25, ge=1)
    """Size of a tag's vector."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout on the tags' vectors."""
    min_count: int = Field(default=2, ge=1)
    """Less frequent tags of the training data are unknown, so that the vector of unknown tags is
    trained."""
    tagger: Literal["none", "penn", "universal"] = "none"
    """Tags that spaCy gives to sentences of the training and dev data without tags: those of the
    Penn Treebank, universal ones, or none."""

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        """Add the frequent tags."""
        return replace(vocabulary, tags=frequent(counts.tags, self.min_count))

    def new_part(self, vocabulary: Vocabulary) -> "Tags":
        """An embedding of the known tags."""
        return Tags(self, vocabulary.tags)


class Tags(WordPart):
    """Tags → vectors. The words of a sentence without tags have the unknown tag."""

    needs_tags = True

    def __init__(self, settings: TagSettings, tags: Sequence[str]) -> None:
        super().__init__()
        self.dim = settings.dim
        self._ids: dict[str | None, int] = {tag: number for number, tag in enumerate(tags, start=1)}
        self.embedding = nn.Embedding(1 + len(tags), settings.dim)
        self.dropout = Dropout(settings.dropout)

    def prepare(self, examples: Sequence[Example]) -> Int[Tensor, " item"]:
        """The ids of the tags of all words, one sentence after another."""
        ids = [
            self._ids.get(tag, _UNKNOWN)
            for example in examples
            for tag in example.tags or [None] * len(example.words)
        ]
        return torch.tensor(ids, dtype=torch.long)

    def forward(self, ids: Int[Tensor, " item"]) -> Float[Tensor, "item dim"]:
        """One vector per word."""
        vectors: Tensor = self.dropout(self.embedding(ids))
        return vectors
