"""Equations of the papers: cited in the code exactly where docs/methods lists them.

A page has one row per equation: `| eq. 3 | function in tests/papers | code |`, where the code is a
dotted name, or "not computed: " and the reason. A formula without a number has a section and a
name: `| section 4.2, span encoder | … | … |`. To check another page, add it to PAPERS.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"
ROW = re.compile(r"^\| (eq\.|algorithm) (\d+) \| (.*) \| (.*) \|$", re.MULTILINE)
FORMULA = r"(?:section|appendix) [\dA-Z.]+, [a-z\- ]+"
FORMULA_ROW = re.compile(rf"^\| ({FORMULA}) \| (.*) \| (.*) \|$", re.MULTILINE)
CITATION = re.compile(r"\b(eqs?\.|algorithms?) (\d[\d,\-– ]*(?:and \d[\d\-–]*)*)", re.IGNORECASE)


@dataclass(frozen=True)
class Paper:
    """A paper, its page in docs/methods, and the code that is written after it."""

    page: str
    title: str
    """A citation outside `files` counts where the same docstring or comment has this title."""
    equations: int
    algorithms: int
    files: tuple[str, ...]
    """Files and folders below src/spandet whose citations are of this paper."""
    transcription: tuple[str, ...]
    """Modules in tests/papers."""
    formulas: tuple[str, ...] = ()
    """Formulas without a number, by section and name."""

    def rows(self) -> list[tuple[Numbered, str, str]]:
        """Equation, functions of the transcription, and code of each row of the page."""
        text = (ROOT / "docs" / "methods" / f"{self.page}.md").read_text("utf-8")
        numbered = [((kind, int(number)), *cells) for kind, number, *cells in ROW.findall(text)]
        return numbered + [((name, 0), *cells) for name, *cells in FORMULA_ROW.findall(text)]

    def cited(self, text: str) -> set[Numbered]:
        """Equations, algorithms and formulas that a text cites."""
        lower = text.lower()
        return cited(text) | {(name, 0) for name in self.formulas if name.lower() in lower}

    def cites(self, path: Path, text: str) -> bool:
        """Whether a citation in this text of this file is one of this paper."""
        name = path.relative_to(SOURCE / "spandet").as_posix()
        own = any(name == file or name.startswith(f"{file}/") for file in self.files)
        return own or self.title.lower() in text.lower()


PAPERS = [
    Paper(
        page="locate-and-label",
        title="Locate and Label",
        equations=18,
        algorithms=1,
        files=("detectors/locate_and_label",),
        transcription=("locate_and_label_paper",),
    ),
    Paper(
        page="proposer-regressor",
        title="Proposer and Regressor",
        equations=25,
        algorithms=2,
        files=("detectors/proposer_regressor", "layers/regressor.py"),
        transcription=("proposer_regressor_paper", "proposer_regressor_parts"),
    ),
    Paper(
        page="boundary-diffusion",
        title="DiffusionNER",
        equations=7,
        algorithms=2,
        files=("detectors/boundary_diffusion",),
        transcription=("boundary_diffusion_paper",),
        formulas=(
            "section 4.1, expansion",
            "section 4.1, normalization",
            "section 4.1, timesteps",
            "section 4.2, discretization",
            "section 4.2, mean pooling",
            "section 4.2, timestep embedding",
            "section 4.2, span encoder",
            "section 4.2, boundary pointers",
            "section 4.2, entity classifier",
            "section 4.2, training objective",
            "section 4.3, candidates",
            "section 4.3, de-duplication",
            "section 4.3, filtering",
            "appendix A, matching cost",
            "appendix A, optimal matching",
        ),
    ),
]
Numbered = tuple[str, int]
"""`eq.` or `algorithm`, and its number; or the name of a formula, and 0."""


def cited(text: str) -> set[Numbered]:
    """All equations and algorithms that a text cites; `eqs. 6-7` are two."""
    found: set[Numbered] = set()
    for word, numbers in CITATION.findall(text):
        kind = "eq." if word.lower().startswith("eq") else "algorithm"
        for first, last in re.findall(r"(\d+)(?:[-–](\d+))?", numbers):
            found |= {(kind, number) for number in range(int(first), int(last or first) + 1)}
    return found


@cache
def citing_files() -> list[Path]:
    texts = {path: path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    kinds = (CITATION, re.compile(FORMULA, re.IGNORECASE))
    return [path for path, text in texts.items() if any(kind.search(text) for kind in kinds)]


@cache
def own_texts(path: Path) -> dict[str, str]:
    """The source of each class and function without those inside it, by dotted name."""
    source = path.read_text("utf-8")
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    lines = source.splitlines()
    owner = [module] * len(lines)
    for name, node in _definitions(ast.parse(source), module):  # outer before inner
        last = node.end_lineno or node.lineno
        owner[node.lineno - 1 : last] = [name] * (last - node.lineno + 1)
    texts: dict[str, str] = {}
    for name, line in zip(owner, lines, strict=True):
        texts[name] = f"{texts.get(name, '')} {line.strip().lstrip('#').strip()}"
    return texts


Definition = ast.ClassDef | ast.FunctionDef


def _definitions(tree: ast.AST, name: str) -> Iterator[tuple[str, Definition]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            yield f"{name}.{node.name}", node
            yield from _definitions(node, f"{name}.{node.name}")


def code_of(places: str) -> list[str]:
    return re.findall(r"`(spandet\.[\w.]+)`", places)


@pytest.fixture(params=PAPERS, ids=lambda paper: str(paper.page))
def paper(request: pytest.FixtureRequest) -> Paper:
    chosen: Paper = request.param
    return chosen


def test_the_page_lists_every_equation_with_its_code_or_a_reason(paper: Paper) -> None:
    wanted = [("eq.", number) for number in range(1, paper.equations + 1)]
    wanted += [("algorithm", number) for number in range(1, paper.algorithms + 1)]
    wanted += [(name, 0) for name in paper.formulas]
    assert [equation for equation, *_ in paper.rows()] == wanted
    for equation, _, places in paper.rows():
        assert code_of(places) or re.match(r"not computed: \w", places), equation


def test_the_code_that_the_page_names_cites_the_equation(paper: Paper) -> None:
    texts = {name: text for path in citing_files() for name, text in own_texts(path).items()}
    for equation, _, places in paper.rows():
        for name in code_of(places):
            assert name in texts, f"{paper.page}.md, {equation}: no {name} that cites it"
            assert equation in paper.cited(texts[name]), f"{name} does not cite {equation}"


def test_every_citation_is_on_the_page(paper: Paper) -> None:
    listed = {(equation, name) for equation, _, at in paper.rows() for name in code_of(at)}
    for path in citing_files():
        for name, text in own_texts(path).items():
            for equation in paper.cited(text) if paper.cites(path, text) else ():
                assert (equation, name) in listed, f"{name} cites {equation}: {paper.page}.md"


def test_the_transcription_has_a_function_for_every_equation(paper: Paper) -> None:
    sources = [ROOT / "tests" / "papers" / f"{name}.py" for name in paper.transcription]
    trees = [ast.parse(source.read_text("utf-8")) for source in sources]
    every = [definition for tree in trees for definition in _definitions(tree, "")]
    docs = {name: ast.get_docstring(node) or "" for name, node in every}
    for equation, functions, _ in paper.rows():
        names = re.findall(r"`(\w+)`", functions)
        assert names, equation
        for name in names:
            assert equation in paper.cited(docs[f".{name}"]), f"{name} does not cite {equation}"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Eq. 3: logits.", {3}),
        ("(eqs. 6-7), then eq. 9", {6, 7, 9}),
        ("Eqs. 2 and 9: states", {2, 9}),
        ("eqs. 1, 2 and 4-5.", {1, 2, 4, 5}),
        ("torch.eq.1, seq. 2", set()),
    ],
)
def test_citations_are_read(text: str, numbers: set[int]) -> None:
    assert {number for _, number in cited(text)} == numbers


def test_every_formula_that_is_cited_has_a_name_on_the_page(paper: Paper) -> None:
    """Otherwise a misspelt name would be overlooked."""
    known = tuple(name.lower() for name in paper.formulas)
    for path in citing_files():
        for name, text in own_texts(path).items():
            found = re.findall(rf"\b({FORMULA})", text, re.IGNORECASE)
            for formula in found if known and paper.cites(path, text) else ():
                assert formula.lower().startswith(known), f"{name}: {formula}"
