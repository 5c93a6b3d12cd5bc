"""The page of the service in a real browser: paste, look, click, watch, filter, copy."""

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
from spandet.text.plain import plain_document
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


def said(entity: dict[str, Any]) -> str:
    """What a screen reader is told of an entity."""
    place = f"characters {entity['start']} to {entity['end']}"
    return f"{entity['text']}: {entity['label']}, score {entity['score']:.2f}, {place}"


def test_a_text_shows_what_the_recognizer_finds(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    entities = plain_document(recognizer(TEXT))["entities"]
    assert len(entities) > 3
    assert sorted(visit.names) == sorted(map(said, entities))
    assert " ".join(visit.page.locator("#sheet .words").all_text_contents()).split() == TEXT.split()
    assert visit.heading.startswith(f"{len(entities)} ")
    expect(visit.page.locator("#status")).to_have_text(f"{visit.heading} found")


def test_a_click_shows_the_way_of_an_entity(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    name = visit.names[0]
    visit.bars.first.click()
    details = visit.page.locator("#details")
    words, _, rest = name.rpartition(": ")
    expect(details.locator("h2")).to_have_text(words)
    expect(details.locator(".tag")).to_have_text(rest.split(",")[0])
    rows = details.locator(".stages tbody tr")
    rows.first.wait_for()
    # The stages, of which only the yardstick has but one, and the entity.
    assert rows.count() >= (2 if isinstance(recognizer.detector, Biaffine) else 3)
    # It plays by itself, comes to rest at the end, and can be led back.
    expect(rows.last).to_have_class("now")
    details.get_by_role("button", name="One stage back").click()
    expect(rows.nth(rows.count() - 2)).to_have_class("now")
    slider = details.get_by_role("slider", name="Stage")
    slider.press("Home")
    expect(rows.first).to_have_class("now")
    details.get_by_role("button", name="Play").click()
    if rows.count() > 2:  # with two it is over before anybody could stop it
        details.get_by_role("button", name="Pause").click()
    details.get_by_role("button", name="Play").wait_for()
    slider.press("End")
    expect(rows.last).to_have_class("now")
    # When all has come to rest, the bar lies under the entity's words.
    under = """(words) => {
      const bars = [...document.querySelectorAll(".way .bar:not([hidden])")]
        .map((bar) => bar.getBoundingClientRect());
      const holds = (box) => bars.some((bar) => bar.left <= box.left + 1
        && box.right <= bar.right + 1 && Math.abs(bar.top - box.bottom) < 3);
      return words === [...document.querySelectorAll(".way .w")]
        .filter((word) => [...word.getClientRects()].every(holds))
        .map((word) => word.textContent).join("");
    }"""
    visit.page.wait_for_function(under, arg=words.replace(" ", ""))


def test_the_slider_and_the_labels_hide_what_is_not_wanted(
    visit: Visit, recognizer: Recognizer
) -> None:
    visit.find(TEXT)
    entities = plain_document(recognizer(TEXT))["entities"]
    scores = sorted({round(entity["score"], 2) for entity in entities})
    middle = scores[len(scores) // 2]
    slider = visit.page.get_by_role("slider", name="Score above")
    slider.fill(str(middle))
    surer = [entity for entity in entities if entity["score"] > middle]
    expect(visit.bars).to_have_count(len(surer))
    assert 0 < len(surer) < len(entities)
    counts = dict.fromkeys(recognizer.labels, 0)
    for entity in surer:
        counts[entity["label"]] += 1
    for chip in visit.page.locator(".chip").all():
        assert counts[chip.locator("bdi").inner_text()] == int(chip.locator(".count").inner_text())
    label = surer[0]["label"]
    visit.page.get_by_role("checkbox", name=label).uncheck()
    expect(visit.bars).to_have_count(len(surer) - counts[label])
    visit.page.get_by_role("checkbox", name=label).check()
    visit.page.get_by_role("button", name="Back to the model’s own threshold").click()
    expect(visit.bars).to_have_count(len(entities))


def test_less_sure_entities_need_no_second_question(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.page.get_by_role("slider", name="Score above").fill("0.1")
    (document,) = recognizer.predict([TEXT], min_score=0.1)
    expect(visit.bars).to_have_count(len(document.entities))
    assert asked == []


def test_the_way_of_the_least_sure_entity_is_shown_too(
    visit: Visit, recognizer: Recognizer
) -> None:
    visit.find(TEXT)
    visit.page.get_by_role("slider", name="Score above").fill("0.05")
    (document,) = recognizer.predict([TEXT], min_score=0.05)
    unsure = min(plain_document(document)["entities"], key=lambda entity: entity["score"])
    visit.bars.nth(visit.names.index(said(unsure))).click()
    expect(visit.page.get_by_role("slider", name="Stage")).to_be_visible()


def test_copies_what_is_shown_as_json(visit: Visit, recognizer: Recognizer) -> None:
    visit.find(TEXT)
    visit.page.get_by_role("button", name="Copy as JSON").click()
    expect(visit.page.locator("#status")).to_contain_text("copied")
    copied = json.loads(visit.page.evaluate("navigator.clipboard.readText()"))
    assert copied["text"] == TEXT
    wanted = plain_document(recognizer(TEXT))["entities"]
    by_place = sorted(wanted, key=lambda entity: (entity["start"], -entity["end"]))
    assert copied["entities"] == by_place


def test_opens_a_text_file(visit: Visit, recognizer: Recognizer, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    visit.page.locator("#file").set_input_files(path)
    expect(visit.bars).to_have_count(len(recognizer(TEXT).entities))
    assert visit.page.locator("#text").input_value() == TEXT


def test_everything_can_be_done_with_keys(visit: Visit) -> None:
    page = visit.page

    def held() -> str:
        return str(page.evaluate("document.activeElement.getAttribute('aria-label')"))

    page.locator("#text").focus()
    page.keyboard.insert_text(TEXT)
    page.keyboard.press("Control+Enter")
    visit.bars.first.wait_for()
    page.locator("#copy").focus()
    page.keyboard.press("Tab")
    names = visit.names
    assert held() == names[0]
    page.keyboard.press("ArrowRight")
    assert held() == names[1]
    page.keyboard.press("End")
    assert held() == names[-1]
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.locator(".stages").wait_for()
    assert held() == "How an entity was found"
    page.keyboard.press("Tab")
    assert held() == "Close"
    page.keyboard.press("Escape")
    assert held() == names[0]
    assert page.locator("#details").is_hidden()
