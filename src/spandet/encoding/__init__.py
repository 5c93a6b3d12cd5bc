"""Word vectors from text: a transformer, characters, word vectors, tags, hashed features."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spandet.encoding.examples import Example, examples_of
from spandet.encoding.settings import EncoderSettings
from spandet.encoding.vocabulary import Vocabulary

if TYPE_CHECKING:
    from spandet.encoding.encoder import Encoder, EncoderBatch

__all__ = ["Encoder", "EncoderBatch", "EncoderSettings", "Example", "Vocabulary", "examples_of"]


def __getattr__(name: str) -> Any:
    """Load the encoder, and torch with it, when it is first used."""
    if name not in ("Encoder", "EncoderBatch"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.encoder"), name)
