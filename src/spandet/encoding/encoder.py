"""The encoder: sentences in, one vector per word out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from spandet.encoding.batch import EncoderBatch
from spandet.encoding.characters import Characters
from spandet.encoding.examples import Example, together
from spandet.encoding.fusion import Fusion
from spandet.encoding.hashed import Hashed
from spandet.encoding.settings import EncoderSettings
from spandet.encoding.tags import Tags
from spandet.encoding.transformer import Contextual, Pretrained
from spandet.encoding.vocabulary import Vocabulary
from spandet.encoding.word_vectors import WordVectors, load_vectors
from spandet.errors import FormatError, UsageError
from spandet.layers.sequences import padded
from spandet.tensors import WordFeatures

_VOCABULARY, _TRANSFORMER = "vocabulary.json", "transformer"


class Encoder(nn.Module):
    """Reads sentences with all the parts that its settings switch on."""

    def __init__(
        self, settings: EncoderSettings, vocabulary: Vocabulary, pretrained: Pretrained | None
    ) -> None:
        super().__init__()
        self.settings = settings
        self.vocabulary = vocabulary
        self._pretrained = pretrained
        self.transformer = pretrained.transformer if pretrained else None
        self.hashed = Hashed(settings.hashed) if settings.hashed else None
        self.characters = (
            Characters(settings.characters, vocabulary.characters) if settings.characters else None
        )
        self.word_vectors = (
            WordVectors(settings.word_vectors, vocabulary.words, vocabulary.vector_dim)
            if settings.word_vectors
            else None
        )
        self.tags = Tags(settings.tags, vocabulary.tags) if settings.tags else None
        others = (self.hashed, self.characters, self.word_vectors, self.tags)
        self.sentence_dim = self.transformer.dim if self.transformer else 0
        self.fusion = Fusion(
            settings.fusion,
            transformer_dim=self.sentence_dim,
            other_dim=sum(part.dim for part in others if part is not None),
        )
        self.dim = self.fusion.dim

    @classmethod
    def build(cls, settings: EncoderSettings, vocabulary: Vocabulary) -> "Encoder":
        """A fresh encoder for training, with pretrained weights where a part has them.

        Everything else starts from torch's own generator: seed it for runs that can be repeated.
        """
        vectors = None
        if settings.word_vectors:
            vectors = load_vectors(settings.word_vectors, vocabulary.words)
            dim = vectors.table.shape[1]
            vocabulary = replace(vocabulary, words=vectors.words, vector_dim=dim)
        pretrained = None
        if settings.transformer:
            from spandet.encoding.pretrained import fetch  # noqa: PLC0415 (slow to import)

            pretrained = fetch(settings.transformer)
        encoder = cls(settings, vocabulary, pretrained)
        if encoder.word_vectors and vectors:
            encoder.word_vectors.fill(vectors)
        return encoder

    def save_files(self, folder: Path) -> None:
        """Keep all that `from_files` needs to make the same encoder, apart from its weights."""
        (folder / _VOCABULARY).write_text(self.vocabulary.to_json(), encoding="utf-8")
        if self._pretrained:
            self._pretrained.save_files(folder / _TRANSFORMER)

    @classmethod
    def from_files(cls, settings: EncoderSettings, folder: Path) -> "Encoder":
        """The encoder that `save_files` kept; its weights are still to be loaded.

        Raises:
            UsageError: there is no encoder in the folder.
            FormatError: its files are damaged.
        """
        path = folder / _VOCABULARY
        try:
            vocabulary = Vocabulary.from_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise FormatError("not a vocabulary (not UTF-8 text)", str(path)) from None
        except FormatError as error:
            raise error.at(str(path)) from None
        pretrained = None
        if settings.transformer:
            from spandet.encoding.pretrained import from_files  # noqa: PLC0415 (slow to import)

            pretrained = from_files(settings.transformer, folder / _TRANSFORMER)
        return cls(settings, vocabulary, pretrained)

    @property
    def context_words(self) -> int:
        """How many words of context on each side `prepare` can use."""
        if self._pretrained and self.neighbour_sentences:
            return self._pretrained.pieces.capacity
        return self.settings.transformer.context if self.settings.transformer else 0

    @property
    def neighbour_sentences(self) -> bool:
        """Does context end with the sentences next to the one that is read?"""
        return bool(self.settings.transformer and self.settings.transformer.neighbour_sentences)

    @property
    def passage_words(self) -> int:
        """Most words of a passage whose sentences are read together; 0: there are none."""
        return self.settings.transformer.passage if self.settings.transformer else 0

    @property
    def needs_tags(self) -> bool:
        """Does it read part-of-speech tags?"""
        return self.tags is not None

    def pretrained_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The transformer's parameters, by the names that they have in this module."""
        if self.transformer is not None:
            yield from self.transformer.named_parameters(prefix="transformer")

    def sizes(self, examples: Sequence[Example]) -> list[int]:
        """What each example costs: its pieces with context, or words without a transformer."""
        if self._pretrained:
            return self._pretrained.pieces.sizes(examples)
        return [len(example.words) for example in examples]

    def together(self, examples: Sequence[Example]) -> list[list[int]]:
        """The numbers of examples that are read as one, and cost what one of them costs."""
        if self.passage_words:
            return together(examples)
        return [[number] for number in range(len(examples))]

    def prepare(self, examples: Sequence[Example]) -> EncoderBatch:
        """Text to tensors, on the CPU."""
        lengths = [len(example.words) for example in examples]
        words = list(chain.from_iterable(example.words for example in examples))
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        forms = list(numbers)
        mask = np.arange(max(lengths, default=0)) < np.array(lengths, dtype=np.int64)[:, None]
        return EncoderBatch(
            mask=torch.from_numpy(mask),
            places=torch.from_numpy(np.flatnonzero(mask)),
            forms=torch.tensor([numbers[word] for word in words], dtype=torch.long),
            pieces=self._pretrained.pieces.prepare(examples) if self._pretrained else None,
            hashed=self.hashed.prepare(forms) if self.hashed else None,
            characters=self.characters.prepare(forms) if self.characters else None,
            vectors=self.word_vectors.prepare(forms) if self.word_vectors else None,
            tags=self.tags.prepare(examples) if self.tags else None,
            sequences=padded(lengths) if self.fusion.net else None,
        )

    def forward(self, batch: EncoderBatch) -> WordFeatures:
        """One vector per word, zero where there is none."""
        contextual = self._contextual(batch)
        words = None if contextual is None else contextual.words
        vectors = self.fusion(words, self._others(batch), batch.sequences)
        rows, width = batch.mask.shape
        features = vectors.new_zeros(rows * width, self.dim).index_copy(0, batch.places, vectors)
        return WordFeatures(
            features.view(rows, width, self.dim),
            batch.mask,
            None if contextual is None else contextual.sentences,
        )

    @torch.no_grad()
    def transformer_words(self, batch: EncoderBatch) -> Float[Tensor, "cached_row dim"]:
        """What the transformer says without dropout: see `EncoderBatch.cached` and `cached_rows`.

        While the transformer does not learn, this can be computed once and used in every epoch.
        """
        assert self.transformer is not None  # noqa: S101 (nobody else has anything to cache)
        was_training = self.transformer.training
        self.transformer.eval()
        said: Contextual = self.transformer(batch.pieces)
        self.transformer.train(was_training)
        rows = said.words.new_empty(len(said.sentences) + len(said.words), self.transformer.dim)
        heads, words = _cached_places(batch)
        rows[heads], rows[words] = said.sentences, said.words
        return rows

    def _contextual(self, batch: EncoderBatch) -> Contextual | None:
        if batch.cached is not None:
            heads, words = _cached_places(batch)
            return Contextual(batch.cached[words], batch.cached[heads])
        if self.transformer is None:
            return None
        said: Contextual = self.transformer(batch.pieces)
        return said

    def _others(self, batch: EncoderBatch) -> list[Float[Tensor, "item _"]]:
        """The vectors of the parts that see only the word itself, or its tag."""
        parts = (
            (self.hashed, batch.hashed),
            (self.characters, batch.characters),
            (self.word_vectors, batch.vectors),
        )
        vectors = [part(prepared)[batch.forms] for part, prepared in parts if part is not None]
        return [*vectors, self.tags(batch.tags)] if self.tags is not None else vectors


def _cached_places(batch: EncoderBatch) -> tuple[Int[Tensor, " batch"], Int[Tensor, " item"]]:
    """The rows of `cached` that hold sentences, and those that hold words."""
    lengths = batch.mask.sum(dim=1)
    numbers = torch.arange(len(lengths), device=lengths.device)
    heads = lengths.cumsum(0) - lengths + numbers
    owner = numbers.repeat_interleave(lengths)
    return heads, torch.arange(len(owner), device=owner.device) + owner + 1
