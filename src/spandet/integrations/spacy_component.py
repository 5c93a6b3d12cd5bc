"""spandet in a spaCy pipeline; needs the extra "spacy".

    nlp = spacy.blank("en")
    nlp.add_pipe("spandet", config={"model": "path/to/model"})
    doc = nlp("IL-2 gene expression requires NF-kappa B.")
    doc.spans["spandet"]                      spans of tokens; they may be nested or cross
    doc.spans["spandet"].attrs["scores"]      their scores
    doc._.spandet["spandet"]                  the same entities with exact characters

The text is segmented by spandet, not by spaCy, so that entities are the same as without spaCy. If
an entity begins or ends inside a token of spaCy, its span contains the whole token.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import srsly
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, SpanGroup
from spacy.util import minibatch

from spandet.formats.docbin import sentences_of
from spandet.inference.options import PredictOptions
from spandet.integrations.model_files import packed, unpacked
from spandet.text import CharSpan, Document, Entity, Sentence

if TYPE_CHECKING:
    from spandet.inference.recognizer import Recognizer

_NAME = "spandet"


class ComponentSettings(PredictOptions):
    """Settings of the component in a pipeline's config."""

    model: str
    """A name, a folder or a hub id, as for `Recognizer.from_pretrained`; "a+b": an ensemble."""
    spans_key: str = _NAME
    """Name of the group in `doc.spans`."""
    ents: bool = False
    """Also write `doc.ents`, in which entities cannot overlap."""
    prefer: Literal["longest", "best"] = "longest"
    """Which of two overlapping entities is kept in `doc.ents`: the longer or the higher-scoring."""
    device: str | None = None
    """Device to compute on."""
    use_doc_tokens: bool = False
    """Use the tokens, tags and sentences of spaCy: every span fits its tokens exactly, but entities
    may differ from those of the raw text."""


_DEFAULTS = {
    name: field.get_default()
    for name, field in ComponentSettings.model_fields.items()
    if not field.is_required()
}


def make_component(nlp: Language, name: str, **settings: Any) -> SpandetComponent:  # noqa: ARG001
    """Make the component: `nlp.add_pipe("spandet")` calls this."""
    return SpandetComponent(name, ComponentSettings.build(settings, where=f"components.{name}"))


def _register() -> None:
    # spaCy reads the names of the settings from the signature.
    first = list(inspect.signature(make_component).parameters.values())[:2]
    settings = [
        inspect.Parameter(setting, inspect.Parameter.KEYWORD_ONLY)
        for setting in ComponentSettings.model_fields
    ]
    vars(make_component)["__signature__"] = inspect.Signature([*first, *settings])
    Language.factory(_NAME, default_config=_DEFAULTS, assigns=["doc.spans"], func=make_component)


class SpandetComponent(Pipe):
    """A spaCy component that finds entities.

    The model is loaded on first use: a pipeline on disk contains its model, and the path in its
    config may not exist any more.
    """

    def __init__(self, name: str, settings: ComponentSettings) -> None:
        self.name = name
        self.settings = settings

    @cached_property
    def recognizer(self) -> Recognizer:
        """The model, loaded on first use."""
        from spandet.inference.recognizer import Recognizer  # noqa: PLC0415 (loads torch)

        return Recognizer.from_pretrained(self.settings.model, device=self.settings.device)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it can assign; empty before the model is loaded, unless set in the config."""
        known = self.recognizer.labels if "recognizer" in vars(self) else ()
        return known if self.settings.labels is None else self.settings.labels

    def __call__(self, doc: Doc) -> Doc:
        """Find the entities of one doc."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Find the entities of many docs, in order."""
        for docs in minibatch(stream, batch_size):  # type: ignore[no-untyped-call]
            yield from self._annotated(docs)

    def _annotated(self, docs: Sequence[Doc]) -> Iterator[Doc]:
        """The docs without those that fail, which go to the error handler of the pipeline."""
        try:
            self._annotate(docs)
        except Exception as error:  # noqa: BLE001 (the error handler decides about any error)
            if len(docs) == 1:
                handle: Callable[..., None] = self.get_error_handler()
                handle(self.name, self, docs, error)
                return
        else:
            yield from docs
            return
        for doc in docs:
            yield from self._annotated([doc])

    def to_disk(self, path: str | PathLike[str], *, exclude: Iterable[str] = ()) -> None:
        """Write the files of the model, so that the pipeline does not depend on its path."""
        if "model" not in exclude:
            self.recognizer.save_pretrained(path)

    def from_disk(
        self, path: str | PathLike[str], *, exclude: Iterable[str] = ()
    ) -> SpandetComponent:
        """Read the model; a pipeline written without it uses the model of its config."""
        from spandet.inference.recognizer import Recognizer  # noqa: PLC0415

        if "model" not in exclude and Path(path).is_dir():
            self.recognizer = Recognizer.from_pretrained(path, device=self.settings.device)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of the model as bytes."""
        data: bytes = srsly.msgpack_dumps({} if "model" in exclude else packed(self.recognizer))
        return data

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> SpandetComponent:
        """Read the model from the bytes of `to_bytes`."""
        files = srsly.msgpack_loads(data)
        if files and "model" not in exclude:
            self.recognizer = unpacked(files, device=self.settings.device)
        return self

    def _annotate(self, docs: Sequence[Doc]) -> None:
        found = self.recognizer.predict([self._document(doc) for doc in docs], self.settings)
        for doc, document in zip(docs, found, strict=True):
            self._write(document, doc)

    def _document(self, doc: Doc) -> Document:
        own = tuple(_sentences(doc)) if self.settings.use_doc_tokens else None
        return Document(doc.text, own_sentences=own)

    def _write(self, document: Document, doc: Doc) -> None:
        key = self.settings.spans_key
        spans = [_span(entity, doc) for entity in document.entities]
        scores = [entity.score for entity in document.entities]
        doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs={"scores": scores})
        getattr(doc._, _NAME)[key] = document.to_dict()["entities"]
        if self.settings.ents:
            doc.ents = self._flat(document.entities, spans, doc.ents)

    def _flat(
        self, entities: Sequence[Entity[CharSpan]], spans: Sequence[Span], others: Sequence[Span]
    ) -> list[Span]:
        """Entities without overlap: ours by preference, then those of earlier components.

        Discontinuous entities are left out, because their spans would contain their gaps.
        """

        def rank(number: int) -> tuple[float, ...]:
            span, score = spans[number], entities[number].score or 0.0
            length = span.end - span.start
            longest = self.settings.prefer == "longest"
            return (-length, -score) if longest else (-score, -length)

        whole = (number for number in range(len(spans)) if not entities[number].fragments)
        flat: list[Span] = []
        taken: set[int] = set()
        for span in [*(spans[number] for number in sorted(whole, key=rank)), *others]:
            tokens = range(span.start, span.end)
            if taken.isdisjoint(tokens):
                flat.append(span)
                taken.update(tokens)
        return flat


def _span(entity: Entity[CharSpan], doc: Doc) -> Span:
    """The tokens that contain at least one character of an entity."""
    start, end = entity.span.start, entity.span.end
    span = doc.char_span(start, end, label=entity.label, alignment_mode="expand")
    if span is None:
        raise AssertionError(f"spaCy has no token at characters {start}:{end} of {doc.text!r}")
    return span


def _sentences(doc: Doc) -> Iterator[Sentence]:
    """The tokens of spaCy in its sentences or, if the pipeline sets none, in those of spandet."""
    if doc.has_annotation("SENT_START"):
        yield from sentences_of(doc)
        return
    from spandet.text.segmentation import sentence_starts  # noqa: PLC0415 (slow to load)

    for whole in sentences_of(doc):  # one sentence, or none if there are no words
        borders = [*sentence_starts(doc.text, whole.words, whole.starts), len(whole)]
        for first, end in pairwise(borders):
            words, starts, tags = whole.words, whole.starts, whole.tags
            yield Sentence(words[first:end], starts[first:end], tags[first:end])


_register()
Doc.set_extension(_NAME, default={}, force=True)
