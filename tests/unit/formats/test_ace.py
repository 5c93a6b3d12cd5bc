"""ACE 2004 and 2005, after their public description; the text is our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.errors import FormatError
from spandet.formats import read
from spandet.text import Document

SGM = """<DOC>
<DOCID> town.1 </DOCID>
<BODY><TEXT>
The mayor of Lund & Co.
visited R&amp;D in Oslo.
</TEXT></BODY>
</DOC>
"""
# Without tags: "\n town.1 \n\nThe mayor of Lund & Co.\nvisited R&amp;D in Oslo.\n\n\n"
APF = """<?xml version="1.0"?>
<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">
<source_file URI="town.sgm" SOURCE="newswire" TYPE="text" AUTHOR="us" ENCODING="UTF-8">
<document DOCID="town.1">
<entity ID="E2" TYPE="ORG" SUBTYPE="Commercial" CLASS="SPC">
  <entity_mention ID="E2-1" TYPE="NAM" LDCTYPE="NAM">
    <extent><charseq START="24" END="33">Lund &amp; Co.</charseq></extent>
    <head><charseq START="24" END="33">Lund &amp; Co.</charseq></head>
  </entity_mention>
  <entity_mention ID="E2-2" TYPE="NAM" LDCTYPE="NAM">
    <extent><charseq START="43" END="49">R&amp;D</charseq></extent>
    <head><charseq START="43" END="49">R&amp;D</charseq></head>
  </entity_mention>
  <entity_attributes><name NAME="R&amp;D"><charseq START="43" END="49">R&amp;D</charseq></name>
  </entity_attributes>
</entity>
<entity ID="E1" TYPE="PER" SUBTYPE="Individual" CLASS="SPC">
  <entity_mention ID="E1-1" TYPE="NOM" LDCTYPE="NOM">
    <extent><charseq START="11" END="33">The mayor of Lund &amp; Co.</charseq></extent>
    <head><charseq START="15" END="19">mayor</charseq></head>
  </entity_mention>
</entity>
<timex2 ID="T1"><timex2_mention ID="T1-1"><extent>
  <charseq START="0" END="999">never read</charseq></extent></timex2_mention></timex2>
</document>
</source_file>
"""


def write(folder: Path, apf: str = APF, sgm: str | None = SGM) -> Path:
    path = folder / "town.apf.xml"
    path.write_text(apf)
    if sgm is not None:
        (folder / "town.sgm").write_text(sgm)
    return path


def entities(document: Document) -> list[tuple[str, str]]:
    return [(document.text_of(entity), entity.label) for entity in document.entities]


def test_full_mentions_in_the_order_of_the_text(tmp_path: Path) -> None:
    (document,) = read(write(tmp_path))
    assert document.id == "town.1"
    assert document.text.startswith("\n town.1 \n\nThe mayor of Lund & Co.\nvisited R&amp;D in")
    assert entities(document) == [
        ("The mayor of Lund & Co.", "PER"),
        ("Lund & Co.", "ORG"),
        ("R&amp;D", "ORG"),
    ]


def test_heads(tmp_path: Path) -> None:
    (document,) = read(write(tmp_path), "ace-heads")
    assert entities(document) == [("mayor", "PER"), ("Lund & Co.", "ORG"), ("R&amp;D", "ORG")]


def test_a_folder_is_its_annotations(tmp_path: Path) -> None:
    write(tmp_path)
    assert [document.id for document in read(tmp_path, "ace")] == ["town.1"]


def test_without_a_docid_the_file_names_the_document(tmp_path: Path) -> None:
    (document,) = read(write(tmp_path, APF.replace(' DOCID="town.1"', "")))
    assert document.id == "town"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'START="11" END="33"',
            'START="12" END="34"',
            (
                'entity_mention E1-1: characters 12:35 of the text are "he mayor of Lund & Co.'
                '\\n", but the annotation has "The mayor of Lund & Co."'
            ),
        ),
        (
            'START="11" END="33"',
            'START="33" END="32"',
            "entity_mention E1-1: START 33 is after END 32; END is the last character here",
        ),
        (
            'START="11" END="33"',
            'START="11" END="1000"',
            "entity_mention E1-1: 11:1001 is outside the 62 characters of the text",
        ),
        (
            'START="11"',
            'START="1_1"',
            'entity_mention E1-1: START of <charseq> is "1_1", expected a whole number',
        ),
        ('TYPE="PER" ', "", "<entity> has no TYPE"),
        (
            '<extent><charseq START="11" END="33">The mayor of Lund &amp; Co.</charseq></extent>',
            "",
            "entity_mention E1-1: <entity_mention> has no <extent>",
        ),
    ],
)
def test_invalid_records_are_errors_with_their_position(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in APF
    with pytest.raises(FormatError) as caught:
        list(read(write(tmp_path, APF.replace(old, new))))
    assert str(caught.value) == f"{tmp_path}/town.apf.xml: {message}"


def test_a_missing_text_can_be_skipped(tmp_path: Path) -> None:
    corpus = read(write(tmp_path, sgm=None), skip_bad=True)
    assert list(corpus) == []
    (error,) = corpus.skipped
    assert "town.apf.xml: its text is missing, expected " in str(error)
    assert str(error).endswith("town.sgm")


def test_damaged_xml_is_an_error_with_its_line(tmp_path: Path) -> None:
    corpus = read(write(tmp_path, APF.replace("</entity>", "", 1)), skip_bad=True)
    assert list(corpus) == []
    assert "town.apf.xml:25: not XML (mismatched tag)" in str(corpus.skipped[0])
