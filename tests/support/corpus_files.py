"""Tiny corpora of our own sentences in the original formats of published corpora."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path


@dataclass(frozen=True)
class Text:
    """A sentence: words, part-of-speech tags, and entities (start, end, label), outermost first."""

    words: list[str]
    tags: list[str]
    entities: list[tuple[int, int, str]]


_PEOPLE = ["Zoe Lind", "Ole Berg", "Ida Moe", "Per Dahl"]
_TOWNS = ["Lund", "Oslo", "Bergen", "Turku"]
_PERSONS = ["王芳", "李强", "张敏", "刘洋"]
_CITIES = ["南京", "上海", "广州", "成都"]


def english(number: int, *, nested: bool) -> Text:
    """A sentence with a person, an organisation and a place; nested: inside each other."""
    person, town = _PEOPLE[number % 4].split(), _TOWNS[number // 4 % 4]
    words = [*person, "met", "the", "mayor", "of", town, "at", "the", town, "Bank", "."]
    tags = ["NNP", "NNP", "VBD", "DT", "NN", "IN", "NNP", "IN", "DT", "NNP", "NNP", "."]
    flat = [(0, 2, "PER"), (6, 7, "LOC"), (9, 11, "ORG")]
    deep = [(0, 2, "PER"), (3, 7, "PER"), (6, 7, "GPE"), (8, 11, "ORG"), (9, 10, "GPE")]
    return Text(words, tags, deep if nested else flat)


def chinese(number: int) -> Text:
    """A sentence with a person and a place, a word per character."""
    words = list(f"{_PERSONS[number % 4]}住在{_CITIES[number // 4 % 4]}。")
    return Text(words, [], [(0, 2, "PER"), (4, 6, "LOC")])


def biomedical(number: int) -> Text:
    """A sentence with a protein inside a DNA, and a cell type."""
    name = ["Abc-1", "Xyz-2", "Foo-3", "Bar-4"][number % 4]
    words = ["The", name, "gene", "is", "active", "in", "T", "cells", "."]
    tags = ["DT", "NN", "NN", "VBZ", "JJ", "IN", "NN", "NNS", "."]
    entities = [(1, 3, "DNA_family_or_group"), (1, 2, "protein_molecule"), (6, 8, "cell_type")]
    return Text(words, tags, entities)


def write_ace(folder: Path, sentences: int, start: int = 0) -> None:
    """LDC ACE: .sgm and .apf.xml; offsets count characters without tags, ends are inclusive."""
    for name, own in _documents(sentences, start):
        text, mentions = _raw(f"\n{name}\n\n", own)
        body = text.removeprefix(f"\n{name}\n\n")
        sgm = f"<DOC>\n<DOCID>{name}</DOCID>\n<BODY>\n{body}</BODY></DOC>"
        entities = "".join(
            f'<entity ID="E{n}" TYPE="{label}" SUBTYPE="x"><entity_mention ID="E{n}-1" TYPE="NAM">'
            + "".join(
                f'<{part}><charseq START="{a}" END="{b - 1}">{escape(text[a:b])}</charseq></{part}>'
                for part in ("extent", "head")
            )
            + "</entity_mention></entity>\n"
            for n, (a, b, label) in enumerate(mentions)
        )
        _write(folder / f"{name}.sgm", sgm)
        _write(
            folder / f"{name}.apf.xml",
            '<?xml version="1.0"?>\n<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">\n'
            f'<source_file URI="{name}.sgm"><document DOCID="{name}">\n{entities}'
            "</document></source_file>\n",
        )


def write_ere(folder: Path, sentences: int, start: int = 0) -> None:
    """Rich ERE: annotations in `ere`, sources in `source`; offsets count the source's tags."""
    for name, own in _documents(sentences, start):
        text, mentions = _raw(f'<DOC id="{name}">\n<TEXT>\n', own)
        entities = "".join(
            f'<entity id="e{n}" type="{label}"><entity_mention id="m{n}" noun_type="NAM" '
            f'source="{name}" offset="{a}" length="{b - a}">'
            f"<mention_text>{escape(text[a:b])}</mention_text></entity_mention></entity>\n"
            for n, (a, b, label) in enumerate(mentions)
        )
        _write(folder / "source" / f"{name}.xml", text + "</TEXT>\n</DOC>\n")
        _write(
            folder / "ere" / f"{name}.rich_ere.xml",
            f'<?xml version="1.0"?>\n<deft_ere kit_id="k" doc_id="{name}">\n'
            f"<entities>\n{entities}</entities></deft_ere>\n",
        )


def write_genia(path: Path, sentences: int, start: int = 0) -> None:
    """GENIA XML with parts of speech: nested `<cons>`, one `<w>` per word."""
    articles = "".join(
        f"<article><articleinfo><bibliomisc>MEDLINE:{name}</bibliomisc></articleinfo>\n<title>"
        + "</title>\n<abstract>".join(map(_marked, map(biomedical, own)))
        + "</abstract></article>\n"
        for name, own in _numbers(sentences, start)
    )
    _write(path, f'<?xml version="1.0" encoding="UTF-8"?>\n<set>\n{articles}</set>\n')


def write_conll03(path: Path, sentences: int, start: int = 0) -> None:
    """CoNLL 2003: word, part of speech, chunk, IOB1 tag; -DOCSTART- before each document."""
    documents = (
        "-DOCSTART- -X- -X- O\n\n"
        + "\n".join(
            _columns(one.words, one.tags, ["I-NP"] * len(one.words), _tags(one, begin="I"))
            for one in own
        )
        for _, own in _documents(sentences, start, nested=False)
    )
    _write(path, "\n".join(documents))


def write_ontonotes(folder: Path, sentences: int, start: int = 0) -> None:
    """CoNLL-2012 in its folders, named entities as brackets."""
    for name, own in _documents(sentences, start, nested=False):
        place = f"nw/own/00/{name}"
        rows = [_brackets(place, text) for text in own]
        text = f"#begin document ({place}); part 000\n" + "\n".join(rows) + "\n#end document\n"
        _write(folder / "nw" / "own" / "00" / f"{name}.v4_gold_conll", text)


def write_characters(path: Path, sentences: int, start: int = 0, *, separator: str = " ") -> None:
    """MSRA and Weibo: a character and its BIO tag per line."""
    texts = map(chinese, range(start, start + sentences))
    rows = [_columns(one.words, _tags(one, begin="B"), separator=separator) for one in texts]
    _write(path, "\n".join(rows))


Writer = Callable[[Path, int, int], None]
"""Writes a number of sentences, counted from a first one, to a file or folder."""


def _numbers(sentences: int, start: int) -> Iterable[tuple[str, Sequence[int]]]:
    """Names and sentence numbers of documents of two sentences."""
    for number in range(start, start + sentences, 2):
        yield f"own_{number:04}", (number, number + 1)


def _documents(
    sentences: int, start: int, *, nested: bool = True
) -> Iterable[tuple[str, list[Text]]]:
    for name, own in _numbers(sentences, start):
        yield name, [english(number, nested=nested) for number in own]


def _raw(head: str, texts: Iterable[Text]) -> tuple[str, list[tuple[int, int, str]]]:
    """Raw text after a head, with entities in characters."""
    text, found = head, []
    for one in texts:
        starts: list[int] = []
        for word in one.words:
            text += "" if word == "." or not starts else " "
            starts.append(len(text))
            text += word
        text += "\n"
        found += [(starts[a], starts[b - 1] + len(one.words[b - 1]), n) for a, b, n in one.entities]
    return text, found


def _marked(text: Text) -> str:
    opened: dict[int, list[str]] = {a: [] for a, _, _ in text.entities}
    closed = [0] * (len(text.words) + 1)
    for a, b, label in text.entities:
        opened[a].append(f'<cons lex="x" sem="G#{label}">')
        closed[b] += 1
    result = ""
    for number, (word, tag) in enumerate(zip(text.words, text.tags, strict=True)):
        result += "</cons>" * closed[number] + (" " if number else "")
        result += "".join(opened.get(number, [])) + f'<w c="{tag}">{escape(word)}</w>'
    return f"<sentence>{result}{'</cons>' * closed[-1]}</sentence>"


def _tags(text: Text, *, begin: str) -> list[str]:
    """BIO tags, or with begin = "I" IOB1."""
    names = ["O"] * len(text.words)
    for a, b, label in text.entities:
        names[a:b] = [f"I-{label}"] * (b - a)
        names[a] = f"{begin}-{label}"
    return names


def _columns(*columns: Sequence[str], separator: str = " ") -> str:
    return "".join(separator.join(cells) + "\n" for cells in zip(*columns, strict=True))


def _brackets(place: str, text: Text) -> str:
    names = ["*"] * len(text.words)
    for a, b, label in text.entities:
        names[a] = f"({label}*"
        names[b - 1] += ")"
    return "".join(
        f"{place}   0   {number}   {word}   {tag}   *   -   -   -   -   {name}   *   -\n"
        for number, (word, tag, name) in enumerate(zip(text.words, text.tags, names, strict=True))
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
