"""The page of proposer-regressor names every equation, and what it names cites that equation."""

from __future__ import annotations

import importlib
import re
from inspect import getsource
from pathlib import Path
from typing import Any

from papers import proposer_regressor_paper as paper

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "proposer-regressor.md"
ROW = re.compile(r"^\| (eq\.|algorithm) (\d+) \| (.*) \| (.*) \|$", re.MULTILINE)


def cited(text: str, kind: str) -> set[int]:
    """The numbers of equations, or of algorithms, that a text names."""
    pattern = r"[Ee]qs?\." if kind == "eq." else r"[Aa]lgorithms?"
    numbers: set[int] = set()
    for group in re.findall(rf"{pattern} ((?:\d+|-| |,|and)+)", text):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", group):
            numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def source_of(path: str) -> str:
    parts = path.split(".")
    cut = next(n for n, part in enumerate(parts) if not part.islower() or n == len(parts) - 1)
    thing: Any = importlib.import_module(".".join(parts[:cut]))
    for part in parts[cut:]:
        thing = getattr(thing, part)
    return getsource(thing)


def test_the_page_names_every_equation_and_code_cites_it() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert [int(number) for kind, number, *_ in rows if kind == "eq."] == list(range(1, 26))
    assert [int(number) for kind, number, *_ in rows if kind != "eq."] == [1, 2]
    for kind, number, functions, places in rows:
        for name in re.findall(r"`(\w+)`", functions):
            assert int(number) in cited(getattr(paper, name).__doc__, kind), (number, name)
        for path in re.findall(r"`(spandet[\w.]+)`", places):
            assert int(number) in cited(source_of(path), kind), (number, path)
