"""Word vectors from text: a transformer, characters, word vectors, tags, hashed features."""

from spandet.encoding.encoder import Encoder, EncoderBatch
from spandet.encoding.examples import Example, examples_of
from spandet.encoding.settings import EncoderSettings
from spandet.encoding.vocabulary import Vocabulary

__all__ = ["Encoder", "EncoderBatch", "EncoderSettings", "Example", "Vocabulary", "examples_of"]
