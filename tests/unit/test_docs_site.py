"""The documentation: every page has a place in the site, and every link leads somewhere."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PAGES = [*sorted(PROJECT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def nav_pages(node: Any) -> Iterator[str]:
    """The paths in a part of mkdocs.yml's nav."""
    if isinstance(node, str):
        yield node
    else:
        for part in node.values() if isinstance(node, dict) else node:
            yield from nav_pages(part)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link can point at: headings, in lower case and with hyphens."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-") for text in headings}


def test_every_page_has_a_place_in_the_site() -> None:
    nav = list(nav_pages(yaml.safe_load((PROJECT / "mkdocs.yml").read_text("utf-8"))["nav"]))
    generated = {f"reference/{name}.md" for name in ("python", "settings", "command-line")}
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(nav) == sorted(written | generated)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(PROJECT)) for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", target):  # another site
            continue
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.fixture
def hooks() -> ModuleType:
    """docs/hooks.py, where the extra `docs` is installed."""
    for needed in ("mkdocs", "latex2mathml"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_formulas_become_mathml(hooks: ModuleType) -> None:
    inline = hooks.on_page_content(r'<p><span class="arithmatex">\(a &lt; b\)</span></p>')
    assert inline.startswith("<p><math ")
    assert "arithmatex" not in inline
    block = hooks.on_page_content('<div class="arithmatex">\\[\nx_t\n\\]</div>')
    assert 'display="block"' in block


@pytest.mark.parametrize(
    ("html", "accepted"),
    [
        ('<a href="https://example.org/">a link may lead elsewhere</a>', True),
        ('<script src="assets/a.js"></script>', True),
        ('<script src="https://example.org/a.js"></script>', False),
        ('<link rel="stylesheet" href="//example.org/a.css">', False),
        ("<img alt=x src=http://example.org/a.png>", False),
    ],
)
def test_pages_load_nothing_from_elsewhere(hooks: ModuleType, html: str, accepted: bool) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))
    if accepted:
        assert hooks.on_post_page(html, page=page) == html
    else:
        with pytest.raises(hooks.PluginError, match=r"index\.md: .*example\.org"):
            hooks.on_post_page(html, page=page)
