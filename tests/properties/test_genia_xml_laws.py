"""GENIA XML compared with a brute-force reader of the same trees."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st

from spandet.formats import read

CLASSES = {
    "G#protein_molecule": "protein",
    "G#DNA_N/A": "DNA",
    "G#RNA_molecule": "RNA",
    "G#cell_line": "cell_line",
    "G#cell_type": "cell_type",
    "G#virus": None,
    "(AND G#cell_line G#cell_line)": None,
}
Node = str | tuple[str, list["Node"]]
CHARACTERS = st.text("ab<&-. \n\t\u00a0\u2028é字🎈", max_size=6)
TREES: st.SearchStrategy[list[Node]] = st.lists(
    st.recursive(
        CHARACTERS,
        lambda inner: st.tuples(st.sampled_from(sorted(CLASSES)), st.lists(inner, max_size=3)),
        max_leaves=8,
    ),
    max_size=4,
)


def xml(nodes: list[Node]) -> str:
    return "".join(
        escape(node)
        if isinstance(node, str)
        else f"<cons sem={quoteattr(node[0])}>{xml(node[1])}</cons>"
        for node in nodes
    )


def raw(nodes: list[Node]) -> str:
    return "".join(node if isinstance(node, str) else raw(node[1]) for node in nodes)


def spaced(nodes: list[Node]) -> str:
    """The text with a space at every border."""
    return "".join(node if isinstance(node, str) else f" {spaced(node[1])} " for node in nodes)


def terms(nodes: list[Node], before: int = 0) -> list[tuple[int, int, str]]:
    """Labelled terms in words, outer ones first."""
    found = []
    done: list[Node] = []
    for node in nodes:
        if not isinstance(node, str):
            start = before + len(spaced([*done, (node[0], [])]).split())
            end = start + len(spaced(node[1]).split())
            label = CLASSES[node[0]]
            if label is not None and start < end:
                found.append((start, end, label))
            found += terms(node[1], start)
        done.append(node)
    return found


def one_each(found: list[tuple[int, int, str]]) -> set[tuple[int, int, str]]:
    spans = {(start, end) for start, end, _ in found}
    kept = set()
    for span in spans:
        labels = [label for start, end, label in found if (start, end) == span]
        kept.add((*span, "protein" if "protein" in labels else labels[0]))
    return kept


@given(st.lists(TREES, min_size=1, max_size=3))
def test_every_tree_is_read_as_by_brute_force(trees: list[list[Node]]) -> None:
    sentences = "".join(f"<sentence>{xml(tree)}</sentence>\n" for tree in trees)
    head = "<articleinfo><bibliomisc>M:1</bibliomisc></articleinfo>"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.xml"
        body = f"<set><article>{head}<abstract>{sentences}</abstract></article></set>"
        path.write_text(body, encoding="utf-8", newline="")
        (document,) = read(path)
        (every,) = read(path, "genia-xml-all")
    assert document.text == "\n".join(raw(tree) for tree in trees)
    assert [list(s.words) for s in document.sentences] == [spaced(tree).split() for tree in trees]
    for sentence in document.sentences:
        for word, start in zip(sentence.words, sentence.starts, strict=True):
            assert document.text[start : start + len(word)] == word
    for tree, row, all_row in zip(trees, document.rows(), every.rows(), strict=True):
        found = terms(tree)
        got = [(e.span.start, e.span.end, e.label) for e in row.entities]
        assert len(got) == len(set(got))
        assert set(got) == one_each(found)
        assert {(e.span.start, e.span.end, e.label) for e in all_row.entities} == set(found)
        assert len(all_row.entities) == len(set(found))
