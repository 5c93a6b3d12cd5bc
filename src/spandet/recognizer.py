"""A recognizer: encoder, detector and decoding under one name, from text to entities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from pydantic import SerializeAsAny
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from spandet.chance import generator
from spandet.config import Settings, override
from spandet.decoding import DecodingSettings, Found, decode
from spandet.detectors import DETECTORS, Detector
from spandet.encoding import Encoder, EncoderSettings, Example, Vocabulary, examples_of
from spandet.errors import ConfigError, UsageError
from spandet.formats.target import Target
from spandet.tensors import GoldSpans, SpanPredictions
from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_WINDOW_SENTENCES = 1024
_BATCH_SENTENCES = 64
_BATCH_PIECES = 768
"""The fastest on a processor, where larger batches leave the cache."""
_NMS_DECAYS = (0.5, 0.7, 0.8, 0.9, 1.0)
_NMS_OVERLAPS = (0.4, 0.5, 0.6, 0.7)


class ModelSettings(Settings):
    """Everything that makes a model, apart from its weights and vocabularies."""

    encoder: EncoderSettings
    detector: SerializeAsAny[Settings]
    decoding: DecodingSettings = DecodingSettings()

    @classmethod
    def resolve(cls, values: Mapping[str, Any]) -> Self:
        """Settings from the sections of a recipe, with the detector's preset filled in."""
        unknown = sorted(set(values) - set(cls.model_fields))
        if unknown:
            raise ConfigError(
                f"there is no section {unknown[0]}; there are {', '.join(cls.model_fields)}"
            )
        detector = dict(values.get("detector", {}))
        name, preset = str(detector.get("name")), detector.pop("preset", None)
        if name not in DETECTORS:
            raise ConfigError(
                f"[detector] name is {name!r}, expected one of {', '.join(DETECTORS)}"
            )
        row = DETECTORS[name]
        if preset is not None and preset not in row.presets:
            raise ConfigError(
                f"[detector] preset is {preset!r}, expected {' or '.join(row.presets)}"
            )
        filled = row.presets[preset] if preset else {}

        def section(key: str, own: Mapping[str, Any]) -> dict[str, Any]:
            return {**filled.get(key, {}), **own}

        return cls(
            encoder=EncoderSettings.build(
                section("encoder", values.get("encoder", {})), where="encoder"
            ),
            detector=row.settings.build(section("detector", detector), where="detector"),
            decoding=DecodingSettings.build(
                section("decoding", values.get("decoding", {})), where="decoding"
            ),
        )


class Recognizer:
    """Finds entities in documents. Reading from it is thread safe."""

    def __init__(self, settings: ModelSettings, encoder: Encoder, labels: tuple[str, ...]) -> None:
        self.settings = settings
        self.encoder = encoder
        self.labels = labels
        """Names of the label ids 1, 2, …; id 0 is "no entity"."""
        row = DETECTORS[settings.detector.name]  # type: ignore[attr-defined]
        self.detector: Detector = row.build(
            settings.detector,
            dim=encoder.dim,
            sentence_dim=encoder.sentence_dim,
            labels=1 + len(labels),
        )
        self.decoding = settings.decoding
        self.seed = 0

    @classmethod
    def build(cls, settings: ModelSettings, documents: Iterable[Document]) -> Recognizer:
        """A fresh recognizer for training; labels and vocabularies come from `documents` only."""
        corpus = list(documents)
        examples = [example for d in corpus for example in examples_of(d, context_words=0)]
        vocabulary = Vocabulary.from_examples(examples, settings.encoder)
        labels = sorted({entity.label for document in corpus for entity in document.entities})
        return cls(settings, Encoder.build(settings.encoder, vocabulary), tuple(labels))

    def __call__(self, text: str) -> Document:
        """The entities of one text."""
        return next(self.predict([Document(text)]))

    def predict(
        self,
        documents: Iterable[Document],
        *,
        batch_pieces: int = _BATCH_PIECES,
        threshold: float | None = None,
    ) -> Iterator[Document]:
        """The same documents in order with the entities that were found, as a stream.

        Args:
            documents: What to read; entities that they have are replaced.
            batch_pieces: How much to encode at once; a GPU likes more.
            threshold: How sure an entity must be; as tuned, unless given.
        """
        surer = {} if threshold is None else {"threshold": threshold}
        decoding = self.decoding.model_copy(update=surer)
        for window in _windows(documents):
            examples = [e for d in window for e in self.examples_of(d)]
            found: list[list[Entity[WordSpan]]] = [[] for _ in examples]
            for chosen, predictions in self.predictions(examples, batch_pieces=batch_pieces):
                for place, entity in self.entities(decode(predictions, decoding)):
                    found[chosen[place]].append(entity)
            position = 0
            for document in window:
                own = found[position : position + len(document.sentences)]
                position += len(document.sentences)
                yield _with_entities(document, own)

    def predictions(
        self,
        examples: Sequence[Example],
        *,
        batch_pieces: int = _BATCH_PIECES,
        keep_all: bool = False,
    ) -> Iterator[tuple[list[int], SpanPredictions]]:
        """What the detector believes of each batch of examples, with their indices."""
        self.encoder.eval()
        self.detector.eval()
        for chosen in _batches(self.encoder.sizes(examples), batch_pieces):
            batch = [examples[index] for index in chosen]
            yield chosen, self.detect(batch, keep_all=keep_all)

    @torch.inference_mode()
    def detect(self, examples: Sequence[Example], *, keep_all: bool = False) -> SpanPredictions:
        """What the detector believes of one batch."""
        batch = self.encoder.prepare(examples).to(self.device)
        chance = [generator(self.seed, *example.words) for example in examples]
        return self.detector.detect(self.encoder(batch), chance, keep_all=keep_all)

    def examples_of(self, document: Document) -> list[Example]:
        """The document's sentences as the encoder reads them."""
        return examples_of(document, context_words=self.encoder.context_words)

    def tune(self, documents: Iterable[Document]) -> DecodingSettings:
        """The decoding settings with the best F1 on these documents: threshold and Soft-NMS."""
        corpus = list(documents)
        examples = [example for document in corpus for example in self.examples_of(document)]
        gold = _gold_keys(corpus)
        number = sum(len({(e.pieces, e.label) for e in d.entities}) for d in corpus)
        batches = list(self.predictions(examples))
        best, best_f1 = self.decoding, -1.0
        for candidate in _variants(self.decoding):
            scored = [
                (score, (chosen[place], entity.span, entity.label) in gold)
                for chosen, predictions in batches
                for place, entity in self.entities(decode(predictions, candidate))
                for score in [entity.score or 0.0]
            ]
            threshold, f1 = best_threshold(scored, number)
            if f1 > best_f1:
                best, best_f1 = candidate.model_copy(update={"threshold": threshold}), f1
        return best

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.detector.parameters()).device

    def modules(self) -> nn.ModuleDict:
        """All weights under one roof."""
        return nn.ModuleDict({"encoder": self.encoder, "detector": self.detector})

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write the model: weights, settings, labels, vocabularies, tokenizer."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self.encoder.save_files(place)
        settings = self.settings.model_copy(update={"decoding": self.decoding})
        config = {"labels": self.labels, **settings.model_dump(mode="json")}
        with Target(str(place / _CONFIG)).text() as out:
            out.write(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
        with Target(str(place / _WEIGHTS)).binary() as weights:
            weights.write(save(self.modules().state_dict()))

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], overrides: Iterable[str] = ()
    ) -> Recognizer:
        """The model that `save_pretrained` or a training run wrote.

        Args:
            folder: Where it is.
            overrides: Settings to change, such as `decoding.threshold=0.3`.

        Raises:
            UsageError: the folder holds no model, or a damaged one, or one that the overrides do
                not fit.
        """
        place = Path(folder)
        try:
            config = json.loads((place / _CONFIG).read_text())
            weights = load_file(place / _WEIGHTS)
        except (OSError, ValueError, SafetensorError) as error:
            raise UsageError(f"{place} is not a model folder ({error})") from None
        labels = tuple(config.pop("labels"))
        settings = ModelSettings.resolve(override(config, overrides))
        recognizer = cls(settings, Encoder.from_files(settings.encoder, place), labels)
        try:
            recognizer.modules().load_state_dict(weights)
        except RuntimeError as error:
            raise UsageError(f"the weights in {place} do not fit its settings: {error}") from None
        return recognizer

    def entities(self, found: Found) -> Iterator[tuple[int, Entity[WordSpan]]]:
        """What was decoded, by name: the number of the sentence in its batch, and the entity."""
        rows = zip(
            found.sentence.tolist(),
            found.spans.tolist(),
            found.labels.tolist(),
            found.scores.tolist(),
            strict=True,
        )
        for sentence, (start, end), label, score in rows:
            yield sentence, Entity(WordSpan(start, end), self.labels[label - 1], score)


def gold_spans(rows: Sequence[WordRow], labels: Sequence[str]) -> GoldSpans:
    """The entities of sentences as tensors. A label that is not listed is left out."""
    numbers = {label: number for number, label in enumerate(labels, start=1)}
    items = [
        [(e.span.start, e.span.end, numbers[e.label]) for e in row.entities if e.label in numbers]
        for row in rows
    ]
    most = max((len(item) for item in items), default=0)
    padded = [item + [(0, 1, 0)] * (most - len(item)) for item in items]
    table = torch.tensor(padded, dtype=torch.long).reshape(len(rows), most, 3)
    return GoldSpans(table[..., :2], table[..., 2], table[..., 2] > 0)


def best_threshold(scored: Iterable[tuple[float, bool]], gold: int) -> tuple[float, float]:
    """The threshold with the highest F1, and that F1.

    Args:
        scored: Of everything found, how sure it is and whether it is right.
        gold: How many entities there are to find.
    """
    ranked = sorted(scored, reverse=True)
    best, best_f1, right = 0.5, 0.0, 0
    for found, (score, is_right) in enumerate(ranked, start=1):
        right += is_right
        below = ranked[found][0] if found < len(ranked) else 0.0
        f1 = 2 * right / (found + gold)
        if below < score and f1 > best_f1:  # a threshold cannot part equal scores
            best, best_f1 = (score + below) / 2, f1
    return best, best_f1


def _variants(settings: DecodingSettings) -> Iterator[DecodingSettings]:
    """What to try: Soft-NMS only where the recipe uses it. The threshold comes last of all."""
    for none_weight in dict.fromkeys((settings.none_weight, 0.0)):
        everything = settings.model_copy(update={"threshold": 0.0, "none_weight": none_weight})
        yield everything
        if settings.nms_decay < 1:
            for decay, overlap in product(_NMS_DECAYS, _NMS_OVERLAPS):
                yield everything.model_copy(update={"nms_decay": decay, "nms_overlap": overlap})


def _gold_keys(documents: Iterable[Document]) -> set[tuple[int, WordSpan, str]]:
    """The entities that words can express: the others are missed at every threshold."""
    sentences = [own for document in documents for own in document.entities_in_words()[0]]
    return {(number, e.span, e.label) for number, own in enumerate(sentences) for e in own}


def _windows(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Runs of documents with enough sentences to sort by length."""
    window: list[Document] = []
    sentences = 0
    for document in documents:
        window.append(document)
        sentences += len(document.sentences)
        if sentences >= _WINDOW_SENTENCES:
            yield window
            window, sentences = [], 0
    if window:
        yield window


def _batches(sizes: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices of similar size together; a batch costs its longest member times their number.

    The longest come first, so that later batches fit into the memory that earlier ones have left.
    """
    batch: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        longest = sizes[batch[0]] if batch else 0
        if len(batch) >= _BATCH_SENTENCES or (len(batch) + 1) * longest > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _with_entities(document: Document, found: Sequence[Sequence[Entity[WordSpan]]]) -> Document:
    entities: list[Entity[CharSpan]] = [
        Entity(sentence.chars_of(entity.span), entity.label, entity.score)
        for sentence, own in zip(document.sentences, found, strict=True)
        for entity in own
    ]
    return Document(
        document.text, tuple(entities), document.id, document.metadata, document.own_sentences
    )
