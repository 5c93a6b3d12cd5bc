"""docs/guarantees.md names tests that exist, and each row names one."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "guarantees.md").read_text(encoding="utf-8")


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) > 40
    for path, test in named:
        assert f"def {test}" in (PROJECT / path).read_text(encoding="utf-8"), (path, test)


def test_every_guarantee_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    guarantees = [row for row in rows if not row.startswith("| guarantee |")]
    assert guarantees
    assert all("`tests/" in row for row in guarantees)
