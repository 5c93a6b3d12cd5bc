"""ERE, after its public description; the text is our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.errors import FormatError
from spandet.formats import read
from spandet.text import Document

SOURCE = "<DOC>\n<P>Our mayor met R&amp;D.</P>\n</DOC>\n"
ERE = """<?xml version="1.0" encoding="UTF-8"?>
<deft_ere kit_id="k1" doc_id="post_7" source_type="multi_post">
  <entities>
    <entity id="ent-1" type="ORG" specificity="specific">
      <entity_mention id="m-2" noun_type="NAM" source="post_7" offset="23" length="7">
        <mention_text>R&amp;D</mention_text>
      </entity_mention>
    </entity>
    <entity id="ent-2" type="PER" specificity="specific">
      <entity_mention id="m-1" noun_type="NOM" source="post_7" offset="9" length="9">
        <mention_text>Our mayor</mention_text>
        <nom_head source="post_7" offset="13" length="5">mayor</nom_head>
      </entity_mention>
    </entity>
  </entities>
  <fillers><filler id="f-1" source="post_7" offset="0" length="999" type="title">no</filler>
  </fillers>
</deft_ere>
"""


def write(folder: Path, ere: str = ERE, *, text: str = "ere/post.cmp.txt") -> Path:
    path = folder / "ere" / "post.rich_ere.xml"
    path.parent.mkdir(parents=True)
    path.write_text(ere)
    source = folder / text
    source.parent.mkdir(exist_ok=True)
    source.write_text(SOURCE)
    return path


def entities(document: Document) -> list[tuple[str, str]]:
    return [(document.text_of(entity), entity.label) for entity in document.entities]


@pytest.mark.parametrize("folder", ["ere", "source"])
@pytest.mark.parametrize("suffix", [".txt", ".xml", ".mpdf.xml", ".cmp.txt"])
def test_offsets_count_the_raw_source(tmp_path: Path, folder: str, suffix: str) -> None:
    (document,) = read(write(tmp_path, text=f"{folder}/post{suffix}"))
    assert (document.id, document.text) == ("post_7", SOURCE)
    assert entities(document) == [("Our mayor", "PER"), ("R&amp;D", "ORG")]


def test_heads(tmp_path: Path) -> None:
    (document,) = read(write(tmp_path), "ere-heads")
    assert entities(document) == [("mayor", "PER"), ("R&amp;D", "ORG")]


def test_an_annotation_is_not_its_own_source(tmp_path: Path) -> None:
    path = tmp_path / "post.xml"
    path.write_text(ERE)
    with pytest.raises(
        FormatError, match=r"post\.xml: its source is missing, expected .*post with"
    ):
        list(read(path, "ere"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('offset="9"', 'offset="8"', 'entity_mention m-1: characters 8:17 of the text are ">Our'),
        ('offset="9"', 'offset="-9"', 'entity_mention m-1: offset of <entity_mention> is "-9"'),
        ('length="9"', 'length="0"', "entity_mention m-1: length of <entity_mention> is 0,"),
        ('length="9"', 'length="99"', "entity_mention m-1: 9:108 is outside the 43 characters"),
        (' type="PER"', "", "<entity> has no type"),
        (
            "<mention_text>Our mayor</mention_text>",
            "",
            "entity_mention m-1: <entity_mention> has no <mention_text>",
        ),
    ],
)
def test_invalid_records_are_errors_with_their_position(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in ERE
    with pytest.raises(FormatError) as caught:
        list(read(write(tmp_path, ERE.replace(old, new))))
    assert str(caught.value).startswith(f"{tmp_path}/ere/post.rich_ere.xml: {message}")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"root element is <set>, expected <deft_ere>"):
        list(read(write(tmp_path, "<set/>")))


def test_without_a_doc_id_the_file_names_the_document(tmp_path: Path) -> None:
    (document,) = read(write(tmp_path, ERE.replace(' doc_id="post_7"', "")))
    assert document.id == "post"
