"""Layout, themes and error messages of the service's page, with prepared responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from spandet.serving import create_app
from support.page_visits import Visit, entity, serving
from support.serving_toys import permissive_recognizer

Visits = Callable[..., Visit]

TEXT = "The human IL-2 receptor gene is silent in T cells, but pain in knee and shoulder is not."
NESTED = (
    entity(TEXT, "human IL-2 receptor gene", "DNA", 0.95),
    entity(TEXT, "human IL-2 receptor", "protein", 0.7),
    entity(TEXT, "IL-2", "protein", 0.9),
    entity(TEXT, "T cells", "cell", 0.8),
)
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 700}, "has_touch": True}

# Where words of the text and their bars are.
PLACES = """(name) => {
  const plain = (box) => ({ left: box.left, right: box.right, top: box.top, bottom: box.bottom });
  const bars = [...document.querySelectorAll("#text-view .bar")].filter((bar) =>
    bar.entity.text === name);
  const lines = bars[0].entity.fragments.flatMap(([start, end]) => {
    const range = document.createRange();
    const block = bars[0].entity.block;
    const nodes = [];
    const walker = document.createTreeWalker(block.words, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) nodes.push(walker.currentNode);
    const spot = (place) => {
      let left = place - block.start;
      for (const node of nodes) {
        if (left <= node.length) return [node, left];
        left -= node.length;
      }
    };
    range.setStart(...spot(start));
    range.setEnd(...spot(end));
    return [...range.getClientRects()].filter((box) => box.width > 0).map(plain);
  });
  return { bars: bars.map((bar) => plain(bar.getBoundingClientRect())), lines };
}"""


@pytest.fixture
def visits(browser: Browser, address: str) -> Iterator[Visits]:
    made: list[Visit] = []

    def visit(*entities: dict[str, Any], trace: Any = None, **settings: Any) -> Visit:
        made.append(Visit(browser, address, **settings))
        made[-1].respond_with(*entities, trace=trace)
        made[-1].open()
        return made[-1]

    yield visit
    for each in made:
        each.finish()


def places(visit: Visit, words: str) -> dict[str, Any]:
    found: dict[str, Any] = visit.page.evaluate(PLACES, words)
    return found


def assert_under_its_words(visit: Visit, words: str) -> None:
    found = places(visit, words)
    left = min(line["left"] for line in found["lines"])
    right = max(line["right"] for line in found["lines"])
    assert min(bar["left"] for bar in found["bars"]) == pytest.approx(left, abs=1)
    assert max(bar["right"] for bar in found["bars"]) == pytest.approx(right, abs=1)
    for bar in found["bars"]:
        assert any(0 <= bar["top"] - line["bottom"] < 80 for line in found["lines"])


def meet(one: dict[str, float], other: dict[str, float]) -> bool:
    across = one["left"] < other["right"] - 0.5 and other["left"] < one["right"] - 0.5
    return across and one["top"] < other["bottom"] - 0.5 and other["top"] < one["bottom"] - 0.5


@pytest.mark.parametrize("settings", [{}, PHONE], ids=["wide", "phone"])
def test_bars_are_under_their_words_and_do_not_overlap(
    visits: Visits, settings: dict[str, Any]
) -> None:
    visit = visits(*NESTED, **settings)
    visit.find(TEXT)
    visit.page.wait_for_timeout(1000)  # until the animation ends
    everything = []
    for each in NESTED:
        assert_under_its_words(visit, each["text"])
        everything += places(visit, each["text"])["bars"]
    for i, one in enumerate(everything):
        assert not any(meet(one, other) for other in everything[i + 1 :])
    words = visit.page.evaluate("""[...document.querySelectorAll("#text-view .run > span")].flatMap(
      (run) => [...run.getClientRects()].map(({ left, right, top, bottom }) =>
        ({ left, right, top: top + 4, bottom: bottom - 4 })))""")
    assert not any(meet(bar, word) for bar in everything for word in words)
    width = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]


def test_bars_follow_when_the_window_changes(visits: Visits) -> None:
    visit = visits(*NESTED)
    visit.find(TEXT)
    visit.page.set_viewport_size({"width": 420, "height": 700})
    visit.page.wait_for_timeout(1200)
    for each in NESTED:
        assert_under_its_words(visit, each["text"])


def test_fragments_are_linked_by_a_dashed_line(visits: Visits) -> None:
    apart = entity(
        TEXT, "pain in knee and shoulder", "cell", 0.9, fragments=["pain in", "shoulder"]
    )
    visit = visits(apart)
    visit.find(TEXT)
    expect(visit.page.locator("#text-view .bar")).to_have_count(2)
    link = visit.page.locator("#text-view .link")
    assert link.evaluate("(link) => getComputedStyle(link).borderBlockStartStyle") == "dashed"
    box = link.bounding_box()
    bars = places(visit, "pain in … shoulder")["bars"]
    assert box is not None
    assert box["x"] == pytest.approx(bars[0]["right"], abs=1)
    assert box["x"] + box["width"] == pytest.approx(bars[1]["left"], abs=1)


def test_right_to_left_text_is_laid_out_from_the_right(visits: Visits) -> None:
    text = "وجد الباحثون أن البروتين NF-kappa B ينشط الجين في الخلايا التائية البشرية."
    whole = entity(text, "الخلايا التائية البشرية", "cell", 0.9)
    inner = entity(text, "التائ", "protein", 0.8)  # ends between joined letters
    latin = entity(text, "NF-kappa B", "protein", 0.9)
    visit = visits(latin, whole, inner)
    visit.find(text)
    visit.page.wait_for_timeout(1000)
    words = visit.page.locator("#text-view .words")
    assert words.evaluate("(words) => getComputedStyle(words).direction") == "rtl"
    for each in (whole, inner, latin):
        assert_under_its_words(visit, each["text"])
    first, last = (places(visit, each["text"])["bars"][0] for each in (latin, whole))
    assert last["right"] < first["left"]
    box = words.bounding_box()
    assert box is not None
    start = visit.page.evaluate("""() => {
      const range = document.createRange();
      range.setStart(document.querySelector("#text-view .words").firstChild, 0);
      range.setEnd(document.querySelector("#text-view .words").firstChild, 1);
      return range.getBoundingClientRect().right;
    }""")
    assert start == pytest.approx(box["x"] + box["width"], abs=3)
    visit.bars.first.focus()
    visit.page.keyboard.press("ArrowLeft")  # onwards
    assert visit.page.evaluate("document.activeElement.entity.text") == whole["text"]


def test_markup_in_a_text_is_escaped(visits: Visits) -> None:
    text = "<script>window.hacked = 1</script> & <img src=x onerror='window.hacked = 2'> IL-2"
    label = {"label": "<b>DNA</b>"}
    visit = visits(
        entity(text, "<script>window", "DNA", 0.9), entity(text, "IL-2", "DNA", 0.9) | label
    )
    visit.find(text)
    visit.bars.first.click()
    assert visit.page.locator("#text-view .words").inner_text() == text
    expect(visit.page.locator("#details h2")).to_have_text("<script>window")
    assert visit.page.locator("#text-view img, #text-view script, #details b").count() == 0
    assert visit.page.evaluate("window.hacked") is None


def test_offsets_count_characters_not_units(visits: Visits) -> None:
    text = "🧬🧬 the IL-2 gene 𝛼 of T cells"
    visit = visits(entity(text, "IL-2 gene", "DNA", 0.9), entity(text, "T cells", "cell", 0.9))
    visit.find(text)
    for words in ("IL-2 gene", "T cells"):
        drawn = visit.page.evaluate(
            """(words) => {
              const { entity } = [...document.querySelectorAll("#text-view .bar")]
                .find((bar) => bar.entity.text === words);
              return document.getElementById("text").value.slice(entity.start, entity.end);
            }""",
            words,
        )
        assert drawn == words


def test_dark_mode_follows_the_system_and_has_a_switch(visits: Visits) -> None:
    visit = visits(color_scheme="dark")
    switch = visit.page.get_by_role("button", name="Dark mode")

    def back() -> str:
        return str(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    dark = back()
    expect(switch).to_have_attribute("aria-pressed", "true")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")
    light = back()
    assert light != dark
    visit.page.reload()
    assert back() == light
    switch.click()
    assert back() == dark
    visit.page.emulate_media(color_scheme="light")  # the page follows the system again
    assert back() == light


def test_a_request_to_a_busy_server_is_repeated(visits: Visits) -> None:
    visit = visits(*NESTED)
    calls: list[str] = []

    def busy(route: Route) -> None:
        calls.append(route.request.url)
        if len(calls) > 1:
            route.fallback()
        else:
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"detail": "full"})

    visit.page.route("**/v1/entities", busy)
    visit.page.locator("#text").fill(TEXT)
    visit.page.locator("#find").click()
    expect(visit.page.locator("#working-on")).to_contain_text("trying again in 1 s")
    expect(visit.bars).to_have_count(len(NESTED))
    assert len(calls) == 2
    assert visit.page.locator("#notice").is_hidden()


@pytest.mark.parametrize(
    ("status", "words", "again"),
    [
        (413, "too long for the server. Message of the server: at most 9", False),
        (422, "refused the text", False),
        (500, "The request failed (error 500)", True),
        (503, "starting or stopping", True),
        (504, "took too long", True),
    ],
)
def test_errors_of_the_server_have_readable_messages(
    visits: Visits, status: int, words: str, again: bool
) -> None:
    visit = visits(*NESTED)
    answer = {"status": status, "json": {"detail": "at most 9"}}
    visit.page.route("**/v1/entities", lambda route: route.fulfill(**answer), times=1)
    visit.page.locator("#text").fill(TEXT)
    visit.page.locator("#find").click()
    expect(visit.page.get_by_role("alert")).to_contain_text(words)
    expect(visit.page.get_by_role("button", name="Try again")).to_be_visible(visible=again)
    visit.page.locator("#find").click()
    expect(visit.bars).to_have_count(len(NESTED))
    expect(visit.page.get_by_role("alert")).to_be_hidden()


def test_a_failed_request_can_be_tried_again(visits: Visits) -> None:
    visit = visits(*NESTED)
    visit.page.route("**/v1/entities", lambda route: route.abort(), times=1)
    visit.page.locator("#text").fill(TEXT)
    visit.page.locator("#find").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("does not respond")
    visit.page.get_by_role("button", name="Try again").click()
    expect(visit.bars).to_have_count(len(NESTED))


def test_a_binary_file_is_refused(visits: Visits, tmp_path: Path) -> None:
    visit = visits()
    path = tmp_path / "picture.txt"
    path.write_bytes(b"\x89PNG\xff\x00")
    visit.page.locator("#file").set_input_files(path)
    expect(visit.page.get_by_role("alert")).to_contain_text(
        "picture.txt is not a text file in UTF-8"
    )


def test_a_token_is_requested_and_kept_in_memory_only(browser: Browser) -> None:
    with serving(create_app(permissive_recognizer(), token="open sesame")) as address:  # noqa: S106
        visit = Visit(browser, address)
        visit.open()
        field = visit.page.get_by_label("access token")
        field.fill("guess")
        field.press("Enter")
        expect(visit.page.get_by_role("alert")).to_contain_text("does not accept")
        field.fill("open sesame")
        field.press("Enter")
        expect(field).to_be_hidden()
        visit.find(TEXT)
        kept = visit.page.evaluate(
            "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])"
        )
        assert "sesame" not in kept
        visit.page.reload()
        expect(field).to_be_visible()
        visit.finish()
