"""Shards of a corpus: together they are the whole corpus, for any size of shards."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as arrow

import spandet
from spandet.errors import FormatError, UsageError
from spandet.integrations import parquet
from spandet.integrations.shards import Shard, part_name, plan, write_part
from spandet.text import CharSpan, Document, Entity, Sentence
from support.strategies import raw_documents, worded_documents


def read_all(shards: list[Shard]) -> list[Document]:
    found = [parsed for shard in shards for parsed in shard.read()]
    assert all(isinstance(parsed, Document) for parsed in found)
    return found  # type: ignore[return-value]


@settings(max_examples=40)
@given(texts=st.lists(st.text(), max_size=8), shard_bytes=st.integers(1, 200), blank=st.booleans())
def test_shards_of_lines_are_the_whole_corpus(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], shard_bytes: int, blank: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "corpus.jsonl"
    corpus = [Document(text, id=str(number)) for number, text in enumerate(texts)]
    spandet.write(corpus, path)
    if blank:
        path.write_bytes(b"\n\n" + path.read_bytes().rstrip(b"\n"))
    shards = plan([str(path)], shard_bytes=shard_bytes)
    assert read_all(shards) == corpus
    assert [shard.number for shard in shards] == list(range(len(shards)))


def test_several_inputs_keep_their_order(tmp_path: Path) -> None:
    corpus = [Document(f"text {number}", id=str(number)) for number in range(30)]
    spandet.write(corpus[:10], tmp_path / "a.jsonl")
    folder = tmp_path / "b"
    (folder / "deep").mkdir(parents=True)
    spandet.write(corpus[10:15], folder / "1.jsonl.gz")
    spandet.write(corpus[15:20], folder / "deep" / "2.jsonl")
    spandet.write(corpus, folder / "_not.jsonl")
    (folder / "note.txt").write_text("not a record")
    with (tmp_path / "c.parquet").open("wb") as out:
        parquet.write(corpus[20:], out)
    inputs = [str(tmp_path / "a.jsonl"), folder.as_uri(), str(tmp_path / "c.parquet")]
    assert read_all(plan(inputs, shard_bytes=64)) == corpus


def test_a_gzipped_file_is_one_shard(tmp_path: Path) -> None:
    spandet.write([Document("text")] * 50, tmp_path / "a.jsonl.gz")
    (shard,) = plan([str(tmp_path / "a.jsonl.gz")], shard_bytes=10)
    assert len(read_all([shard])) == 50


def test_damaged_gzip_is_an_error_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "x"}\n' * 99)[:-12])
    with pytest.raises(FormatError, match=r"a\.jsonl\.gz: damaged gzip"):
        list(plan([str(path)], shard_bytes=10)[0].read())


def test_a_bad_line_is_an_error_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x"}\n' * 4 + '{"text": 5}\n' + '{"text": "y"}\n')
    shards = plan([str(path)], shard_bytes=28)
    assert [len(list(shard.read())) for shard in shards] == [2, 2, 2]
    error = next(iter(shards[2].read()))
    assert isinstance(error, FormatError)
    assert str(error).endswith("a.jsonl from byte 56:1: text is 5, expected a string")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("-", "standard input"), ("gone.jsonl", "no such file"), ("a.txt", "convert it first")],
)
def test_invalid_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, wanted: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(UsageError, match=wanted):
        plan([name], shard_bytes=100)


def test_a_folder_without_input_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no file \.jsonl or"):
        plan([str(tmp_path)], shard_bytes=100)


def test_an_unknown_uri_scheme_is_an_error() -> None:
    with pytest.raises(UsageError, match="cannot use nonsense://x"):
        plan(["nonsense://x"], shard_bytes=100)


@settings(max_examples=40)
@given(raw_documents() | worded_documents())
def test_parquet_round_trip_of_documents(
    tmp_path_factory: pytest.TempPathFactory, one: Document
) -> None:
    folder = tmp_path_factory.mktemp("parquet")
    write_part([one, one], str(folder), "part-000000.parquet")
    shards = plan([str(folder)], shard_bytes=1)
    bare = Document(one.text, (), one.id, one.metadata, one.own_sentences)
    assert read_all(shards) == [bare, bare]
    (row, _) = arrow.read_table(folder / "part-000000.parquet").to_pylist()
    assert row["entities"] == [
        {**{k: v for k, v in r.items() if k not in ("document", "id")}}
        for r in spandet.to_records([one])
    ]


def test_parquet_files_of_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    table = pa.table({"id": [7, 8], "text": ["a", None], "extra": [1.5, 2.5]})
    arrow.write_table(table, path)
    first, second = plan([str(path)], shard_bytes=1)[0].read()
    assert first == Document("a", id="7")
    assert "theirs.parquet: row 1 of group 0: text is missing" in str(second)
    arrow.write_table(table.drop_columns(["text"]), path)
    with pytest.raises(FormatError, match="expected one called text"):
        plan([str(path)], shard_bytes=1)
    path.write_bytes(b"nonsense")
    with pytest.raises(FormatError, match="not a Parquet file"):
        plan([str(path)], shard_bytes=1)


def test_row_groups_are_shards(tmp_path: Path) -> None:
    corpus = [Document(f"text {number}") for number in range(600)]
    write_part(corpus, str(tmp_path), "a.parquet")
    shards = plan([str(tmp_path)], shard_bytes=1)
    assert len(shards) > 1
    assert read_all(shards) == corpus


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_parts_are_written_atomically(tmp_path: Path, kind: str) -> None:
    def broken() -> object:
        yield Document("good")
        raise FormatError("bad")

    with pytest.raises(FormatError, match="bad"):
        write_part(broken(), str(tmp_path), f"part-0.{kind}")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_lone_surrogates_are_allowed_in_jsonl_but_not_in_parquet(tmp_path: Path) -> None:
    odd = Document("\ud800", (Entity(CharSpan(0, 1), "x"),))
    write_part([odd], str(tmp_path), "part-0.jsonl")
    assert read_all(plan([str(tmp_path)], shard_bytes=9)) == [odd]
    with pytest.raises(FormatError, match=r"U\+D800 is a lone surrogate"):
        write_part([odd], str(tmp_path), "part-0.parquet")


def test_parts_sort_in_the_order_of_the_input() -> None:
    names = [part_name(Shard(n, "jsonl", "a", 0, 1), "jsonl") for n in (2, 10, 100_000)]
    assert names == sorted(names)


def test_parquet_round_trip_of_given_words(tmp_path: Path) -> None:
    sentence = Sentence(("a", "b"), (0, 2), ("X", "Y"))
    one = Document("a b", (), "1", {"k": [1]}, (sentence,))
    write_part([one], str(tmp_path), "part-0.parquet")
    assert read_all(plan([str(tmp_path)], shard_bytes=9)) == [one]
