"""Text to one vector per word: pieces, characters, word vectors, tags, hashed looks, fusion."""

from spandet.encoding.batch import EncoderBatch
from spandet.encoding.encoder import Encoder
from spandet.encoding.examples import Example, examples_of
from spandet.encoding.settings import EncoderSettings
from spandet.encoding.vocabulary import Vocabulary

__all__ = ["Encoder", "EncoderBatch", "EncoderSettings", "Example", "Vocabulary", "examples_of"]
