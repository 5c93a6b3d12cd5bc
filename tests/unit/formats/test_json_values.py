"""Values of Python that JSON cannot represent are neither written nor read."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.formats.records import report_json
from spandet.text import Document, WordRow

JSON_FORMATS = ["jsonl", "tokens-jsonl", "tokens-json", "doccano", "label-studio", "prodigy"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "note.* is nan, which JSON cannot hold"),
        ([1, {"x": -math.inf}], r"note\.1\.x is -inf, which JSON cannot hold"),
        (date(2020, 1, 1), "note.* is .*2020, 1, 1.*, which JSON cannot hold"),
    ],
)
@pytest.mark.parametrize("name", JSON_FORMATS)
def test_metadata_that_json_cannot_represent_is_not_written(
    tmp_path: Path, name: str, value: Any, message: str
) -> None:
    metadata = {"note": value}
    bad = Document.from_rows([WordRow(["a"], metadata=metadata)], metadata=metadata)
    good = Document.from_rows([WordRow(["a"])], id="good")
    path = tmp_path / "out"
    path.write_text("kept")
    with pytest.raises(FormatError, match=f"document 1: .*{message}"):
        write([good, bad], path, name)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("name", JSON_FORMATS)
def test_a_number_that_json_does_not_have_is_one_bad_record(
    tmp_path: Path, name: str, value: str
) -> None:
    is_list = name in ("tokens-json", "label-studio")
    record = '{"text": "a", "tokens": null, "x": ' + value + "}\n"
    path = tmp_path / "in"
    path.write_text(f"[{record}]" if is_list else record)
    with pytest.raises(FormatError, match=rf"in:1: not JSON \({value} is not a JSON number\)"):
        list(read(path, name))


def test_a_report_has_null_for_what_is_not_finite() -> None:
    report = {"f1": math.nan, "rows": [{"speed": math.inf, "of": (1.5, "ü")}]}
    made = report_json(report)
    assert json.loads(made, parse_constant=pytest.fail) == {
        "f1": None,
        "rows": [{"speed": None, "of": [1.5, "ü"]}],
    }
    assert '  "f1": null' in made
