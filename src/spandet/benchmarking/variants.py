"""Variants of a trained model with other settings; they share all weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike

from spandet.config import override
from spandet.encoding import Encoder, EncoderSettings, Example
from spandet.errors import UsageError
from spandet.inference.engine import TorchEngine
from spandet.inference.model_names import find_model
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.tensors import WordFeatures

Encoded = dict[tuple[int, tuple[Example, ...]], WordFeatures]
"""Cached word vectors, by encoder and batch."""


class CachingEngine(TorchEngine):
    """An engine that keeps the word vectors of every batch."""

    encoded: Encoded

    def encode(self, examples: Sequence[Example]) -> WordFeatures:
        """The word vectors of one batch, computed or from the cache."""
        key = id(self.encoder), tuple(examples)
        if key not in self.encoded:
            self.encoded[key] = super().encode(examples)
        return self.encoded[key]


class Variant(Recognizer):
    """A recognizer that shares a cache of word vectors with other variants."""

    def __init__(
        self, settings: ModelSettings, encoder: Encoder, labels: tuple[str, ...], encoded: Encoded
    ) -> None:
        super().__init__(settings, encoder, labels)
        self._engine = CachingEngine(self.encoder, self.detector, device=self.device)
        self._engine.encoded = encoded

    @property
    def engine(self) -> TorchEngine:
        """What computes candidates, with the cache."""
        return self._engine

    def find(self, examples: Sequence[Example]) -> None:
        """Run everything from word vectors to entities, and discard the entities."""
        for _ in self.entities(self.engine.candidates(examples), self.decoding):
            pass


class SweptModel:
    """A trained model whose variants share all weights and the cache of word vectors."""

    def __init__(self, name: str | PathLike[str]) -> None:
        self.folder = find_model(name)
        self.base = Recognizer.from_pretrained(self.folder)
        self.encoded: Encoded = {}
        self._variants: dict[str, Variant] = {}
        self._encoders = {self.base.settings.encoder.model_dump_json(): self.base.encoder}

    def variant(self, assignments: Iterable[str]) -> Variant:
        """The model with these settings; the same object for the same settings.

        Raises:
            ConfigError: a setting does not exist, or its value is invalid.
            UsageError: the weights do not fit the settings.
        """
        given = list(assignments)
        values = self.base.settings.model_dump(mode="json")
        settings = ModelSettings.resolve(override(values, given))
        key = settings.model_dump_json()
        if key not in self._variants:
            try:
                self._variants[key] = self._built(settings)
            except RuntimeError:
                raise UsageError(
                    f"{', '.join(given)}: the weights of {self.folder} do not fit; only "
                    f"settings that can be changed after training can be swept"
                ) from None
        return self._variants[key]

    def _built(self, settings: ModelSettings) -> Variant:
        encoder = self._encoder(settings.encoder)
        variant = Variant(settings, encoder, self.base.labels, self.encoded)
        variant.detector.load_state_dict(self.base.detector.state_dict(), assign=True)
        variant.modules().eval()
        return variant

    def _encoder(self, settings: EncoderSettings) -> Encoder:
        key = settings.model_dump_json()
        if key not in self._encoders:
            encoder = Encoder.from_files(settings, self.folder)
            encoder.load_state_dict(self.base.encoder.state_dict(), assign=True)
            self._encoders[key] = encoder
        return self._encoders[key]
