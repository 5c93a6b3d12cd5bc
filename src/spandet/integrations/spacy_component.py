"""spandet in a spaCy pipeline; needs the extra "spacy".

    nlp = spacy.blank("en")
    nlp.add_pipe("spandet", config={"model": "path/to/model"})
    doc = nlp("IL-2 gene expression requires NF-kappa B.")
    doc.spans["spandet"]                      spans of tokens, nested and crossing ones too
    doc.spans["spandet"].attrs["scores"]      how sure each is
    doc._.spandet["spandet"]                  the same entities with exact characters

The text is read with our own words and sentences, so that it gives the entities that it gives
everywhere else. Where one begins or ends inside a token of spaCy's, its span has the whole token.
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

_OURS = "spandet"


class ComponentSettings(PredictOptions):
    """What a pipeline's config may say of the component."""

    model: str
    """A name, a folder or a hub id, as `Recognizer.from_pretrained` takes it."""
    spans_key: str = _OURS
    """The group in `doc.spans`."""
    ents: bool = False
    """Write `doc.ents` too, where no two entities may overlap."""
    prefer: Literal["longest", "best"] = "longest"
    """Which of two overlapping entities goes into `doc.ents`: the longer or the surer one."""
    device: str | None = None
    """Where to compute."""
    use_doc_tokens: bool = False
    """Read spaCy's tokens, tags and sentences in place of our own words: every span fits, but
    the entities may be others than those of the raw text."""


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
    Language.factory(_OURS, default_config=_DEFAULTS, assigns=["doc.spans"], func=make_component)


class SpandetComponent(Pipe):
    """Finds entities in spaCy's docs.

    The model is loaded when it is first needed, because a pipeline that is read from a disk brings
    its own, and the place in its config may be gone.
    """

    def __init__(self, name: str, settings: ComponentSettings) -> None:
        self.name = name
        self.settings = settings

    @cached_property
    def recognizer(self) -> Recognizer:
        """The model at work."""
        from spandet.inference.recognizer import Recognizer  # noqa: PLC0415 (seconds, and torch)

        return Recognizer.from_pretrained(self.settings.model, device=self.settings.device)

    @property
    def labels(self) -> tuple[str, ...]:
        """What it may find; nothing, as long as its model is not loaded."""
        known = self.recognizer.labels if "recognizer" in vars(self) else ()
        return known if self.settings.labels is None else self.settings.labels

    def __call__(self, doc: Doc) -> Doc:
        """Find the entities of one doc."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Find the entities of many docs, in order."""
        for docs in minibatch(stream, batch_size):  # type: ignore[no-untyped-call]
            yield from self._survivors(docs)

    def _survivors(self, docs: Sequence[Doc]) -> Iterator[Doc]:
        """All docs; where one fails, the others, and spaCy's user decides what becomes of it."""
        try:
            self._annotate(docs)
        except Exception as error:  # noqa: BLE001 (whatever it is, its user may want to go on)
            if len(docs) == 1:
                handle: Callable[..., None] = self.get_error_handler()
                handle(self.name, self, docs, error)
                return
        else:
            yield from docs
            return
        for doc in docs:
            yield from self._survivors([doc])

    def to_disk(self, path: str | PathLike[str], *, exclude: Iterable[str] = ()) -> None:
        """Write the model itself, so that the pipeline works anywhere."""
        if "model" not in exclude:
            self.recognizer.save_pretrained(path)

    def from_disk(
        self, path: str | PathLike[str], *, exclude: Iterable[str] = ()
    ) -> SpandetComponent:
        """Read the model. A pipeline that was written without it goes on with its config's."""
        from spandet.inference.recognizer import Recognizer  # noqa: PLC0415

        if "model" not in exclude and Path(path).is_dir():
            self.recognizer = Recognizer.from_pretrained(path, device=self.settings.device)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model's files in one piece."""
        data: bytes = srsly.msgpack_dumps({} if "model" in exclude else packed(self.recognizer))
        return data

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> SpandetComponent:
        """Read the model's files."""
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
        getattr(doc._, _OURS)[key] = document.to_dict()["entities"]
        if self.settings.ents:
            doc.ents = self._flat(document.entities, spans, doc.ents)

    def _flat(
        self, entities: Sequence[Entity[CharSpan]], spans: Sequence[Span], others: Sequence[Span]
    ) -> list[Span]:
        """No two overlap: ours by preference, then what earlier components have found.

        A discontinuous entity would take in what lies in its gaps, and is left out.
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
    """The tokens that hold at least one of its characters."""
    start, end = entity.span.start, entity.span.end
    span = doc.char_span(start, end, label=entity.label, alignment_mode="expand")
    if span is None:
        raise AssertionError(f"spaCy has no token at characters {start}:{end} of {doc.text!r}")
    return span


def _sentences(doc: Doc) -> Iterator[Sentence]:
    """SpaCy's tokens in spaCy's sentences or, if nobody has looked for any, in ours."""
    if doc.has_annotation("SENT_START"):
        yield from sentences_of(doc)
        return
    from spandet.text.segmentation import sentence_starts  # noqa: PLC0415 (slow to load)

    for whole in sentences_of(doc):  # one, or none without words
        borders = [*sentence_starts(doc.text, whole.words, whole.starts), len(whole)]
        for first, end in pairwise(borders):
            words, starts, tags = whole.words, whole.starts, whole.tags
            yield Sentence(words[first:end], starts[first:end], tags[first:end])


_register()
Doc.set_extension(_OURS, default={}, force=True)
