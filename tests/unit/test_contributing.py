"""The table of changes in CONTRIBUTING.md names files, classes and functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ")][1:]
NAMED = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row)}
FILES = {name for name in NAMED if "/" in name or name.endswith((".md", ".yml"))}


def test_every_file_exists() -> None:
    assert len(ROWS) == 12
    assert len(FILES) > 20
    for name in FILES:
        pattern = name.replace("NAME", "*")
        assert [*PROJECT.glob(pattern), *(PROJECT / "src/spandet").glob(pattern)], name


def test_every_class_and_function_exists() -> None:
    code = "\n".join(path.read_text("utf-8") for path in (PROJECT / "src").rglob("*.py"))
    names = {name.split(".")[-1] for name in NAMED - FILES if re.fullmatch(r"[\w.]+", name)}
    assert len(names) > 12
    for name in names:
        defined = rf"\b(?:def|class) {name}\b|^ *{name}(?:: .+)? = "
        assert re.search(defined, code, re.MULTILINE), name
