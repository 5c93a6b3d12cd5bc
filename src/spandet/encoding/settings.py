"""The settings of an encoder, which are the table of its parts: a field for each part."""

from collections.abc import Iterable

from pydantic import model_validator

from spandet.config import Settings
from spandet.encoding.examples import Example
from spandet.encoding.part_settings import (
    CharacterSettings,
    FusionSettings,
    HashedSettings,
    PartSettings,
    TagSettings,
    TransformerSettings,
    WordVectorSettings,
)
from spandet.encoding.vocabulary import Counts, Vocabulary


class EncoderSettings(Settings):
    """The parts of an encoder and their fusion. A part without a section is switched off.

    Parts are built, initialised and concatenated in the order of the fields.
    """

    transformer: TransformerSettings | None = None
    """A pretrained transformer over sub-words."""
    hashed: HashedSettings | None = None
    """Hashed features of words; needs no pretrained weights."""
    characters: CharacterSettings | None = None
    """A recurrent network over each word's characters."""
    word_vectors: WordVectorSettings | None = None
    """Static word vectors from a file."""
    tags: TagSettings | None = None
    """Part-of-speech tags."""
    fusion: FusionSettings = FusionSettings()
    """How the vectors of the parts become one."""

    @property
    def parts(self) -> dict[str, PartSettings]:
        """The settings of the parts that are switched on, by name, in the order of the fields."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: own for name, own in values.items() if isinstance(own, PartSettings)}

    @model_validator(mode="after")
    def _has_a_part(self) -> "EncoderSettings":
        if not self.parts:
            names = [name for name in type(self).model_fields if name != "fusion"]
            raise ValueError(f"the encoder needs at least one part: {', '.join(names)}")
        return self

    @classmethod
    def small(cls) -> "EncoderSettings":
        """An encoder that needs no pretrained weights and trains in seconds."""
        return cls(
            hashed=HashedSettings(),
            characters=CharacterSettings(embedding_dim=24, dim=64),
            fusion=FusionSettings(dim=128),
        )

    def vocabulary_of(self, examples: Iterable[Example]) -> Vocabulary:
        """The names in the training data that the parts need."""
        counts, vocabulary = Counts.of(examples), Vocabulary()
        for part in self.parts.values():
            vocabulary = part.add_names(vocabulary, counts)
        return vocabulary
