"""The encoder: sentences in, one vector per word out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spandet.encoding.examples import Example
from spandet.encoding.fusion import Fusion
from spandet.encoding.parts import EncoderPart, FormPart, WordPart
from spandet.encoding.pieces import PieceBatch
from spandet.encoding.preparation import TRANSFORMER, VOCABULARY, Preparation, read_vocabulary
from spandet.encoding.settings import EncoderSettings
from spandet.encoding.transformer import Contextual, Transformer
from spandet.encoding.vocabulary import Vocabulary
from spandet.layers.layout import Sequences
from spandet.tensors import WordFeatures, to_device, to_tensors


@dataclass(frozen=True)
class EncoderBatch:
    """Sentences as tensors. Items are the words of all sentences, one sentence after another."""

    mask: Bool[Tensor, "batch word"]
    places: Int[Tensor, " item"]
    """The position of each item in the flattened mask."""
    forms: Int[Tensor, " item"]
    """The number of each item among the distinct words of the batch."""
    parts: Mapping[str, Any]
    """The input of each part, by name."""
    sequences: Sequences | None = None
    cached: Float[Tensor, "cached_row dim"] | None = None
    """Outputs of `Encoder.transformer_words` for these sentences; used instead of `pieces`."""

    @property
    def pieces(self) -> PieceBatch | None:
        """The input of the transformer, if there is one."""
        return self.parts.get(TRANSFORMER)

    @property
    def cached_rows(self) -> list[int]:
        """Rows of `cached` per sentence: one for the sentence, then one for each word."""
        return [1 + length for length in self.mask.sum(dim=1).tolist()]

    def to(self, device: torch.device | str) -> "EncoderBatch":
        """Copy the batch to a device."""
        return to_device(self, device)


class Encoder(nn.Module):
    """The parts that the settings switch on, and their fusion to one vector per word."""

    transformer: Transformer | None

    def __init__(
        self, settings: EncoderSettings, vocabulary: Vocabulary, parts: Mapping[str, EncoderPart]
    ) -> None:
        super().__init__()
        self.settings = settings
        self.vocabulary = vocabulary
        self._part_names = tuple(parts)
        self.register_module(TRANSFORMER, None)
        for name, part in parts.items():
            self.register_module(name, part)
        self.sentence_dim = self.transformer.dim if self.transformer else 0
        self.fusion = Fusion(
            settings.fusion,
            transformer_dim=self.sentence_dim,
            other_dim=sum(part.dim for part in parts.values()) - self.sentence_dim,
        )
        self.dim = self.fusion.dim

    @classmethod
    def build(cls, settings: EncoderSettings, vocabulary: Vocabulary) -> "Encoder":
        """Build a new encoder for training, with pretrained weights where a part has any.

        All other weights are drawn from torch's global generator.
        """
        parts: dict[str, EncoderPart] = {}
        for name, own in settings.parts.items():
            parts[name] = own.new_part(vocabulary)
            vocabulary = parts[name].update(vocabulary)
        return cls(settings, vocabulary, parts)

    def save_files(self, folder: Path) -> None:
        """Write everything that `from_files` needs, without the weights."""
        (folder / VOCABULARY).write_text(self.vocabulary.to_json(), encoding="utf-8")
        for name, part in self.parts.items():
            part.save_files(folder / name)

    @classmethod
    def from_files(cls, settings: EncoderSettings, folder: Path) -> "Encoder":
        """Build the encoder that `save_files` wrote; its weights are loaded afterwards.

        Raises:
            UsageError: there is no encoder in the folder.
            FormatError: its files are damaged.
        """
        vocabulary = read_vocabulary(folder)
        parts = {
            name: own.saved_part(vocabulary, folder / name) for name, own in settings.parts.items()
        }
        return cls(settings, vocabulary, parts)

    @property
    def parts(self) -> dict[str, FormPart | WordPart]:
        """The parts by name, in the order of the settings."""
        modules = {name: self.get_submodule(name) for name in self._part_names}
        return {n: part for n, part in modules.items() if isinstance(part, FormPart | WordPart)}

    @property
    def context_words(self) -> int:
        """Maximum number of context words on each side that `prepare` can use."""
        return self.preparation.context_words

    @property
    def neighbour_sentences(self) -> int:
        """Number of sentences of context on each side; 0: context is not counted in sentences."""
        return self.preparation.neighbour_sentences

    @property
    def passage_words(self) -> int:
        """Maximum words of a passage, whose sentences are encoded together; 0: no passages."""
        return self.preparation.passage_words

    @property
    def needs_tags(self) -> bool:
        """Whether a part needs part-of-speech tags."""
        return self.preparation.needs_tags

    def pretrained_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The transformer's parameters, by their names in this module."""
        if self.transformer is not None:
            yield from self.transformer.named_parameters(prefix=TRANSFORMER)

    @property
    def preparation(self) -> Preparation:
        """Converts sentences to NumPy arrays."""
        inputs = {name: part.input for name, part in self.parts.items()}
        return Preparation(self.settings, self.vocabulary, inputs)

    def with_pieces(self, examples: Sequence[Example]) -> Sequence[Example]:
        """The examples with their sub-word pieces, which `sizes` and `prepare` use."""
        return self.preparation.with_pieces(examples)

    def sizes(self, examples: Sequence[Example]) -> list[int]:
        """The cost of each example: its pieces with context, or words without a transformer."""
        return self.preparation.sizes(examples)

    def together(self, examples: Sequence[Example]) -> list[list[int]]:
        """The numbers of examples that are encoded as one, and cost as much as one of them."""
        return self.preparation.together(examples)

    def prepare(self, examples: Sequence[Example]) -> EncoderBatch:
        """Convert sentences to tensors, on the CPU."""
        arrays = self.preparation.prepare(examples)
        return EncoderBatch(**to_tensors(vars(arrays)))

    def forward(self, batch: EncoderBatch) -> WordFeatures:
        """Compute one vector per word; padding is zero."""
        contextual = self._contextual(batch)
        words = None if contextual is None else contextual.words
        vectors = self.fusion(words, self._other_vectors(batch), batch.sequences)
        rows, width = batch.mask.shape
        features = vectors.new_zeros(rows * width, self.dim).index_copy(0, batch.places, vectors)
        return WordFeatures(
            features.view(rows, width, self.dim),
            batch.mask,
            None if contextual is None else contextual.sentences,
        )

    @torch.no_grad()
    def transformer_words(self, batch: EncoderBatch) -> Float[Tensor, "cached_row dim"]:
        """The transformer's outputs without dropout: see `EncoderBatch.cached` and `cached_rows`.

        While the transformer is frozen, they can be computed once and used in every epoch.
        """
        assert self.transformer is not None  # noqa: S101 (callers have a transformer)
        was_training = self.transformer.training
        self.transformer.eval()
        outputs: Contextual = self.transformer(batch.pieces)
        self.transformer.train(was_training)
        count = len(outputs.sentences) + len(outputs.words)
        rows = outputs.words.new_empty(count, self.transformer.dim)
        sentences, words = _cached_places(batch)
        rows[sentences], rows[words] = outputs.sentences, outputs.words
        return rows

    def _contextual(self, batch: EncoderBatch) -> Contextual | None:
        if batch.cached is not None:
            sentences, words = _cached_places(batch)
            return Contextual(batch.cached[words], batch.cached[sentences])
        if self.transformer is None:
            return None
        outputs: Contextual = self.transformer(batch.pieces)
        return outputs

    def _other_vectors(self, batch: EncoderBatch) -> list[Float[Tensor, "item _"]]:
        """The word vectors of all parts but the transformer."""
        others = {name: part for name, part in self.parts.items() if name != TRANSFORMER}
        return [
            part(batch.parts[name])[batch.forms]
            if isinstance(part, FormPart)
            else part(batch.parts[name])
            for name, part in others.items()
        ]


def _cached_places(batch: EncoderBatch) -> tuple[Int[Tensor, " batch"], Int[Tensor, " item"]]:
    """The rows of `cached` that hold sentences, and those that hold words."""
    lengths = batch.mask.sum(dim=1)
    numbers = torch.arange(len(lengths), device=lengths.device)
    heads = lengths.cumsum(0) - lengths + numbers
    owner = numbers.repeat_interleave(lengths)
    return heads, torch.arange(len(owner), device=owner.device) + owner + 1
