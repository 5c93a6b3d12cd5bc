"""layers/ and spans/ contain only what several parts of the library use."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"
SHARED = [
    path
    for folder in ("layers", "spans")
    for path in sorted((SOURCE / "spandet" / folder).glob("*.py"))
    if path.stem != "__init__"
]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def imported_by(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def shared_by(path: Path) -> set[str]:
    """The shared modules that a module imports, directly or through others."""
    paths = {name_of(own): own for own in SHARED}
    found: set[str] = set()
    rest = imported_by(path) & paths.keys()
    while rest:
        found |= rest
        rest = set[str]().union(*(imported_by(paths[name]) for name in rest)) & paths.keys() - found
    return found


def users() -> dict[str, set[str]]:
    """The detectors, encoder and inference that use each shared module."""
    found: dict[str, set[str]] = {name_of(path): set() for path in SHARED}
    package = SOURCE / "spandet"
    owners = {path: path.relative_to(package).parts for path in package.rglob("*.py")}
    for path, parts in owners.items():
        if parts[0] in {"detectors", "encoding", "inference"} and not parts[-1].startswith("onnx"):
            owner = parts[1].removesuffix(".py") if parts[0] == "detectors" else parts[0]
            for name in shared_by(path):
                found[name].add(owner)
    return found


@pytest.mark.parametrize("path", SHARED, ids=name_of)
def test_a_shared_module_has_two_users_or_serves_all_detectors(path: Path) -> None:
    own = users()[name_of(path)]
    assert len(own) >= 2 or own == {"inference"}, f"only {own} uses {path.name}: move it there"
