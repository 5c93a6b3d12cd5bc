"""The native format and the tokens formats: examples and error messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spandet.errors import FormatError, UsageError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity, Sentence


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_smallest_native_record(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"text": "IL-2 gene"})
    (document,) = read(path)
    assert document == Document("IL-2 gene")


def test_tokens_become_text_with_character_offsets(tmp_path: Path) -> None:
    entities = [{"start": 0, "end": 2, "type": "DNA"}, {"start": 0, "end": 1, "type": "protein"}]
    path = written(
        tmp_path / "a.jsonl",
        {"tokens": ["IL-2", "gene"], "entities": entities, "doc_id": "x", "part": "title"},
        {
            "tokens": ["It", "works"],
            "entities": [{"start": 1, "end": 2, "type": "Y"}],
            "doc_id": "x",
        },
        {"tokens": ["Next"], "doc_id": "y", "ltokens": ["before"], "rtokens": ["after"]},
    )
    first, second = read(path)
    assert first.text == "IL-2 gene\nIt works"
    assert first.entities == (
        Entity(CharSpan(0, 9), "DNA"),
        Entity(CharSpan(0, 4), "protein"),
        Entity(CharSpan(13, 18), "Y"),
    )
    assert [sentence.words for sentence in first.sentences] == [("IL-2", "gene"), ("It", "works")]
    assert first.sentences[0].metadata == {"part": "title"}
    assert (second.id, second.sentences[0].before, second.sentences[0].after) == (
        "y",
        ("before",),
        ("after",),
    )


def test_isolated_records_are_documents_named_by_their_own_id(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"tokens": ["a"], "sent_id": "s-0"}, {"tokens": ["b"]})
    assert [document.id for document in read(path)] == ["s-0", None]


GOOD = {"text": "IL-2 gene", "entities": []}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": 5}, "text is 5, expected a string"),
        ({"entities": []}, "text is missing, expected a string"),
        ([1], r"the record is \[1\], expected an object"),
        (GOOD | {"entities": {}}, "entities is {}, expected a list"),
        (GOOD | {"entities": [3]}, r"entities\[0\] is 3, expected an object"),
        (
            GOOD | {"entities": [{"start": 5, "end": 5, "label": "X"}]},
            r"entity 0: start 5 is not before end 5; is the end inclusive\? it must be exclusive",
        ),
        (
            GOOD | {"entities": [{"start": 5, "end": 10, "label": "X"}]},
            "entity 0: 5:10 is outside the 9 characters of the text",
        ),
        (
            GOOD | {"entities": [{"start": True, "end": 2, "label": "X"}]},
            "entity 0: start is true, expected a whole number",
        ),
        (
            GOOD | {"entities": [{"start": 0, "end": 2, "label": "X", "score": 2}]},
            "entity 0: score is 2, expected a number from 0 to 1",
        ),
        (
            GOOD
            | {"entities": [{"start": 0, "end": 9, "label": "X", "fragments": [[0, 2], [4, 6]]}]},
            "entity 0: the fragments cover 0:6, but start and end are 0:9",
        ),
        (
            GOOD | {"sentences": [{"words": [[0, 4]], "tags": ["NN", "NN"]}]},
            "sentence 0: 2 tags for 1 words, expected one per word",
        ),
        (
            GOOD | {"sentences": [{"words": [[0, 4, 5]]}]},
            r"sentence 0: words contains \[0, 4, 5\], expected \[start, end\]",
        ),
        (
            GOOD | {"sentences": [{"words": [[5, 9], [0, 4]]}]},
            "word 1 of sentence 0 starts at 0, before the end 9 of the one before",
        ),
        (
            GOOD | {"sentences": [{"words": [[0, 4], [3, 9]]}]},
            "word 1 of sentence 0 starts at 3, before the end 4 of the one before",
        ),
        (
            GOOD | {"sentences": [{"words": [[5, 9]]}, {"words": []}, {"words": [[0, 4]]}]},
            "word 0 of sentence 2 starts at 0, before the end 9 of the one before",
        ),
        (
            GOOD
            | {"entities": [{"start": 0, "end": 9, "label": "X", "fragments": [[0, 5], [4, 9]]}]},
            "entity 0: fragment 1 starts at 4, expected after the end 5 of the one before",
        ),
        (
            GOOD
            | {"entities": [{"start": 0, "end": 9, "label": "X", "fragments": [[5, 9], [0, 4]]}]},
            "entity 0: fragment 1 starts at 0, expected after the end 9 of the one before",
        ),
        (
            GOOD
            | {"entities": [{"start": 0, "end": 9, "label": "X", "fragments": [[0, 4], [4, 9]]}]},
            "entity 0: fragment 1 starts at 4, expected after the end 4 of the one before",
        ),
    ],
)
def test_a_bad_native_record_names_line_and_field(
    tmp_path: Path, record: Any, message: str
) -> None:
    path = written(tmp_path / "dev.jsonl", GOOD, record)
    with pytest.raises(FormatError, match=rf"dev\.jsonl:2: {message}$"):
        list(read(path, "jsonl"))


@pytest.mark.parametrize("name", ["jsonl", "prodigy"])
def test_words_that_could_not_be_read_back_are_not_written(tmp_path: Path, name: str) -> None:
    bad = Document("a b", own_sentences=(Sentence(("b",), (2,)), Sentence(("a",), (0,))))
    with pytest.raises(FormatError, match="document 0: word 0 of sentence 1 starts at 0, before"):
        write([bad], tmp_path / "bad.jsonl", name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"entities": []}, "tokens is missing, expected a list"),
        ({"tokens": ["a", 2]}, r"tokens\[1\] is 2, expected a string"),
        ({"tokens": ["a", ""]}, r"tokens\[1\] is empty, expected a word"),
        ({"tokens": ["a"], "pos": []}, None),
        ({"tokens": ["a"], "pos": ["X", "Y"]}, "pos has 2 tags for 1 tokens, expected one each"),
        (
            {"tokens": ["a"], "entities": [{"start": 0, "end": 0, "type": "X"}]},
            "entity 0: start 0 is not before end 0",
        ),
        (
            {"tokens": ["a"], "entities": [{"start": 0, "end": 2, "type": "X"}]},
            "entity 0: 0:2 is outside the 1 words of the text",
        ),
        ({"tokens": ["a"], "entities": [{"start": 0, "end": 1}]}, "entity 0: type is missing"),
        ({"tokens": ["a"], "doc_id": 7}, "doc_id is 7, expected a string"),
    ],
)
def test_a_bad_tokens_record_names_line_and_field(
    tmp_path: Path, record: Any, message: str | None
) -> None:
    path = written(tmp_path / "dev.jsonl", {"tokens": ["good"]}, record)
    if message is None:
        assert len(list(read(path))) == 2
        return
    with pytest.raises(FormatError, match=rf"dev\.jsonl:2: {message}"):
        list(read(path))


def test_broken_json_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text('{"text": "a"}\n{"text": \n')
    with pytest.raises(FormatError, match=r"dev\.jsonl:2: not JSON"):
        list(read(path))


def test_bad_records_are_skipped_and_listed_on_request(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.jsonl", GOOD, {"text": 5}, GOOD, {"txt": ""})
    corpus = read(path, skip_bad=True)
    for _ in range(2):  # a corpus can be read again and does not add up
        assert len(list(corpus)) == 2
        assert [error.place for error in corpus.skipped] == [f"{path}:2", f"{path}:4"]
        assert corpus.skips == 2


def test_of_very_many_bad_records_only_the_first_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.jsonl", *[{"text": 5}] * 1500)
    corpus = read(path, skip_bad=True)
    assert list(corpus) == []
    assert corpus.skips == 1500
    assert [error.place for error in corpus.skipped] == [f"{path}:{n}" for n in range(1, 1001)]


def test_a_list_reports_the_line_of_its_bad_item(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text('[{"tokens": ["a"]},\n\n {"tokens": 4}]')
    with pytest.raises(FormatError, match=r"dev\.json:3: tokens is 4, expected a list"):
        list(read(path))


@pytest.mark.parametrize(
    "damage", ["", "{}", "[", '[{"tokens": []}', '[{"tokens": []} {}]', "[1,]"]
)
def test_a_damaged_list_is_a_format_error(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "dev.json"
    path.write_text(damage)
    with pytest.raises(FormatError, match=r"dev\.json:1: "):
        list(read(path, "tokens-json"))


def test_a_list_larger_than_a_chunk_is_read_item_by_item(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    records = [
        {"tokens": ["ä" * 300] * (500 if i == 3 else 1), "sent_id": str(i)} for i in range(999)
    ]
    path.write_text(json.dumps(records, ensure_ascii=False))
    assert [document.id for document in read(path)] == [str(i) for i in range(999)]


def test_word_formats_refuse_what_they_cannot_represent(tmp_path: Path) -> None:
    cut = Document("CD28-mediated", (Entity(CharSpan(0, 2), "protein"),), "d7")
    with pytest.raises(
        FormatError, match=r"document 'd7': entity 'CD' \(protein, characters 0:2\)"
    ):
        write([cut], tmp_path / "out.jsonl", "tokens-jsonl")
    gap = Document(
        "left or right arm", (Entity.from_fragments([CharSpan(0, 4), CharSpan(14, 17)], "X"),)
    )
    with pytest.raises(FormatError, match="document 0: the X entity at words 0:4 is discontinuous"):
        write([gap], tmp_path / "out.jsonl", "tokens-jsonl")
    assert list(tmp_path.iterdir()) == []


def test_formats_are_detected_by_name_and_first_bytes(tmp_path: Path) -> None:
    native = written(tmp_path / "a.jsonl", {"text": "x", "entities": []})
    tokens = written(tmp_path / "b.jsonl", {"tokens": ["x"], "entities": []})
    assert next(iter(read(native))).own_sentences is None
    assert next(iter(read(tokens))).own_sentences is not None
    odd = written(tmp_path / "c.jsonl", {"words": []})
    with pytest.raises(
        UsageError, match=r"cannot detect the format of .*c\.jsonl: give it with --from"
    ):
        read(odd)
    with pytest.raises(UsageError, match="no format is called 'yaml'"):
        read(odd, "yaml")
    with pytest.raises(UsageError, match="cannot detect a format from the name"):
        write([], tmp_path / "out.docx")


def test_keys_inside_a_long_first_record_are_ignored(tmp_path: Path) -> None:
    entity = {"start": 0, "end": 1, "label": "X", "note": 'a "label": {['}
    record = {"text": "x" * 70_000, "entities": [entity] * 3, "id": "long"}
    assert next(iter(read(written(tmp_path / "a.jsonl", record)))).id == "long"
    turned = dict(reversed(record.items()))
    assert next(iter(read(written(tmp_path / "b.jsonl", GOOD | turned)))).id == "long"


def test_the_format_of_a_folder_is_that_of_the_most_specific_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("IL-2 gene")
    assert [document.text for document in read(tmp_path)] == ["IL-2 gene"]
    (tmp_path / "a.ann").write_text("T1\tDNA 0 9\tIL-2 gene\n")
    (document,) = read(tmp_path)
    assert document.entities == (Entity(CharSpan(0, 9), "DNA"),)
    assert [d.text for d in read(tmp_path, "text-lines")] == ["IL-2 gene"]


def test_after_a_damaged_file_of_a_folder_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"tokens": ["a"]}, {"tok')
    (tmp_path / "b.json").write_text('[{"tokens": ["b"]}]')
    corpus = read(tmp_path, "tokens-json", skip_bad=True)
    assert [document.text for document in corpus] == ["a", "b"]
    assert [error.place for error in corpus.skipped] == [f"{tmp_path / 'a.json'}:1"]
    with pytest.raises(FormatError, match=r"a\.json:1"):
        list(read(tmp_path, "tokens-json"))
