"""The pages of `view` in a real browser: what their script does, and no console errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spandet.text import CharSpan, Document, Entity
from spandet.viewing import comparison_to_html, to_html
from support import browsing
from support.browsing import find_browser

TEXT = "👍 The IL-2 receptor gene <b>binds</b> بالقاهرة"
HOSTILE = "<script>document.title='x'</script>"

# Runs after the page's own script; its report is JSON in the dumped page.
PROBE = """
const tip = () => document.getElementById("tip");
const boxes = [...document.querySelectorAll("#labels input")];
const box = (label) => boxes.find((each) => each.value === label);
const mark = (at) => document.querySelector(`mark[data-at="${at}"]`);
const drawn = (at) => getComputedStyle(mark(at)).backgroundImage !== "none";
const point = (at, fromBottom) => {
  const place = mark(at).getClientRects()[0];
  const clientY = fromBottom === null ? place.top - 20 : place.bottom - fromBottom;
  const where = { bubbles: true, clientX: place.left + 3, clientY };
  mark(at).dispatchEvent(new PointerEvent("pointermove", where));
  return tip().hidden ? null : tip().innerText;
};
// A window that is not in front yet, as happens on a busy machine, holds its focus events back.
const focus = (at) => {
  mark(at).focus();
  if (!document.hasFocus()) mark(at).dispatchEvent(new FocusEvent("focusin", { bubbles: true }));
};
const press = (key) => {
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return document.activeElement.dataset.at ?? null;
};
"""


@pytest.fixture(scope="session")
def browser() -> str:
    return find_browser()


def probe(browser: str, folder: Path, page: str, script: str, address: str = "") -> dict[str, Any]:
    """The report of a script, which may use the definitions above."""
    return browsing.probe(browser, folder, page, PROBE + script, address)


def entity(words: str, label: str, score: float | None = None) -> Entity[CharSpan]:
    start = TEXT.index(words)
    return Entity(CharSpan(start, start + len(words)), label, score)


NESTED = Document(
    TEXT,
    (
        entity("IL-2 receptor gene", "DNA"),
        entity("IL-2 receptor", "protein, human", 0.93),
        entity("receptor gene <b>binds</b>", "cross"),
        entity("القاهرة", HOSTILE),
    ),
    id="d1",
)


def test_labels_in_the_address_are_hidden(browser: str, tmp_path: Path) -> None:
    script = """
      const before = { shown: boxes.map((i) => i.checked),
        drawn: ["6:24", "6:19", "11:37", "39:46"].map(drawn) };
      box("DNA").click();
      const after = location.hash;
      document.getElementById("none").click();
      const none = location.hash;
      window.addEventListener("hashchange", () => setTimeout(() => {
        if (!document.getElementById("probe"))
          report({ before, after, none, hidden: ["6:24", "6:19", "11:37", "39:46"].map(drawn) });
      }));
    """
    page = to_html([NESTED], title="Look & see")
    found = probe(browser, tmp_path, page, script, "#hide=DNA,protein%2C%20human")
    hostile = "%3Cscript%3Edocument.title%3D'x'%3C%2Fscript%3E"
    assert found == {
        "before": {"shown": [False, False, True, True], "drawn": [False, False, True, True]},
        "after": "#hide=protein%2C%20human",
        "none": f"#hide=DNA,protein%2C%20human,cross,{hostile}",
        "hidden": [False, False, False, False],
        "title": "Look & see",
    }


def test_hovering_and_arrow_keys_show_entities(browser: str, tmp_path: Path) -> None:
    script = """
      const bar = point("6:19", 4);
      const lit = [...document.querySelectorAll("mark.on")].map((m) => m.textContent).join("");
      const words = point("6:19", null);
      focus("6:24");
      const focused = tip().innerText;
      const keys = ["ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight", "ArrowRight"].map(press);
      const backwards = press("ArrowRight");
      press("Escape");
      report({ bar, lit, words, focused, keys, backwards, closed: tip().hidden,
        stops: document.querySelectorAll("mark[tabindex]").length });
    """
    found = probe(browser, tmp_path, to_html([NESTED], title="t"), script)
    protein = "protein, human\nIL-2 receptor\ncharacters 6:19 · score 0.93"
    dna = "DNA\nIL-2 receptor gene\ncharacters 6:24"
    assert found["bar"] == protein
    assert found["lit"] == "IL-2 receptor"
    assert found["words"] == f"{protein}\n{dna}"
    assert found["focused"] == dna
    # Hebrew and Arabic words are read leftwards, but this sentence as a whole runs to the right.
    assert found["keys"] == ["6:19", "11:37", "6:19", "11:37", "39:46"]
    assert found["backwards"] == "39:46"
    assert found["closed"] is True
    assert found["stops"] == 1


def test_bars_are_under_their_words_and_lines_have_room(browser: str, tmp_path: Path) -> None:
    script = """
      const rect = (at) => { const r = mark(at).getClientRects()[0]; return r; };
      const words = (at) => { const range = document.createRange();
        range.selectNodeContents(mark(at)); return range.getBoundingClientRect(); };
      report({
        depths: ["6:24", "6:19", "11:37"].map((at) => rect(at).bottom - words("39:46").bottom),
        aligned: Math.abs(rect("6:19").left - words("6:19").left) < 1,
        height: mark("6:24").closest("p").getBoundingClientRect().height,
        text: mark("6:24").closest("p").textContent,
        joined: mark("39:46").className.includes("joined"),
        label: getComputedStyle(mark("6:24")).backgroundImage.includes("DNA"),
      });
    """
    found = probe(browser, tmp_path, to_html([NESTED], title="t"), script)
    near, middle, far = found["depths"]
    assert middle - near == pytest.approx(16, abs=0.5)
    assert far - middle == pytest.approx(16, abs=0.5)
    assert found["aligned"]
    assert found["height"] > 26 + 3 * 16 - 1
    assert found["text"] == TEXT
    assert found["joined"]
    assert found["label"]


def test_a_comparison_can_show_documents_with_errors_only(browser: str, tmp_path: Path) -> None:
    worse = Document(TEXT, (*NESTED.entities[:3], entity("The", "cross", 0.2)))
    page = comparison_to_html([(NESTED, NESTED), (NESTED, worse)], title="t")
    script = """
      const articles = [...document.querySelectorAll("article")];
      const seen = () => articles.map((a) => a.checkVisibility());
      const sides = [...articles[1].querySelectorAll("[data-side]")].map((p) =>
        [p.dataset.side, Math.round(p.getBoundingClientRect().left) > 400]);
      const verdicts = ["hit", "miss", "alarm"];
      const classes = (side) =>
        [...articles[1].querySelectorAll(`[data-side=${side}] mark[data-at]`)].map((m) =>
          verdicts.find((name) => m.classList.contains(name)));
      const styles = verdicts.map((name) =>
        getComputedStyle(articles[1].querySelector("mark." + name)).backgroundImage);
      const filtered = seen();
      window.addEventListener("hashchange", () => report({ filtered, all: seen(), sides,
        gold: classes("gold"), predicted: classes("predicted"), styles: new Set(styles).size }));
      document.getElementById("errors").click();
    """
    found = probe(browser, tmp_path, page, script, "#errors=1")
    assert found["filtered"] == [False, True]
    assert found["all"] == [True, True]
    assert found["sides"] == [["gold", False], ["predicted", True]]
    assert sorted(found["gold"]) == ["hit", "hit", "hit", "miss"]
    assert sorted(found["predicted"]) == ["alarm", "hit", "hit", "hit"]
    assert found["styles"] == 3


def test_a_page_with_many_sentences_opens(browser: str, tmp_path: Path) -> None:
    documents = [Document(TEXT, NESTED.entities, id=f"d{i}") for i in range(1500)]
    script = "report({ marks: document.querySelectorAll('mark[data-at]').length });"
    found = probe(browser, tmp_path, to_html(documents, title="t"), script, "#hide=DNA")
    assert found["marks"] == 6000
