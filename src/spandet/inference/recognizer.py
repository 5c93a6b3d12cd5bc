"""The recognizer: encoder, detector and decoding in one object, from text to entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set, Sized
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from spandet.encoding.examples import ContextSizes, Example, examples_of
from spandet.encoding.preparation import Preparation
from spandet.errors import UsageError
from spandet.inference.batching import documents_of, windows
from spandet.inference.candidates import Candidates
from spandet.inference.decoding import DecodingSettings
from spandet.inference.linking import DecodedEntity, assemble
from spandet.inference.long_sentences import (
    LongSentences,
    SentenceDecoder,
    SentenceWindow,
    sentence_windows,
)
from spandet.inference.manifest import check_files
from spandet.inference.model_names import find_models, read_config
from spandet.inference.model_settings import ModelSettings, read_settings
from spandet.inference.onnx_engine import OnnxEngine, has_graph
from spandet.inference.options import (
    DEFAULTS,
    EntityOptions,
    PredictKeywords,
    PredictOptions,
)
from spandet.inference.tagging import Tagger, tagger_for
from spandet.rendering.progress import show_progress
from spandet.text import Document, Entity, WordSpan

if TYPE_CHECKING:
    import torch
    from torch import nn

    from spandet.detectors import Detector
    from spandet.encoding import Encoder
    from spandet.inference.engine import TorchEngine
    from spandet.inference.onnx_folder import Exported

EngineName = Literal["auto", "onnx", "torch"]
"""What computes predictions."""


class Recognizer:
    """Finds entities in documents. Prediction is thread-safe."""

    long_sentences = LongSentences()
    """Sizes of the windows over long sentences; may be replaced."""
    exported: Exported | None = None
    """The methods that ONNX Runtime computes, if the model was exported."""
    has_stages: bool = True
    """Whether predictions can be traced through the stages of a detector."""
    graph: OnnxEngine | None = None
    """Predicts without torch, if the model has a graph and was loaded with it."""
    tagger: Tagger | None = None
    """Computes part-of-speech tags for documents without tags, if the model uses tags. By default
    spaCy, for tag sets that it has."""

    def __init__(self, settings: ModelSettings, encoder: Encoder, labels: tuple[str, ...]) -> None:
        self.settings = settings
        self.encoder = encoder
        self.labels = labels
        """Names of the label ids 1, 2, …; id 0 is "no entity"."""
        from spandet.detectors import DETECTORS  # noqa: PLC0415 (loads torch)

        row = DETECTORS[settings.detector.name]  # type: ignore[attr-defined]
        self.detector = row.build(
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
        from spandet.encoding import Encoder  # noqa: PLC0415 (loads torch)

        corpus = list(documents)
        examples = [example for d in corpus for example in examples_of(d, context_words=0)]
        vocabulary = settings.encoder.vocabulary_of(examples)
        labels = sorted({entity.label for document in corpus for entity in document.entities})
        settings = settings.suited_to(corpus)
        return cls(settings, Encoder.build(settings.encoder, vocabulary), tuple(labels))

    def __call__(
        self,
        text: str,
        options: PredictOptions = DEFAULTS,
        **keywords: Unpack[PredictKeywords],
    ) -> Document:
        """The entities of one text; see `predict`."""
        return next(self.predict([Document(text)], options, **keywords))

    def predict(
        self,
        documents: Iterable[Document | str],
        options: PredictOptions = DEFAULTS,
        *,
        progress: bool = False,
        **keywords: Unpack[PredictKeywords],
    ) -> Iterator[Document]:
        """Find the entities of documents; yields the documents in order, as a stream.

        It reads ahead by a limited number of sentences.

        Args:
            documents: Documents or texts; entities of documents are replaced.
            options: Which entities to return, and how much to compute at once.
            progress: Show progress on stderr.
            **keywords: Single fields of `PredictOptions`: `min_score`, `labels`, `flat`,
                `batch_pieces`; they replace those of `options`.

        Raises:
            UsageError: an argument cannot be used, or the model needs tags and there is no tagger.
        """
        chosen = PredictOptions.of(options, **keywords)
        found = self._predict(
            documents_of(documents),
            self.decoding_for(chosen),
            self._label_ids(chosen.labels),
            chosen.batch_pieces,
        )
        if not progress:
            return found
        total = len(documents) if isinstance(documents, Sized) else None
        return show_progress(found, "predicting", total=total)

    def _predict(
        self,
        documents: Iterable[Document],
        decoding: DecodingSettings,
        labels: Set[int],
        batch_pieces: int,
    ) -> Iterator[Document]:
        """Prepare, compute and decode one window of documents after another."""
        for window in windows(documents):
            # No local variable holds the entities while the next window is read.
            yield from self._with_entities(
                window, self._decoded(window, decoding, batch_pieces), labels
            )

    def _decoded(
        self, window: Sequence[Document], decoding: DecodingSettings, batch_pieces: int
    ) -> Iterable[Sequence[DecodedEntity]]:
        """The entities of each sentence of a window; examples and batches are freed at its end."""
        engine, sentences = self.graph or self.engine, self.sentences(window)
        examples = engine.prepare([sentence.example for sentence in sentences])
        decoder = SentenceDecoder(sentences, decoding)
        for batch in engine.batches(examples, batch_pieces):
            decoder.add(batch, engine.candidates([examples[number] for number in batch]))
        return decoder.sentences()

    @property
    def engine(self) -> TorchEngine:
        """Computes candidates with torch, with the current weights."""
        from spandet.inference.engine import TorchEngine  # noqa: PLC0415 (loads torch)

        return TorchEngine(self.encoder, self.detector, device=self.device, seed=self.seed)

    def decoding_for(self, options: EntityOptions) -> DecodingSettings:
        """The decoding settings, with `flat` and `min_score` of the options applied."""
        changes: dict[str, Any] = {"flat": True} if options.flat else {}
        if options.min_score is not None:
            changes["threshold"] = options.min_score
        return self.decoding.model_copy(update=changes) if changes else self.decoding

    def _label_ids(self, labels: Iterable[str] | None) -> Set[int]:
        ids = {label: number for number, label in enumerate(self.labels, start=1)}
        for label in labels or ():
            if label not in ids:
                known = ", ".join(self.labels)
                raise UsageError(f"the model does not know the label {label!r}; it knows {known}")
        return {ids[label] for label in (self.labels if labels is None else labels)}

    def sentences(self, documents: Iterable[Document]) -> list[SentenceWindow]:
        """The sentences of documents with context and tags, long ones in windows.

        Raises:
            UsageError: the model needs tags, and there is no tagger for them.
        """
        examples = self.tagged([e for d in documents for e in self.examples_of(d)])
        return sentence_windows(examples, self.long_sentences, self.preparation.context_words)

    def _with_entities(
        self,
        documents: Iterable[Document],
        found: Iterable[Sequence[DecodedEntity]],
        labels: Set[int],
    ) -> Iterator[Document]:
        """The documents with those entities of their sentences that have one of the labels."""
        own = iter(found)
        for document in documents:
            entities = [
                Entity.from_fragments(
                    [sentence.chars_of(WordSpan(*span)) for span in entity.spans],
                    self.labels[entity.label - 1],
                    entity.score,
                )
                for sentence in document.sentences
                for entity in next(own)
                if entity.label in labels
            ]
            yield replace(document, entities=tuple(entities))

    def examples_of(self, document: Document) -> list[Example]:
        """The document's sentences as examples for the encoder, with context."""
        return examples_of(document, **self.context_sizes)

    @property
    def context_sizes(self) -> ContextSizes:
        """How much context of a sentence predictions depend on."""
        return ContextSizes(
            context_words=self.preparation.context_words,
            passage_words=self.preparation.passage_words,
            neighbour_sentences=self.preparation.neighbour_sentences,
        )

    def tagged(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Add part-of-speech tags to examples without tags, if the model uses tags.

        Raises:
            UsageError: there is no tagger, or it is not installed.
        """
        source = self.preparation
        if not getattr(source, "needs_tags", False) or not source.vocabulary.tags:
            return examples
        bare = [not example.tags and bool(example.words) for example in examples]
        if not any(bare):
            return examples
        tagger = self.tagger or tagger_for(source.vocabulary.tags)
        return [
            replace(example, tags=tuple(tagger(example.words))) if is_bare else example
            for example, is_bare in zip(examples, bare, strict=True)
        ]

    @property
    def detector_name(self) -> str:
        """The name of the detector."""
        return str(self.settings.detector.name)  # type: ignore[attr-defined]

    @property
    def encoder_name(self) -> str:
        """The names of the encoder's parts; for the transformer, its own name."""
        parts = self.settings.encoder.parts.items()
        return " + ".join(getattr(own, "name", name.replace("_", " ")) for name, own in parts)

    @property
    def preparation(self) -> Preparation | Encoder:
        """Prepares sentences: how much context they get, and whether they need tags."""
        return self.encoder if self.graph is None else self.graph.preparation

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.detector.parameters()).device

    def modules(self) -> nn.ModuleDict:
        """Encoder and detector as one module."""
        from torch import nn  # noqa: PLC0415 (slow to import)

        return nn.ModuleDict({"encoder": self.encoder, "detector": self.detector})

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write the model: weights, settings, labels, vocabularies, tokenizer, manifest.

        An existing model in the folder is replaced; other files are kept.
        """
        from spandet.inference.model_folder import save  # noqa: PLC0415 (loads torch)

        save(self, Path(folder))

    @classmethod
    def from_pretrained(
        cls,
        name: str | PathLike[str] | Iterable[str | PathLike[str]],
        overrides: Iterable[str] = (),
        *,
        device: str | torch.device | None = None,
        engine: EngineName = "auto",
    ) -> Recognizer:
        """Load a model that `save_pretrained` or a training run wrote.

        Args:
            name: Its folder, the name of a bundled or local model (see `spandet models`), or its
                id on the Hugging Face hub ("owner/name"). Several, as a list or joined with "+"
                ("a+b"): an ensemble, whose scores are the means of those of its members.
            overrides: Settings to change, such as `decoding.threshold=0.3`.
            device: Device to compute on: "cpu" (the default), "cuda", "cuda:1", "mps", or "auto"
                for the best one.
            engine: What computes predictions: "onnx" (without torch, on the CPU, for a model that
                was exported with its whole graph), "torch", or "auto": onnx if the model has such
                a graph, onnxruntime is installed, and neither overrides nor device need torch.

        Raises:
            UsageError: there is no such model or device, or the model is damaged, or the overrides
                do not fit it, or the engine cannot compute it.
            MissingExtraError: onnxruntime is not installed.
        """
        folders, changes = find_models(name), list(overrides)
        needs_torch = _needs_torch(folders, changes, device)
        if engine == "onnx" and needs_torch:
            raise UsageError(f'{needs_torch} needs engine="torch"')
        if engine == "onnx" or (engine == "auto" and not needs_torch and has_graph(folders[0])):
            return cls._with_graph(folders[0], changes)
        return cls._with_torch(folders, changes, device)

    @classmethod
    def _with_torch(
        cls, folders: Sequence[Path], overrides: Sequence[str], device: str | torch.device | None
    ) -> Recognizer:
        from spandet.inference.device import device_of  # noqa: PLC0415 (loads torch)
        from spandet.inference.model_folder import load  # noqa: PLC0415

        return load(cls, folders, overrides, device_of(device))

    @classmethod
    def _with_graph(cls, folder: Path, overrides: Sequence[str]) -> Recognizer:
        """A recognizer that predicts with ONNX Runtime; torch is loaded if anything needs it."""
        check_files(folder)
        config = read_config(folder)
        settings = read_settings(folder, config, overrides)
        made = cls.__new__(cls)
        made.settings, made.labels = settings, config.labels
        made.decoding, made.seed = settings.decoding, 0
        made.graph = OnnxEngine(
            folder,
            Preparation.from_files(settings.encoder, folder),
            settings.detector,
            labels=1 + len(config.labels),
        )
        return made

    @cached_property
    def _in_torch(self) -> Recognizer:
        """The same model in torch, for everything but prediction."""
        if self.graph is None:  # encoder and detector are attributes, or there are several
            raise AttributeError("only a model with a graph is loaded a second time")
        return self._with_torch([self.graph.folder], (), None)

    @cached_property
    def encoder(self) -> Encoder:
        """Computes word vectors."""
        return self._in_torch.encoder

    @cached_property
    def detector(self) -> Detector:
        """Computes scored spans from them."""
        return self._in_torch.detector

    def entities(
        self, candidates: Candidates, decoding: DecodingSettings
    ) -> Iterator[tuple[int, Entity[WordSpan]]]:
        """Decode candidates; yields the number of the sentence in its batch, and the entity."""
        for whole in assemble(candidates, decoding):
            yield whole.sentence, self.entity(whole)

    def entity(self, whole: DecodedEntity) -> Entity[WordSpan]:
        """A decoded entity with a named label."""
        spans = [WordSpan(start, end) for start, end in whole.spans]
        return Entity.from_fragments(spans, self.labels[whole.label - 1], whole.score)


def _needs_torch(
    folders: Sequence[Path], overrides: Iterable[str], device: str | torch.device | None
) -> str:
    """What a graph cannot do: an ensemble, a changed setting outside of decoding, a device."""
    if len(folders) > 1:
        return "an ensemble"
    for assignment in overrides:
        if not assignment.strip().startswith("decoding."):
            return f"the changed setting {assignment!r}"
    return "" if device is None or str(device) == "cpu" else f"the device {str(device)!r}"
