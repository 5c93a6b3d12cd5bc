"""GENIA XML, after its public description; sentences are our own."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from spandet.errors import FormatError
from spandet.formats import read
from spandet.formats.genia_xml import label_of
from spandet.text import Document

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE set SYSTEM "gpml.dtd">
<set>
<import resource="GENIAontology.daml" prefix="G"></import>
"""
ARTICLE = """<article>
<articleinfo>
<bibliomisc>MEDLINE:11</bibliomisc>
</articleinfo>
<title>
<sentence>The <cons lex="x" sem="G#DNA_family_or_group"><cons sem="G#protein_molecule">Abc-1</cons>\
 gene</cons> is <cons sem="G#protein_molecule">Abc-1</cons>-driven.</sentence>
</title>
<abstract>
<sentence><cons lex="(AND a b)" sem="(AND G#cell_type G#cell_type)"><cons lex="a*">red</cons> and\
 <cons sem="G#cell_type">white cells</cons></cons> &lt; 5.</sentence>
</abstract>
</article>
"""


def documents(folder: Path, body: str, name: str = "genia-xml") -> list[Document]:
    path = folder / "corpus.xml"
    path.write_text(HEAD + body + "</set>\n", encoding="utf-8")
    return list(read(path, name))


def entities(document: Document) -> list[tuple[str, str]]:
    return [(document.text_of(entity), entity.label) for entity in document.entities]


def test_an_article_is_a_document_with_its_raw_text(tmp_path: Path) -> None:
    (document,) = documents(tmp_path, ARTICLE)
    assert document.id == "MEDLINE:11"
    assert document.text == "The Abc-1 gene is Abc-1-driven.\nred and white cells < 5."
    assert entities(document) == [
        ("Abc-1 gene", "DNA"),
        ("Abc-1", "protein"),
        ("Abc-1", "protein"),
        ("white cells", "cell_type"),
    ]


def test_words_end_at_tags_and_keep_their_place(tmp_path: Path) -> None:
    (document,) = documents(tmp_path, ARTICLE)
    first, second = document.sentences
    assert first.words == ("The", "Abc-1", "gene", "is", "Abc-1", "-driven.")
    assert second.words == ("red", "and", "white", "cells", "<", "5.")
    for sentence in (first, second):
        for word, start in zip(sentence.words, sentence.starts, strict=True):
            assert document.text[start : start + len(word)] == word


def test_sentences_know_their_part_and_number(tmp_path: Path) -> None:
    (document,) = documents(tmp_path, ARTICLE)
    assert [dict(sentence.metadata) for sentence in document.sentences] == [
        {"sent_id": "MEDLINE:11-0", "part": "title"},
        {"sent_id": "MEDLINE:11-1", "part": "abstract"},
    ]


def test_an_article_that_comes_twice_is_numbered(tmp_path: Path) -> None:
    found = documents(tmp_path, ARTICLE * 3)
    assert [document.id for document in found] == ["MEDLINE:11", "MEDLINE:11#2", "MEDLINE:11#3"]
    assert found[1].sentences[0].metadata["sent_id"] == "MEDLINE:11#2-0"


@pytest.mark.parametrize(
    ("semantic_class", "label"),
    [
        ("G#protein_N/A", "protein"),
        ("G#protein_family_or_group", "protein"),
        ("G#DNA_domain_or_region", "DNA"),
        ("G#RNA_molecule", "RNA"),
        ("G#cell_line", "cell_line"),
        ("G#cell_type", "cell_type"),
        ("G#cell_component", None),
        ("G#proteins", None),
        ("(AND G#protein_molecule G#protein_molecule)", None),
        (None, None),
    ],
)
def test_five_labels_come_from_the_classes(semantic_class: str | None, label: str | None) -> None:
    assert label_of(semantic_class) == label


def sentence(content: str) -> str:
    opening = "<article><articleinfo><bibliomisc>M:1</bibliomisc></articleinfo><title>"
    return f"{opening}<sentence>{content}</sentence></title></article>"


TWO_LABELS = [
    ("DNA_molecule", "protein_subunit", ["protein"], ["DNA", "protein"]),
    ("protein_subunit", "DNA_molecule", ["protein"], ["protein", "DNA"]),
    ("DNA_molecule", "RNA_molecule", ["DNA"], ["DNA", "RNA"]),
    ("RNA_molecule", "RNA_N/A", ["RNA"], ["RNA"]),
]


@pytest.mark.parametrize(("outer", "inner", "one", "every"), TWO_LABELS)
def test_a_span_keeps_one_label_or_all(
    tmp_path: Path, outer: str, inner: str, one: list[str], every: list[str]
) -> None:
    body = sentence(f'<cons sem="G#{outer}"><cons sem="G#{inner}">Xy</cons></cons>')
    (kept,) = documents(tmp_path, body)
    (all_,) = documents(tmp_path, body, "genia-xml-all")
    assert [entity.label for entity in kept.entities] == one
    assert [entity.label for entity in all_.entities] == every


def test_a_term_is_trimmed_and_one_without_words_is_none(tmp_path: Path) -> None:
    body = sentence('a<cons sem="G#cell_type"> b c </cons><cons sem="G#cell_type"> </cons>d')
    (document,) = documents(tmp_path, body)
    assert document.text == "a b c  d"
    assert entities(document) == [("b c", "cell_type")]


def test_the_part_of_speech_edition_gives_tags(tmp_path: Path) -> None:
    body = sentence(
        '<w c="DT">The</w> <cons sem="G#cell_line"><w c="NN">K9</w> <w c="NNS">cells</w></cons>'
        '<w c=".">.</w>'
    )
    (document,) = documents(tmp_path, body)
    assert document.sentences[0].words == ("The", "K9", "cells", ".")
    assert document.sentences[0].tags == ("DT", "NN", "NNS", ".")
    assert entities(document) == [("K9 cells", "cell_line")]


def test_words_that_are_not_all_tagged_have_no_tags(tmp_path: Path) -> None:
    (document,) = documents(tmp_path, sentence('<w c="DT">The</w> rest'))
    assert document.sentences[0].tags == ()


def test_long_text_is_not_cut_where_the_parser_pauses(tmp_path: Path) -> None:
    word = "x" * 300_000
    (document,) = documents(tmp_path, sentence(f'{word} <cons sem="G#cell_type">{word}</cons>'))
    assert document.sentences[0].words == (word, word)


def test_the_format_is_detected_by_the_file_name(tmp_path: Path) -> None:
    path = tmp_path / "corpus.xml.gz"
    path.write_bytes(gzip.compress((HEAD + ARTICLE + "</set>").encode()))
    assert [document.id for document in read(path)] == ["MEDLINE:11"]


def test_after_a_bad_article_the_others_are_read(tmp_path: Path) -> None:
    nameless = ARTICLE.replace("MEDLINE:11", " ")
    stray = sentence("a").replace("<title>", "<title>stray <cons>x</cons>")
    path = tmp_path / "corpus.xml"
    path.write_text(HEAD + nameless + ARTICLE + stray + "</set>")
    corpus = read(path, skip_bad=True)
    assert [document.id for document in corpus] == ["MEDLINE:11"]
    assert [str(error).removeprefix(f"{tmp_path}/") for error in corpus.skipped] == [
        "corpus.xml:15: the article has no id in a <bibliomisc>",
        "corpus.xml:27: text in the title outside a <sentence>: 'stray'",
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<sentence>x</sentence>", "corpus.xml:5: a <sentence> outside an <article>"),
        ("<article>\n<article/></article>", "corpus.xml:6: an <article> inside an <article>"),
        (sentence("a\n<sentence>b</sentence>"), "corpus.xml:6: a <sentence> inside a <sentence>"),
        ("<cons/>", "corpus.xml:5: a <cons> outside a <sentence>"),
        (sentence("<cons>x"), "corpus.xml:5: not XML (mismatched tag)"),
        (sentence("&beta;"), "corpus.xml:5: the XML entity &beta; is not defined"),
    ],
)
def test_damage_is_an_error_with_its_line(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        documents(tmp_path, body)
    assert str(caught.value) == f"{tmp_path}/{message}"


def test_records_before_the_damage_are_read(tmp_path: Path) -> None:
    path = tmp_path / "corpus.xml"
    path.write_text(HEAD + ARTICLE + "<article>")
    corpus = iter(read(path))
    assert next(corpus).id == "MEDLINE:11"
    with pytest.raises(FormatError, match=r"corpus\.xml:16: not XML \(no element found\)"):
        next(corpus)


def test_another_root_is_another_format(tmp_path: Path) -> None:
    path = tmp_path / "corpus.xml"
    path.write_text("<corpus/>")
    with pytest.raises(FormatError, match=r"the root element is <corpus>, expected <set>"):
        list(read(path))
