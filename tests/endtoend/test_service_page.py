"""The page of the service in a real browser, with small models of all detectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from spandet.detectors.biaffine import Biaffine
from spandet.inference.recognizer import Recognizer
from spandet.text import Document
from spandet.text.dicts import document_to_dict
from support.page_visits import Visit
from support.small_models import DETECTORS, small_model, small_texts


def _text() -> str:
    """Two paragraphs that fit into a window."""
    document = Document(small_texts(1)[0])
    spans = [sentence.span for sentence in document.sentences if sentence.span is not None]
    sentences = [document.text[span.start : span.end] for span in spans]
    return " ".join(sentences[:3]) + "\n\n" + " ".join(sentences[3:6])


TEXT = _text()


@pytest.fixture(scope="module", params=DETECTORS)
def recognizer(request: pytest.FixtureRequest, browser: Browser) -> Recognizer:
    return Recognizer.from_pretrained(small_model(request.param))


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    visit = Visit(browser, address, permissions=["clipboard-read", "clipboard-write"])
    visit.open()
    yield visit
    visit.finish()


def aria_label(entity: dict[str, Any]) -> str:
    """The accessible name of an entity."""
    place = f"characters {entity['start']} to {entity['end']}"
    return f"{entity['text']}: {entity['label']}, score {entity['score']:.2f}, {place}"


def test_a_text_shows_the_entities_of_the_recognizer(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    entities = document_to_dict(recognizer(TEXT))["entities"]
    assert len(entities) > 3
    assert sorted(visit.names) == sorted(map(aria_label, entities))
    assert (
        " ".join(visit.page.locator("#text-view .words").all_text_contents()).split()
        == TEXT.split()
    )
    assert visit.heading.startswith(f"{len(entities)} ")
    expect(visit.page.locator("#status")).to_have_text(f"{visit.heading} found")


def test_a_click_shows_the_trajectory_of_an_entity(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    name = visit.names[0]
    visit.bars.first.click()
    details = visit.page.locator("#details")
    words, _, rest = name.rpartition(": ")
    expect(details.locator("h2")).to_have_text(words)
    expect(details.locator(".tag")).to_have_text(rest.split(",")[0])
    rows = details.locator(".stages tbody tr")
    rows.first.wait_for()
    # The stages, of which the baseline has only one, and the entity.
    assert rows.count() >= (2 if isinstance(recognizer.detector, Biaffine) else 3)
    # It plays automatically up to the last stage, and the buttons select other stages.
    expect(rows.last).to_have_class("now")
    details.get_by_role("button", name="Previous stage").click()
    expect(rows.nth(rows.count() - 2)).to_have_class("now")
    slider = details.get_by_role("slider", name="Stage")
    slider.press("Home")
    expect(rows.first).to_have_class("now")
    details.get_by_role("button", name="Play").click()
    if rows.count() > 2:  # with two it is over before it could be paused
        details.get_by_role("button", name="Pause").click()
    details.get_by_role("button", name="Play").wait_for()
    slider.press("End")
    expect(rows.last).to_have_class("now")
    # At the end the bar is under the entity's words.
    under = """(words) => {
      const bars = [...document.querySelectorAll(".trajectory .bar:not([hidden])")]
        .map((bar) => bar.getBoundingClientRect());
      const holds = (box) => bars.some((bar) => bar.left <= box.left + 1
        && box.right <= bar.right + 1 && Math.abs(bar.top - box.bottom) < 3);
      return words === [...document.querySelectorAll(".trajectory .w")]
        .filter((word) => [...word.getClientRects()].every(holds))
        .map((word) => word.textContent).join("");
    }"""
    visit.page.wait_for_function(under, arg=words.replace(" ", ""))


def test_the_slider_and_the_labels_filter_entities(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    entities = document_to_dict(recognizer(TEXT))["entities"]
    scores = sorted({round(entity["score"], 2) for entity in entities})
    middle = scores[len(scores) // 2]
    slider = visit.page.get_by_role("slider", name="Minimum score")
    slider.fill(str(middle))
    above = [entity for entity in entities if entity["score"] > middle]
    expect(visit.bars).to_have_count(len(above))
    assert 0 < len(above) < len(entities)
    counts = dict.fromkeys(recognizer.labels, 0)
    for entity in above:
        counts[entity["label"]] += 1
    for chip in visit.page.locator(".chip").all():
        assert counts[chip.locator("bdi").inner_text()] == int(chip.locator(".count").inner_text())
    label = above[0]["label"]
    visit.page.get_by_role("checkbox", name=label).uncheck()
    expect(visit.bars).to_have_count(len(above) - counts[label])
    visit.page.get_by_role("checkbox", name=label).check()
    visit.page.get_by_role("button", name="Reset to the model’s threshold").click()
    expect(visit.bars).to_have_count(len(entities))


def test_a_lower_minimum_score_needs_no_request(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    requests: list[str] = []
    visit.page.on("request", lambda request: requests.append(request.url))
    visit.page.get_by_role("slider", name="Minimum score").fill("0.1")
    (document,) = recognizer.predict([TEXT], min_score=0.1)
    expect(visit.bars).to_have_count(len(document.entities))
    assert requests == []


def test_the_trajectory_of_the_lowest_scoring_entity_is_shown(
    visit: Visit, recognizer: Recognizer
) -> None:
    visit.find(TEXT)
    visit.page.get_by_role("slider", name="Minimum score").fill("0.05")
    (document,) = recognizer.predict([TEXT], min_score=0.05)
    lowest = min(document_to_dict(document)["entities"], key=lambda entity: entity["score"])
    visit.bars.nth(visit.names.index(aria_label(lowest))).click()
    expect(visit.page.get_by_role("slider", name="Stage")).to_be_visible()


def test_copy_gives_the_visible_entities_as_json(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    visit.page.get_by_role("button", name="Copy as JSON").click()
    expect(visit.page.locator("#status")).to_contain_text("copied")
    copied = json.loads(visit.page.evaluate("navigator.clipboard.readText()"))
    assert copied["text"] == TEXT
    wanted = document_to_dict(recognizer(TEXT))["entities"]
    by_place = sorted(wanted, key=lambda entity: (entity["start"], -entity["end"]))
    assert copied["entities"] == by_place


def test_opens_a_text_file(visit: Visit, recognizer: Recognizer, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    visit.page.locator("#file").set_input_files(path)
    expect(visit.bars).to_have_count(len(recognizer(TEXT).entities))
    assert visit.page.locator("#text").input_value() == TEXT


def test_the_page_can_be_used_with_the_keyboard(visit: Visit) -> None:
    page = visit.page

    def focused() -> str:
        return str(page.evaluate("document.activeElement.getAttribute('aria-label')"))

    page.locator("#text").focus()
    page.keyboard.insert_text(TEXT)
    page.keyboard.press("Control+Enter")
    visit.bars.first.wait_for()
    page.locator("#copy").focus()
    page.keyboard.press("Tab")
    names = visit.names
    assert focused() == names[0]
    page.keyboard.press("ArrowRight")
    assert focused() == names[1]
    page.keyboard.press("End")
    assert focused() == names[-1]
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.locator(".stages").wait_for()
    assert focused() == "Details of the entity"
    page.keyboard.press("Tab")
    assert focused() == "Close"
    page.keyboard.press("Escape")
    assert focused() == names[0]
    assert page.locator("#details").is_hidden()
