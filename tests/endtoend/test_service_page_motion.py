"""The service's page: trajectories, long texts, and laws of its text functions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from support.page_visits import Visit, entity

TEXT = "There is pain in the knee and shoulder of the man."
WORDS = ["There", "is", "pain", "in", "the", "knee", "and", "shoulder", "of", "the", "man", "."]
APART = entity(
    TEXT, "pain in the knee and shoulder", "cell", 0.9, fragments=["pain in the", "shoulder"]
)
PROBS = {"no_entity": 0.1, "label_probs": {"DNA": 0.0, "cell": 0.9, "protein": 0.0}}


def steps(*places: tuple[float, float]) -> list[dict[str, Any]]:
    return [
        {"stage": f"stage {i}", "start": s, "end": e} | PROBS for i, (s, e) in enumerate(places)
    ]


TRACE = {
    "text": TEXT,
    "sentences": [
        {
            "words": WORDS,
            "char_starts": [0, 6, 9, 14, 17, 21, 26, 30, 39, 42, 46, 49],
            "found": [
                {
                    "start": 2,
                    "end": 8,
                    "fragments": [[2, 5], [7, 8]],
                    "label": "cell",
                    "score": 0.9,
                    "steps": steps((1.5, 4.0), (2.0, 4.5)),
                    "more": [
                        {"start": 7, "end": 8, "steps": steps((9.0, 11.0), (8.0, 9.0))} | PROBS
                    ],
                }
                | PROBS
            ],
        }
    ],
}
# The words that bars are under, whole or in part.
COVERED = """() => {
  const bars = [...document.querySelectorAll(".trajectory .bar:not([hidden])")]
    .map((bar) => bar.getBoundingClientRect());
  return [...document.querySelectorAll(".trajectory .w")].filter((word) => {
    const box = word.getBoundingClientRect();
    return bars.some((bar) => bar.left < box.right - 1 && box.left < bar.right - 1
      && bar.top >= box.bottom - 2 && bar.top < box.bottom + 4);
  }).map((word) => word.textContent);
}"""
# Random texts and spans from a seeded generator.
LAWS = """async (seed) => {
  const { blocksOf, clustersOf, countCharacters, layersOf, portionsOf, unitsOf } =
    await import("/spans.js");
  let state = seed;
  const below = (most) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * most);
  };
  const pick = (list) => list[below(list.length)];
  const parts = ["a", "word ", "end. ", "\\n", "\\n \\n", "🧬", "。", "\\t", "ש", "\\ud800 "];
  const text = Array.from({ length: below(200) }, () => pick(parts)).join("");
  const spans = Array.from({ length: below(12) }, () => {
    const start = below(text.length);
    return { start, end: start + 1 + below(9) };
  }).filter(({ end }) => end <= text.length);
  const extents = spans.map(({ start, end }) => [start, end]);
  const layers = layersOf(extents);
  const meet = ([a, b], [c, d]) => a < d && c < b;
  const most = Math.max(0, ...Array.from({ length: text.length }, (_, i) =>
    extents.filter(([start, end]) => start <= i && i < end).length));
  const longest = 5 + below(40);
  const blocks = blocksOf(text, spans, longest);
  const portions = portionsOf(text, longest);
  const joined = (cuts) => cuts.map(([start, end]) => text.slice(start, end)).join("");
  const units = unitsOf(text);
  return {
    apart: extents.every((one, i) => extents.every((other, k) =>
      i === k || layers[i] !== layers[k] || !meet(one, other))),
    few: Math.max(0, ...layers.map((layer) => layer + 1)) === most,
    clusters: clustersOf(spans).every((one, i, all) => !all[i + 1] || one.end <= all[i + 1].start),
    blocks: joined(blocks) === text,
    uncut: blocks.every(([, end]) => spans.every((span) => end <= span.start || end >= span.end)),
    portions: joined(portions) === text && portions.every(([start, end]) => end - start <= longest),
    characters: countCharacters(text) === [...text].length,
    units: [...text].every((character, i) => text.startsWith(character, units(i))),
  };
}"""


def wait_until_bars_cover(visit: Visit, words: list[str]) -> None:
    """Wait until the bars are under exactly these words."""
    covers = f"(words) => String(({COVERED})()) === String(words)"
    visit.page.wait_for_function(covers, arg=words)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_fragments_have_their_own_trajectories(browser: Browser, address: str, motion: str) -> None:
    visit = Visit(browser, address, reduced_motion=motion)
    visit.respond_with(APART, trace=TRACE)
    visit.open()
    visit.find(TEXT)
    visit.bars.first.click()
    rows = visit.page.locator(".stages tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.last).to_have_class("now", timeout=20_000)
    wait_until_bars_cover(visit, ["pain", "in", "the", "shoulder"])
    expect(visit.page.locator(".trajectory .link:not([hidden])")).to_have_count(1)
    slider = visit.page.get_by_role("slider", name="Stage")
    slider.press("Home")
    expect(rows.first).to_have_class("now")
    expect(rows.first).to_contain_text("1.50 – 3.00 + 9.00 – 10.00")
    visit.page.wait_for_function("() => document.querySelector('.player input').value === '0'")
    wait_until_bars_cover(visit, ["is", "pain", "in", "the", "man"])
    assert slider.get_attribute("aria-valuetext") == "stage 0"
    expect(visit.page.locator(".trajectory .link:not([hidden])")).to_have_count(0)
    visit.finish()


def test_with_reduced_motion_only_whole_stages_are_shown(browser: Browser, address: str) -> None:
    visit = Visit(browser, address, reduced_motion="reduce")
    visit.respond_with(APART, trace=TRACE)
    visit.open()
    visit.page.evaluate("""() => {
      window.seen = new Set();
      const look = () => {
        const slider = document.querySelector(".player input");
        if (slider) window.seen.add(slider.value);
        requestAnimationFrame(look);
      };
      look();
    }""")
    visit.find(TEXT)
    visit.bars.first.click()
    expect(visit.page.locator(".stages tbody tr").last).to_have_class("now", timeout=20_000)
    assert set(visit.page.evaluate("[...window.seen]")) <= {"0", "1", "2"}
    visit.finish()


def test_a_long_text_stays_responsive(browser: Browser, address: str) -> None:
    line = "The IL-2 gene of T cells is silent, and nobody knows why that should be so. "
    text = (line * 14 + "\n") * 94
    assert len(text) > 100_000
    visit = Visit(browser, address)
    visit.open()
    visit.respond_with()

    def found(route: Any) -> None:
        sent = route.request.post_data_json["text"]
        starts = [i for i in range(len(sent)) if sent.startswith("IL-2 gene", i)]
        entities = [
            {"start": start, "end": start + 9, "label": "DNA", "score": 0.9, "text": "IL-2 gene"}
            for start in starts
        ]
        route.fulfill(json={"documents": [{"entities": entities}]})

    visit.page.route("**/v1/entities", found)
    visit.find(text)
    assert visit.heading == "1,316 entities"
    assert 0 < visit.bars.count() < 600  # only what is near the window
    began = time.monotonic()
    visit.page.get_by_role("slider", name="Minimum score").fill("0.95")
    expect(visit.bars).to_have_count(0)
    visit.page.get_by_role("slider", name="Minimum score").fill("0.5")
    visit.bars.first.focus()
    visit.page.keyboard.press("End")
    last = visit.page.evaluate("document.activeElement.entity.end")
    assert last == text.rindex("IL-2 gene") + len("IL-2 gene")
    assert time.monotonic() - began < 10
    expect(visit.page.locator("#text-view .bar:focus")).to_be_in_viewport()
    visit.finish()


def test_splitting_and_counting_of_random_texts(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open()
    for seed in range(150):
        broken = [law for law, holds in visit.page.evaluate(LAWS, seed).items() if not holds]
        assert not broken, f"seed {seed}"
    visit.finish()
