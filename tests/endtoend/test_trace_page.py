"""The page of `trace` in a real browser: positions of bars at every stage, and controls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spandet.viewing import trace_to_html
from spandet.viewing.traces import TracedDocument
from support import browsing
from support.browsing import find_browser
from support.trace_samples import IN_FRAGMENTS, PLAIN, WITH_GOLD, WORDS, found, sentence

# Runs after the page's own script.
PROBE = """
const slider = document.getElementById("stage");
const play = document.getElementById("play");
const tip = document.getElementById("tip");
const places = () => [...document.querySelectorAll(".w")].map((w) => w.getBoundingClientRect());
const shown = (kind) => [...document.querySelectorAll(`.${kind}`)].filter((b) => !b.hidden);
const box = (element) => element.getBoundingClientRect();
const to = (stage) => {
  slider.value = stage;
  slider.dispatchEvent(new Event("input"));
};
const press = (key) => slider.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const point = (element) => {
  const place = box(element);
  element.dispatchEvent(new PointerEvent("pointermove",
    { bubbles: true, clientX: place.left + 2, clientY: place.top + 2 }));
};
const state = () => [Number(slider.value), slider.getAttribute("aria-valuetext"),
  document.querySelector(".stop[aria-current]").title, play.getAttribute("aria-label")];
"""
# Timers use the virtual time of the page; animation frames would wait for a busy machine.
FRAMES = """
window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);
window.cancelAnimationFrame = clearTimeout;
"""
CALM = "--force-prefers-reduced-motion"


@pytest.fixture(scope="session")
def browser() -> str:
    return find_browser()


def probe(
    browser: str, folder: Path, script: str, *documents: TracedDocument, **options: Any
) -> dict[str, Any]:
    page = trace_to_html(documents, title="Look & see")
    page = page.replace("<head>", f"<head><script>{FRAMES}</script>", 1)
    return browsing.probe(browser, folder, page, PROBE + script, **options)


def test_bars_are_under_the_words_of_every_stage(browser: str, tmp_path: Path) -> None:
    script = """
      const words = places();
      const at = () => { const b = box(shown("bar")[0]); return [b.left, b.right]; };
      const below = box(shown("bar")[0]).top - words[2].top;
      const end = at();
      to(0);
      const start = at();
      to(0.5);
      const between = at();
      report({ words: words.map((w) => [w.left, w.right]), start, between, end, below,
        names: shown("bar").map((b) => b.textContent) });
    """
    got = probe(browser, tmp_path, script, PLAIN)
    words = got["words"]

    def start_at(place: float) -> float:
        word = int(place)
        left, following = words[word][0], words[word + 1][0]
        return float(left + (place - word) * (following - left))

    def end_at(place: float) -> float:  # a whole number is the end of the word before it
        word = int(place) - 1
        right, following = words[word][1], words[word + 1][1]
        return float(right + (place - word - 1) * (following - right))

    assert got["end"] == pytest.approx([words[2][0], words[3][1]], abs=0.5)
    assert got["start"] == pytest.approx([start_at(2.87), end_at(4.01)], abs=0.5)
    assert got["between"] == pytest.approx([start_at(2.665), end_at(4.035)], abs=0.5)
    assert 15 < got["below"] < 40
    assert got["names"] == ["CEL", "DNA"]


def test_a_discontinuous_entity_has_a_bar_under_each_fragment(browser: str, tmp_path: Path) -> None:
    script = """
      const side = (element) => { const b = box(element); return [b.left, b.right]; };
      const goals = shown("goal").map(side);
      const bars = shown("bar").map(side);
      point(shown("bar")[1]);
      const tips = [tip.textContent];
      to(0);
      tips.push(tip.textContent);
      report({ words: places().map((w) => [w.left, w.right]), goals, bars, tips,
        lit: document.querySelectorAll(".bar.on").length });
    """
    got = probe(browser, tmp_path, script, IN_FRAGMENTS)
    words = got["words"]
    # The entity that was found has two bars; of the one that was missed, one candidate is shown.
    bars = [(words[0][0], words[0][1]), (words[2][0], words[3][1]), (words[7][0], words[7][1])]
    assert got["bars"] == [pytest.approx(bar, abs=0.5) for bar in bars]
    goals = [(words[5][0], words[5][1]), (words[7][0], words[7][1])]
    assert got["goals"] == [pytest.approx(goal, abs=0.5) for goal in goals]
    assert "predicted (2, 3)" in got["tips"][0]
    assert "stage 0 (2.50, 3.00)" in got["tips"][1]
    assert got["lit"] == 2


def test_the_arrow_keys_select_stages(browser: str, tmp_path: Path) -> None:
    script = """
      const seen = [state()];
      for (const key of ["ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowUp", "End", "Home"]) {
        press(key);
        seen.push(state());
      }
      document.querySelectorAll(".stop")[1].click();
      seen.push(state());
      report({ seen });
    """
    got = probe(browser, tmp_path, script, PLAIN, flags=(CALM,))
    stages = ["stage 0", "stage 1", "predicted"]
    expected = [2, 1, 0, 0, 1, 2, 0, 1]
    assert got["seen"] == [[stage, stages[stage], stages[stage], "Play"] for stage in expected]


@pytest.mark.parametrize("flags", [(), (CALM,)], ids=["moving", "calm"])
def test_play_runs_from_the_first_stage_to_the_last(
    browser: str, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    script = """
      const seen = [];
      play.click();
      const began = play.getAttribute("aria-label");
      const watch = () => {
        seen.push(Number(slider.value));
        if (play.getAttribute("aria-label") === "Pause") setTimeout(watch, 50);
        else report({ began, seen, end: state() });
      };
      setTimeout(watch, 50);
    """
    got = probe(browser, tmp_path, script, PLAIN, flags=flags, milliseconds=8000)
    assert got["began"] == "Pause"
    seen = got["seen"]
    assert seen[0] < 0.5
    assert seen == sorted(seen)
    assert got["end"] == [2, "predicted", "predicted", "Play"]
    assert any(place % 1 for place in seen) is not bool(flags)


def test_pause_keeps_the_position(browser: str, tmp_path: Path) -> None:
    script = """
      play.click();
      setTimeout(() => {
        play.click();
        const stopped = Number(slider.value);
        setTimeout(() => report({ stopped, later: Number(slider.value) }), 600);
      }, 700);
    """
    got = probe(browser, tmp_path, script, PLAIN, milliseconds=4000)
    assert 0 < got["stopped"] < 2
    assert got["later"] == got["stopped"]


def test_hovering_shows_the_scores_of_the_stage(browser: str, tmp_path: Path) -> None:
    script = """
      point(shown("bar")[0]);
      const last = tip.innerText;
      const lit = document.querySelectorAll("li.on .triple")[0].textContent;
      to(0);
      const first = tip.innerText;
      point(document.querySelector("h1, main"));
      document.querySelector("main").dispatchEvent(new PointerEvent("pointermove"));
      const hidden = tip.hidden;
      shown("bar")[0].click();
      const row = () => document.querySelector("details[open] tr.now th")?.textContent;
      setTimeout(() => {
        const marked = row();
        to(1);
        report({ last, lit, first, hidden, marked, moved: row() });
      }, 100);
    """
    got = probe(browser, tmp_path, script, PLAIN)
    assert got["last"].split("\n")[:2] == ["(2, 3, CEL)", "predicted (2, 3)"]
    assert "CEL 0.90" in got["last"]
    assert got["lit"] == "(2, 3, CEL)"
    assert got["first"] == "(2, 3, CEL)\nstage 0 (2.87, 3.01) · score 0.50"
    assert got["hidden"] is True
    assert (got["marked"], got["moved"]) == ("stage 0", "stage 1")


def test_missed_entities_are_drawn_as_outlines(browser: str, tmp_path: Path) -> None:
    script = """
      const words = places();
      const rect = (b) => [box(b).left, box(b).right];
      report({ goals: shown("goal").map(rect), kinds: shown("bar").map((b) => b.classList[2]),
        words: words.map((w) => [w.left, w.right]),
        names: shown("goal").map((b) => b.textContent) });
    """
    got = probe(browser, tmp_path, script, WITH_GOLD)
    assert got["goals"][0] == pytest.approx(got["words"][3], abs=0.5)
    assert got["goals"][1] == pytest.approx(got["words"][7], abs=0.5)
    assert got["names"] == ["CEL", "DNA"]
    assert got["kinds"] == ["hit", "alarm", "miss"]


LONG = sentence(WORDS * 6, [found(5, 40, "CEL", (0.5, 58.0)), found(57, 58, "DNA", (57.0, 58.0))])


def test_bars_follow_line_breaks(browser: str, tmp_path: Path) -> None:
    script = """
      const words = places();
      const pieces = shown("bar").filter((b) => b.textContent.includes("CEL"));
      const lines = new Set(words.map((w) => w.top)).size;
      const outer = box(document.querySelector(".words"));
      const has = (b, name) => b.classList.contains(name);
      report({ lines, pieces: pieces.map((b) => [has(b, "starts"), has(b, "ends"),
          box(b).left >= outer.left - 1, box(b).right <= outer.right + 1]),
        names: pieces.map((b) => !b.querySelector(".name").hidden),
        first: [box(pieces[0]).left, words[5].left],
        last: [box(pieces.at(-1)).right, words[39].right],
        wide: document.documentElement.scrollWidth <= innerWidth });
    """
    got = probe(browser, tmp_path, script, LONG, width=520)
    assert got["lines"] >= 4
    assert len(got["pieces"]) >= 3
    starts, ends, inside, within = zip(*got["pieces"], strict=True)
    assert starts == (True, *[False] * (len(starts) - 1))
    assert ends == (*[False] * (len(ends) - 1), True)
    assert all(inside)
    assert all(within)
    assert got["names"] == list(starts)
    assert got["first"][0] == pytest.approx(got["first"][1], abs=0.5)
    assert got["last"][0] == pytest.approx(got["last"][1], abs=0.5)
    assert got["wide"]


def test_right_to_left_sentences_are_mirrored(browser: str, tmp_path: Path) -> None:
    document = sentence(["زار", "مدينة", "القاهرة", "أمس"], [found(1, 3, "CEL", (0.5, 3.0))])
    script = """
      const words = places();
      const b = box(shown("bar")[0]);
      report({ bar: [b.right, b.left], words: [words[1].right, words[2].left] });
    """
    got = probe(browser, tmp_path, script, document)
    assert got["bar"] == pytest.approx(got["words"], abs=0.5)


def test_the_filter_shows_only_sentences_with_errors(browser: str, tmp_path: Path) -> None:
    script = """
      const seen = () => [...document.querySelectorAll("section")].map((s) => s.checkVisibility());
      const all = seen();
      document.getElementById("errors").click();
      report({ all, errors: seen() });
    """
    fine = sentence(WORDS, [found(2, 4, "CEL", (2.0, 4.0), (2.0, 4.0), right=True)], [])
    got = probe(browser, tmp_path, script, fine, WITH_GOLD)
    assert got["all"] == [True, True]
    assert got["errors"] == [False, True]


def test_a_page_without_entities_has_no_errors(browser: str, tmp_path: Path) -> None:
    got = probe(browser, tmp_path, "report({ slider });", sentence(["Nothing", "here"]))
    assert got == {"slider": None, "title": "Look & see"}


def test_hostile_text_is_escaped(browser: str, tmp_path: Path) -> None:
    hostile = "<script>document.title='x'</script>"
    document = sentence([hostile, "\x00", "👍"], [found(0, 3, hostile, (0.0, 3.0))])
    script = "point(shown('bar')[0]); report({ tip: tip.innerText.split('\\n')[0] });"
    got = probe(browser, tmp_path, script, document)
    assert got["title"] == "Look & see"
    assert got["tip"] == f"(0, 2, {hostile})"


def test_a_page_with_many_sentences_draws_only_visible_ones(browser: str, tmp_path: Path) -> None:
    script = """
      const drawn = () => new Set(shown("bar").map((b) => b.closest("section"))).size;
      const first = drawn();
      scrollTo(0, 1e6);
      dispatchEvent(new Event("scroll"));
      requestAnimationFrame(() => requestAnimationFrame(() => {
        const last = [...document.querySelectorAll("section")].at(-1);
        report({ first, last: last.querySelectorAll(".bar").length });
      }));
    """
    got = probe(browser, tmp_path, script, *[PLAIN] * 800, milliseconds=3000)
    assert 3 < got["first"] < 100
    assert got["last"] == 2
