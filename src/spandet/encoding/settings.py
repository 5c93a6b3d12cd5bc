"""The settings of an encoder: a section for each of its parts."""

from pydantic import model_validator

from spandet.config import Settings
from spandet.encoding.characters import CharacterSettings
from spandet.encoding.fusion import FusionSettings
from spandet.encoding.hashed import HashedSettings
from spandet.encoding.tags import TagSettings
from spandet.encoding.transformer import TransformerSettings
from spandet.encoding.word_vectors import WordVectorSettings

_PARTS = ("transformer", "characters", "word_vectors", "tags", "hashed")


class EncoderSettings(Settings):
    """What word vectors are made of. A part without a section is switched off."""

    transformer: TransformerSettings | None = None
    """A pretrained transformer over sub-words."""
    characters: CharacterSettings | None = None
    """A recurrent net over each word's characters."""
    word_vectors: WordVectorSettings | None = None
    """Static word vectors from a file."""
    tags: TagSettings | None = None
    """Part-of-speech tags."""
    hashed: HashedSettings | None = None
    """Hashed looks of words; needs no pretrained weights."""
    fusion: FusionSettings = FusionSettings()
    """How the parts' vectors become one."""

    @model_validator(mode="after")
    def _has_a_part(self) -> "EncoderSettings":
        if all(getattr(self, part) is None for part in _PARTS):
            raise ValueError(f"the encoder needs at least one part: {', '.join(_PARTS)}")
        return self

    @classmethod
    def small(cls) -> "EncoderSettings":
        """An encoder that needs no pretrained weights and trains in seconds."""
        return cls(
            hashed=HashedSettings(),
            characters=CharacterSettings(embedding_dim=24, dim=64),
            fusion=FusionSettings(dim=128),
        )
