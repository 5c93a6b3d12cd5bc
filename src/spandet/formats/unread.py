"""Checks for entities in columns or fields that a reader does not read: these are an error.

Columns and fields that a format does not define are ignored, or kept as metadata. These checks find
those that contain entities: a further layer of tags, or spans with labels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

from spandet.errors import FormatError
from spandet.formats.columns import Block
from spandet.formats.records import Record, shown


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_TAG = re.compile(r"[BIESMLU]-(\S+)")
_OUTSIDE = frozenset(["O", "-", "_", "*", ""])
# Labels of syntactic chunks: those of CoNLL-2000, and of TreeTagger in the German of CoNLL-2003.
_CHUNKS = _set("NP VP PP ADJP ADVP SBAR PRT CONJP INTJ LST UCP NC VC PC ADJC ADVC CONJC")
_NER_NAME = re.compile(r"(?:.*[_-])?(?:ner|(?:ner|ne|bio|iob2?|bioes|bilou)[_-]?(?:tags?|labels?))")
_OTHER_LAYERS = re.compile("chunk|pos|dep|srl")
_TAG_NAMES = _set("tags label labels")
_SPAN_NAMES = _set(
    "entities entity ents named_entities entity_mentions mentions spans span annotations "
    "annotation label labels predictions completions"
)
# Spans of something else, or references to the entities that are read.
_NOT_ENTITIES = _set(
    "tokens words sentences sents sections paragraphs passages relations events links arcs coref "
    "clusters versions"
)
_STARTS = _set(
    "start begin offset from startoffset beginoffset startchar charstart starttoken tokenstart "
    "startindex startidx startpos startposition"
)
_ENDS = _set(
    "end stop length to endoffset endchar charend endtoken tokenend endindex endidx endpos "
    "endposition"
)
_LABELS = _set("label labels type tag class category entity entitytype entitygroup entitylabel ner")
_FORMAT_OF = {"spans": "prodigy", "label": "doccano", "labels": "doccano", "entities": "jsonl"}
_NO_FORMAT = "no format reads it"


def check_columns(
    block: Block, words: Sequence[str], columns: Sequence[Sequence[str]], read: Collection[int]
) -> None:
    """Refuse a sentence with entity tags in a column that is not read.

    Args:
        block: The lines of the sentence.
        words: Its words.
        columns: All of its columns.
        read: The numbers of those that need no check, from 0.

    Raises:
        FormatError: names the first such column, and the format that reads it.
    """
    for number, cells in enumerate(columns):
        if number in read or (word := _first_tag(cells, words)) is None:
            continue
        numbered = len(columns) == 4 and columns[0][0] == "1"
        hint = "the format germeval reads it" if numbered else _NO_FORMAT
        raise block.error(
            word,
            f"column {number + 1} has the tag {shown(cells[word])}, but this format does not read "
            f"a layer of tags there: {hint}; if these are not entities, remove the column",
        )


def check_fields(record: Record, own: Collection[str]) -> None:
    """Refuse a record with entities in a field that its format does not define.

    Args:
        record: A JSON record.
        own: The fields that are read.

    Raises:
        FormatError: names the first such field, and the format that reads it.
    """
    for name, value in record.items():
        if name in own or not value or not isinstance(value, list | dict):
            continue
        if what := _annotation(str(name).lower(), value, record):
            hint = _hint(name, value, record)
            raise FormatError(
                f"{name} has {what}, which this format does not read there: {hint}; "
                f"if these are not entities, remove the field"
            )


def check_tags(tags: Sequence[str], words: Sequence[str], name: str) -> None:
    """Refuse entity tags where parts of speech are expected."""
    if (word := _first_tag(tags, words)) is not None:
        raise FormatError(f"{name}[{word}] is {shown(tags[word])}, expected a part of speech")


def _first_tag(cells: Sequence[Any], words: Sequence[str]) -> int | None:
    """The first word with an entity tag, if all cells are tags; None for syntactic chunks."""
    found = None
    for number, (cell, word) in enumerate(zip(cells, words, strict=True)):
        kind = _kind(cell)
        if kind is None:
            return None
        # "E-Mail" as the lemma of "E-Mails" is not a tag.
        if kind == "entity" and found is None and cell[:2] != word[:2].upper():
            found = number
    return found


@lru_cache(maxsize=4096)
def _kind(cell: str) -> str | None:
    if cell in _OUTSIDE:
        return "outside"
    tag = _TAG.fullmatch(cell)
    return None if tag is None else "chunk" if tag[1] in _CHUNKS else "entity"


def _annotation(name: str, value: list[Any] | dict[str, Any], record: Record) -> str | None:
    """The kind of annotation that a field contains, if any."""
    if name in _NOT_ENTITIES:
        return None
    if isinstance(value, list):
        if any(map(_is_labelled_span, value)):
            return "spans with labels"
        if _are_tags(name, value, record):
            return "a tag for each word"
    elif _NER_NAME.fullmatch(name) and any(value.values()):
        return "annotation"
    if name in _SPAN_NAMES and _has_offsets(value):
        return "spans"
    return None


def _are_tags(name: str, value: list[Any], record: Record) -> bool:
    if _OTHER_LAYERS.match(name):
        return False
    if _NER_NAME.fullmatch(name) and any(item and item not in _OUTSIDE for item in _flat(value)):
        return True
    words = _words(record)
    if len(words) != len(value):  # key words, perhaps
        return False
    if all(isinstance(item, str) for item in value):
        return _first_tag(value, words) is not None
    return name in _TAG_NAMES and any(value) and all(type(item) is int for item in value)


def _words(record: Record) -> list[str]:
    """The words of a record, to compare their number with that of tags."""
    tokens, text = record.get("tokens"), record.get("text")
    if isinstance(tokens, list):
        return [str(token) for token in tokens]
    return text.split() if isinstance(text, str) else []


def _flat(value: Iterable[Any]) -> list[Any]:
    """Items, and the items of those that are lists."""
    return [one for item in value for one in (item if isinstance(item, list) else [item])]


def _is_labelled_span(item: Any) -> bool:
    if isinstance(item, dict):
        return _names_offsets(item) and not _LABELS.isdisjoint(map(_bare, item))
    if not isinstance(item, list):
        return False
    kinds = [type(part) for part in item]
    return len(item) >= 3 and kinds.count(int) >= 2 and str in kinds


def _names_offsets(item: Record) -> bool:
    """Whether an object has whole numbers for its start and its end."""
    names = {_bare(name) for name, value in item.items() if type(value) is int}
    return bool(names & _STARTS and names & _ENDS)


def _bare(name: str) -> str:
    """A name without underscores and capitals: startOffset and start_offset are the same."""
    return name.lower().replace("_", "").replace("-", "")


def _has_offsets(value: Any) -> bool:
    """Whether a value contains a span at any depth."""
    if isinstance(value, dict):
        return _names_offsets(value) or any(map(_has_offsets, value.values()))
    if not isinstance(value, list):
        return False
    pair = len(value) >= 2 and type(value[0]) is type(value[1]) is int
    return pair or any(map(_has_offsets, value))


def _hint(name: str, value: list[Any] | dict[str, Any], record: Record) -> str:
    reader = _FORMAT_OF.get(name)
    if name == "entities" and isinstance(record.get("tokens"), list):
        reader = "tokens-jsonl"
    fits = isinstance(value, list) and any(map(_is_labelled_span, value))
    return f"the format {reader} reads it" if reader and fits else _NO_FORMAT
