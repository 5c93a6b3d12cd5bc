"""A job that is interrupted anywhere and resumed gives the bytes of an uninterrupted one."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from spandet import write
from spandet.errors import FormatError, SpandetError, UsageError
from spandet.formats import FORMATS
from spandet.jobs import Inputs, Job, JobOptions, Spool
from spandet.text import Document
from support.predicting_toys import Fake, fake, job, six_windows


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return six_windows(tmp_path, monkeypatch)


def test_a_job_interrupted_anywhere_and_resumed_gives_the_same_bytes(
    inputs: list[str], tmp_path: Path
) -> None:
    whole = job(inputs, tmp_path / "whole.jsonl")
    whole.run(fake(), "f")
    wanted = (tmp_path / "whole.jsonl").read_bytes()
    assert not whole.spool_path.exists()
    one = job(inputs, tmp_path / "one.jsonl")
    with pytest.raises(KeyboardInterrupt):
        one.run(fake(dies_after=4), "f")
    spooled = one.spool_path.read_bytes()
    ends = [n + 1 for n, byte in enumerate(spooled) if byte == 10]
    assert len(ends) == 1 + 4 + 4
    cuts = {0, 1, len(spooled) - 1, len(spooled), *ends, *(end - 3 for end in ends)}
    for cut in sorted(cuts):
        one.spool_path.write_bytes(spooled[:cut])
        one.check(resume=True, overwrite=False)
        again = fake()
        one.run(again, "f", resume=True)
        assert (tmp_path / "one.jsonl").read_bytes() == wanted
        assert not one.spool_path.exists()
        marks = [line for line in spooled[:cut].splitlines(keepends=True) if b'"done"' in line]
        kept = sum(line.endswith(b"\n") for line in marks)
        assert cast("Fake", again).calls == 6 - kept


def test_another_job_cannot_be_resumed(inputs: list[str], tmp_path: Path) -> None:
    one = job(inputs, tmp_path / "out.jsonl", min_score=0.25)
    with pytest.raises(KeyboardInterrupt):
        one.run(fake(dies_after=2), "f")
    with pytest.raises(UsageError, match=r"created with model 'f', and this is 'g'"):
        one.run(fake(), "g", resume=True)
    other = job(inputs, tmp_path / "out.jsonl", min_score=0.5)
    with pytest.raises(UsageError, match=r"created with min_score 0.25, and this is 0.5"):
        other.run(fake(), "f", resume=True)
    other = job(inputs[:1], tmp_path / "out.jsonl", min_score=0.25)
    with pytest.raises(UsageError, match="created with inputs"):
        other.run(fake(), "f", resume=True)
    assert one.spool_path.exists()


def test_a_changed_input_is_noticed(inputs: list[str], tmp_path: Path) -> None:
    one = job(inputs, tmp_path / "out.jsonl")
    with pytest.raises(KeyboardInterrupt):
        one.run(fake(dies_after=2), "f")
    write([Document("other", id="0")], inputs[0])
    with pytest.raises(UsageError, match=r"a\.jsonl has changed since .* created"):
        one.run(fake(), "f", resume=True)


def test_a_new_run_does_not_overwrite_an_interrupted_one(inputs: list[str], tmp_path: Path) -> None:
    one = job(inputs, tmp_path / "out.jsonl")
    with pytest.raises(KeyboardInterrupt):
        one.run(fake(dies_after=2), "f")
    with pytest.raises(UsageError, match=r"out\.jsonl\.spool .* --resume, or .* --overwrite"):
        one.check(resume=False, overwrite=False)
    one.check(resume=False, overwrite=True)
    one.run(fake(), "f")
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 6


def test_a_bad_record_keeps_what_was_done_before_it(inputs: list[str], tmp_path: Path) -> None:
    Path(inputs[1]).write_bytes(b'{"text": 3}\n' + Path(inputs[1]).read_bytes())
    out = tmp_path / "out.jsonl"
    one = job(inputs, out)
    with pytest.raises(FormatError, match=r"b\.jsonl:1: text is 3"):
        one.run(fake(), "f")
    with Spool.resume(one.spool_path, one._header("f")) as spool:
        assert spool.done == 3
    again = job(inputs, out, skip_bad=True)
    again.run(fake(), "f", resume=True)
    assert len(out.read_bytes().splitlines()) == 6
    assert again.skips == 1


def test_a_run_without_results_leaves_no_files(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    one = Job(
        Inputs.of([str(tmp_path / "bad.jsonl")], "jsonl"),
        str(tmp_path / "o.jsonl"),
        None,
        JobOptions(),
    )
    with pytest.raises(FormatError):
        one.run(fake(), "f")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_an_output_that_cannot_be_written_keeps_the_results(tmp_path: Path) -> None:
    write([Document("\ud800 b", id="a")], tmp_path / "in.jsonl")
    out = tmp_path / "out.conll"
    one = Job(Inputs.of([str(tmp_path / "in.jsonl")]), str(out), None, JobOptions())
    with pytest.raises(SpandetError, match="surrogate"):
        one.run(fake(), "f")
    assert one.spool_path.exists()
    again = fake()
    Job(one.inputs, str(out), "jsonl", JobOptions()).run(again, "f", resume=True)
    assert cast("Fake", again).calls == 0
    assert out.read_text().startswith('{"id": "a"')


@pytest.mark.parametrize(
    ("output", "format_", "options", "message"),
    [
        ("-", None, {"resume": True}, "--resume needs a file as output, not <stdout>"),
        ("x.jsonl", None, {"resume": True, "overwrite": True}, "give one of them"),
        ("x.strange", None, {}, "cannot detect a format from the name"),
        ("x.jsonl", "text", {}, "no format that can be written is called 'text'"),
        ("missing/x.jsonl", None, {}, "there is no folder"),
        (".", "brat", {}, "is a folder with files"),
    ],
)
def test_mistakes_are_errors_before_prediction(
    output: str,
    format_: str | None,
    options: dict[str, bool],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("text")
    one = Job(Inputs.of(["in.txt"]), output, format_, JobOptions())
    with pytest.raises(UsageError, match=message):
        one.check(**{"resume": False, "overwrite": False, **options})


COUNTED = [name for name, row in FORMATS.items() if row.document_per and row.write]


@pytest.mark.parametrize("name", COUNTED)
def test_formats_count_their_documents(name: str, tmp_path: Path) -> None:
    documents = [Document(text, id=f"d{n}") for n, text in enumerate(["A. B.", "C\nD", "E"])]
    write(documents, tmp_path / "out", name)
    inputs = Inputs.of([str(tmp_path / "out")], name)
    assert inputs.total() == len(list(inputs)) == len(documents)


def test_documents_are_counted_where_that_is_cheap(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for name in "abc":
        (tmp_path / "texts" / f"{name}.txt").write_text("text\n\ntext\n")
    (tmp_path / "two.jsonl").write_text('{"text": "a"}\n\n{"text": "b"}')
    texts, two = str(tmp_path / "texts"), str(tmp_path / "two.jsonl")
    assert Inputs.of([texts, two]).total() == len(list(Inputs.of([texts, two]))) == 5
    lines = Inputs.of([f"{texts}/a.txt"], "text-lines")
    assert lines.total() == len(list(lines)) == 2
    assert Inputs.of(["-"], "text").total() is None
    with pytest.raises(UsageError, match="only once"):
        Inputs.of(["-", "-"], "text")


def test_an_input_is_not_replaced(inputs: list[str], tmp_path: Path) -> None:
    before = Path(inputs[0]).read_bytes()
    (tmp_path / "alias.jsonl").symlink_to(inputs[0])
    for output in (inputs[0], str(tmp_path / "alias.jsonl")):
        for options in ({"resume": True}, {"overwrite": True}, {}):
            with pytest.raises(UsageError, match=r"the output .* is the input .*a\.jsonl"):
                job(inputs, Path(output)).check(**{"resume": False, "overwrite": False, **options})
    folder = Job(Inputs.of([str(tmp_path)], "jsonl"), str(tmp_path / "o.jsonl"), None, JobOptions())
    with pytest.raises(UsageError, match="is inside the input folder"):
        folder.check(resume=False, overwrite=False)
    assert Path(inputs[0]).read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "alias.jsonl", "b.jsonl"]


def test_files_of_a_killed_writer_are_removed_by_the_next_run(
    inputs: list[str], tmp_path: Path
) -> None:
    others = [
        ".out.jsonl.gz.01234567.part",
        ".out.jsonl.0123456.part",
        ".my-out.jsonl.01234567.part",
    ]
    for name in [".out.jsonl.01234567.part", ".out.jsonl.89abcdef.part", *others]:
        (tmp_path / name).write_text("half")
    one = job(inputs, tmp_path / "out.jsonl")
    with pytest.raises(KeyboardInterrupt):
        one.run(fake(dies_after=2), "f")
    one.run(fake(), "f", resume=True)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted(["a.jsonl", "b.jsonl", "out.jsonl", *others])


def test_the_spool_of_a_link_is_beside_its_file(inputs: list[str], tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "deep" / "out.jsonl")
    one = job(inputs, tmp_path / "link.jsonl")
    assert one.spool_path == job(inputs, tmp_path / "deep" / "out.jsonl").spool_path
    one.run(fake(), "f")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out.jsonl"]
