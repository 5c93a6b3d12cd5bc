"""Entities in a column or key that a reader does not read are an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import Document, WordRow

GERMEVAL = "Die\tO\tO\nUni\tB-ORG\tO\nLund\tI-ORG\tB-LOC\n"
TRIPLE = [[0, 3, "PER"]]
SPAN = {"start": 0, "end": 3, "label": "PER"}
TEXT = {"text": "Zoe ran"}
WORDS = {"tokens": ["Zoe", "ran"]}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("conll", GERMEVAL, ':2: column 2 has the tag "B-ORG", .*: no format reads it'),
        ("conll", "1\tUni\tB-ORG\tO\n2\tx\tO\tO\n", ":1: column 3 .* format germeval reads it"),
        ("conll", "Zoe\tB-PER\tO\tO\tO\nran\tO\tO\tO\tO\n", ':1: column 2 has the tag "B-PER"'),
        ("conll-bioes", "a NN S-PER O\nb NN O O\n", ':1: column 3 has the tag "S-PER"'),
        ("conll", "Zoe NN B-NP B-PER O\nran VB B-VP O O\n", ':1: column 4 has the tag "B-PER"'),
        ("conll", "Zoe _ O\nLund B-LOC O\n", ':2: column 2 has the tag "B-LOC"'),
        (
            "conll2012",
            "#begin document (a)\na 0 0 x NN * - - - - * B-PER -\n\n#end document\n",
            ':2: column 12 has the tag "B-PER"',
        ),
    ],
)
def test_a_layer_of_tags_that_is_not_read(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        list(read(path, name))


@pytest.mark.parametrize(
    "text",
    [
        "EU NNP B-NP S-ORG\nrejects VBZ B-VP O\nout RP B-PRT O\n",  # CoNLL-2003
        "Die ART I-NC O\ngeht VVFIN B-VC O\nin APPR B-PC O\n",  # its German part
        "E-Mails E-Mail NN O\n",  # a lemma
        "B-52 B-52 O\n",
        "Zoe NNP O\nS-1 S-X O\n",  # one odd part of speech among others
        "( -LRB- O\n- - O\n",
        "Zoe O O\nran O O\n",  # a layer without any entity
    ],
)
def test_columns_of_other_things_stay_unread(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.conll"
    path.write_text(text)
    (document,) = read(path)
    assert len(document.sentences[0]) == text.count("\n")


@pytest.mark.parametrize(
    ("name", "record", "message"),
    [
        ("jsonl", TEXT | {"spans": [SPAN]}, "spans has spans with labels, .* prodigy reads it"),
        ("jsonl", TEXT | {"label": TRIPLE}, "label has .*: the format doccano reads it"),
        ("jsonl", TEXT | {"ents": [SPAN]}, "ents has .*: no format reads it"),
        ("jsonl", TEXT | {"label": {"PER": {"Zoe": [[0, 2]]}}}, "label has spans"),
        ("jsonl", TEXT | {"annotations": [{"result": [{"value": SPAN}]}]}, "annotations has spans"),
        ("jsonl", TEXT | {"found": [["PER", 0, 3]]}, "found has spans with labels"),
        ("jsonl", TEXT | {"x": [{"beginOffset": 0, "endOffset": 3, "Type": "P"}]}, "x has spans"),
        ("jsonl", TEXT | WORDS | {"ner_tags": ["B-PER", "O"]}, "ner_tags has a tag for each word"),
        ("jsonl", TEXT | WORDS | {"tags": [1, 0]}, "tags has a tag for each word"),
        ("jsonl", TEXT | {"ner": {"PER": ["Zoe"]}}, "ner has annotation"),
        ("tokens-jsonl", WORDS | {"ner_tags": ["B-PER", "O"]}, "ner_tags has a tag for each word"),
        ("tokens-jsonl", WORDS | {"ner_tags": [3, 0]}, "ner_tags has a tag for each word"),
        ("tokens-jsonl", WORDS | {"ner_tags": ["PER", "O"]}, "ner_tags has a tag for each word"),
        ("tokens-jsonl", WORDS | {"labels": ["S-PER", "O"]}, "labels has a tag for each word"),
        ("tokens-jsonl", WORDS | {"layer 2": ["O", "B-X"]}, "layer 2 has a tag for each word"),
        ("tokens-jsonl", WORDS | {"ner": [[0, 0, "PER"]]}, "ner has spans with labels"),
        ("tokens-jsonl", WORDS | {"spans": [SPAN]}, "spans has spans with labels"),
        ("tokens-jsonl", WORDS | {"pos": ["B-PER", "O"]}, r'pos\[0\] is "B-PER", expected a part'),
        ("prodigy", TEXT | {"entities": [SPAN]}, "entities has .*: the format jsonl reads it"),
        ("prodigy", TEXT | {"label": TRIPLE}, "label has .*: the format doccano reads it"),
        ("doccano", TEXT | {"spans": [SPAN]}, "spans has .*: the format prodigy reads it"),
        ("label-studio", {"data": TEXT | {"spans": [SPAN]}}, "spans has spans with labels"),
        (
            "label-studio",
            {"data": TEXT, "completions": [{"result": [{"value": SPAN}]}]},
            "completi",
        ),
        (
            "label-studio",
            {"data": TEXT, "annotations": [{"result": [{"type": "hypertextlabels"}]}]},
            'annotation 0 result 0: the type is "hypertextlabels"',
        ),
    ],
)
def test_a_field_with_entities_that_is_not_read(
    tmp_path: Path, name: str, record: Any, message: str
) -> None:
    path = tmp_path / "file"
    path.write_text(json.dumps([record] if name == "label-studio" else record))
    with pytest.raises(FormatError, match=f":1: {message}"):
        list(read(path, name))


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("jsonl", TEXT | {"label": "positive", "tags": ["B-movie"], "year": 1999}),
        ("jsonl", TEXT | {"labels": ["sports"], "metadata": {"spans": [SPAN]}}),
        ("jsonl", TEXT | {"spans": [], "ner_tags": [], "author": {"start": 1, "end": 2}}),
        ("jsonl", TEXT | {"tokens": [SPAN | {"tag": "NN"}], "sents": [SPAN], "scores": [1, 2, 3]}),
        ("tokens-jsonl", WORDS | {"ner_tags": ["O", "O"], "pos_tags": [22, 7]}),
        ("tokens-jsonl", WORDS | {"chunk_tags": ["B-NP", "B-VP"], "ner_tags": [0, 0]}),
        ("tokens-jsonl", WORDS | {"relations": [{"head": 0, "tail": 1, "type": "R"}]}),
        ("tokens-jsonl", WORDS | {"pos": ["B-NP", "X"], "lemmas": ["Zoe", "run"], "heads": [1, 0]}),
        ("prodigy", TEXT | {"spans": [SPAN], "relations": [{"head_span": SPAN, "label": "R"}]}),
        ("prodigy", TEXT | {"spans": [SPAN], "versions": [{"spans": [SPAN]}], "answer": "accept"}),
        ("doccano", TEXT | {"label": TRIPLE, "Comments": ["see p. 3"]}),
        (
            "label-studio",
            {"data": TEXT, "drafts": [], "annotations": [{"result": [{"type": "relation"}]}]},
        ),
    ],
)
def test_fields_of_other_things_are_fine(tmp_path: Path, name: str, record: Any) -> None:
    path = tmp_path / "file"
    path.write_text(json.dumps([record] if name == "label-studio" else record))
    assert len(list(read(path, name))) == 1


@pytest.mark.parametrize("name", ["tokens-jsonl", "tokens-json"])
@pytest.mark.parametrize("metadata", [{"entities": []}, {"ner": ["B-X"]}])
def test_metadata_that_would_be_taken_for_annotation_is_not_written(
    tmp_path: Path, name: str, metadata: dict[str, Any]
) -> None:
    document = Document.from_rows([WordRow(["Zoe"], metadata=metadata)])
    with pytest.raises(FormatError, match=r"the metadata \"entities\" has|ner has a tag"):
        write([document], tmp_path / "file", name)
    assert list(tmp_path.iterdir()) == []
