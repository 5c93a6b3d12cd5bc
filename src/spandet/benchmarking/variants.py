"""One trained model with its settings changed in many ways, and loaded once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike

import torch

from spandet.config import override
from spandet.encoding import Encoder, EncoderSettings, Example
from spandet.errors import UsageError
from spandet.inference.model_names import find_model
from spandet.inference.recognizer import ModelSettings, Recognizer
from spandet.seeding import generator
from spandet.tensors import SpanPredictions, WordFeatures

Encoded = dict[tuple[int, tuple[Example, ...]], WordFeatures]
"""What was encoded, by encoder and batch."""


@dataclass(frozen=True)
class Option:
    """A setting, and the values that it takes in turn, as they were written."""

    key: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Option:
        """From `section.key=value,value,…`; commas inside brackets and quotes part nothing."""
        key, equals, rest = text.partition("=")
        values = tuple(dict.fromkeys(part.strip() for part in _parts(rest)))
        if not equals or "." not in key or "" in values:
            raise UsageError(f"--set {text}: expected section.key=value,value,…")
        return cls(key.strip(), values)


def _parts(text: str) -> list[str]:
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote or letter in "\"'":
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


class Variant(Recognizer):
    """A recognizer that does not encode what another one has encoded for it already."""

    def __init__(
        self, settings: ModelSettings, encoder: Encoder, labels: tuple[str, ...], encoded: Encoded
    ) -> None:
        super().__init__(settings, encoder, labels)
        self._encoded = encoded

    @torch.inference_mode()
    def detect(self, examples: Sequence[Example], *, keep_all: bool = False) -> SpanPredictions:
        """What the detector believes of one batch."""
        key = id(self.encoder), tuple(examples)
        if key not in self._encoded:
            self._encoded[key] = self.encode(examples)
        rngs = [generator(self.seed, *example.words) for example in examples]
        return self.detector.detect(self._encoded[key], rngs, keep_all=keep_all)

    @torch.inference_mode()
    def encode(self, examples: Sequence[Example]) -> WordFeatures:
        """The words of one batch."""
        words: WordFeatures = self.encoder(self.encoder.prepare(examples).to(self.device))
        return words

    def find(self, examples: Sequence[Example]) -> None:
        """From words to entities."""
        for _ in self.entities(self.detect(examples), self.decoding):
            pass


class Model:
    """A trained model. Its variants share all weights, and what they encode."""

    def __init__(self, name: str | PathLike[str]) -> None:
        self.folder = find_model(name)
        self.base = Recognizer.from_pretrained(self.folder)
        self.encoded: Encoded = {}
        self._variants: dict[str, Variant] = {}
        self._encoders = {self.base.settings.encoder.model_dump_json(): self.base.encoder}

    def variant(self, assignments: Iterable[str]) -> Variant:
        """The model after these assignments; one and the same object for the same settings.

        Raises:
            ConfigError: there is no such setting, or it has no such value.
            UsageError: the weights do not fit the settings any more.
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
                    f"{', '.join(given)}: the weights of {self.folder} do not fit; only what can "
                    f"be changed after training can be swept"
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
