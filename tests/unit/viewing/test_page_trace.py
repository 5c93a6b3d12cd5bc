"""The HTML and JSON of traces, without a browser."""

from __future__ import annotations

import json
import random
import re

import pytest

from spandet.text import Document, Entity, Sentence, WordSpan
from spandet.viewing import trace_to_html
from spandet.viewing.layout import trace_layout
from spandet.viewing.traces import MissedEntity, Reason, TracedDocument, TracedSentence
from support.trace_samples import IN_FRAGMENTS, PLAIN, WITH_GOLD, WORDS, candidate, found, sentence

HOSTILE = "</style><script>alert(1)</script>\"'&"


def test_a_row_has_its_stages() -> None:
    page = trace_to_html([PLAIN], title="t")
    assert 'data-steps="2.870,4.010,0.50;2.460,4.060,0.80;2.000,4.000,0.90"' in page
    assert re.findall(r'class="stop" title="([^"]*)"', page) == ["stage 0", "stage 1", "predicted"]
    assert "1 document · 1 sentence · 2 found</p>" in page
    assert 'id="errors"' not in page


def test_with_gold_rows_have_outcomes_and_gold_spans() -> None:
    page = trace_to_html([WITH_GOLD], title="t")
    assert re.findall(r'<li class="k\d ?([^"]*)"', page) == ["hit", "alarm", "miss", "miss"]
    assert re.findall(r'data-gold="([^"]*)"', page) == ["3,4", "7,8"]
    assert "only the 1 of 1 sentence with errors" in page
    summary = re.sub(r"<[^>]*>", "", page.split('class="soft summary">')[1].split("</p>")[0])
    assert summary == "1 document · 1 sentence · 2 found · ✓ 1 correct · ✗ 1 wrong · ○ 3 missed"
    assert "<bdi>Gro</bdi> (<bdi>PRO</bdi>) missed: it does not begin" in page


def test_the_table_has_the_probabilities_of_each_stage() -> None:
    page = trace_to_html([PLAIN], title="t")
    row = page.split("<th scope=row>stage 1</th>")[1].split("</tr>")[0]
    assert row.startswith("<td>(2.46, 3.06)</td><td></td>")
    assert re.findall(r"<bdi>([^<]*)</bdi> ([\d.]*)", row) == [
        ("CEL", "0.80"),
        ("no entity", "0.10"),
        ("DNA", "0.10"),
    ]
    last = page.split("<th scope=row>predicted</th>")[1].split("</tr>")[0]
    assert last.startswith("<td>(2, 3)</td><td></td>")


def test_a_discontinuous_entity_has_a_bar_and_a_table_per_fragment() -> None:
    page = trace_to_html([IN_FRAGMENTS], title="t")
    moves = "0.200,1.100,0.50;0.000,1.000,0.90|2.500,4.000,0.50;2.000,4.000,0.90"
    assert f'data-steps="{moves}"' in page
    assert 'data-gold="5,6;7,8"' in page
    hit, miss = page.split('<ol class="trajectories">')[1].split("</li>")[:2]
    assert hit.count('<table class="stages">') == 2
    assert "(0, 0 … 2, 3, CEL)" in hit
    assert hit.count("fragment (") == 2
    assert miss.count('<table class="stages">') == 1
    assert "✓</span> 1 correct" in page


def test_in_json_the_first_fragment_is_the_candidate_and_the_others_follow() -> None:
    value = json.loads(json.dumps(IN_FRAGMENTS.to_json()))
    (hit,) = value["sentences"][0]["found"]
    assert hit["fragments"] == [[0, 1], [2, 4]]
    assert [step["start"] for step in hit["steps"]] == [0.2]
    assert [(each["start"], each["end"]) for each in hit["more"]] == [(2, 4)]
    (miss,) = value["sentences"][0]["missed"]
    assert (miss["reason"], miss["fragments"]) == ("links", [[5, 6], [7, 8]])


def test_everything_is_escaped() -> None:
    hostile = sentence([HOSTILE, "b"], [found(0, 1, HOSTILE, (0.0, 1.0))], id=HOSTILE)
    page = trace_to_html([hostile], title=HOSTILE)
    assert page.count("<script>") == 1
    assert page.count("</style>") == 1
    assert "alert(1)</script>" not in page


def test_a_page_without_entities_has_no_slider() -> None:
    page = trace_to_html([sentence(["Nothing", "here"]), sentence([])], title="t")
    assert 'id="stage"' not in page
    assert page.count("nothing found") == 1
    assert page.count("<section") == 1
    assert "2 documents · 1 sentence · 0 found" in page


def test_punctuation_stays_with_its_word_and_chinese_may_break() -> None:
    document = Document("(IL-2), 北京大学 is")
    traced = TracedDocument(
        document,
        (TracedSentence(Sentence(("(", "IL-2", "),", "北", "京", "is"), (0, 1, 5, 8, 9, 13)), ()),),
    )
    page = trace_to_html([traced], title="t")
    words = page.split('<p class="words" dir="auto" lang="">')[1].split("</p>")[0]
    plain = re.sub(r'<span class="w"[^>]*>([^<]*)</span>', r"\1", words)
    assert plain == '<span class="run">(IL-2),</span> 北京大学 is'


def boxes(traced: TracedSentence) -> list[tuple[int, float, float]]:
    table = trace_layout(traced)
    return [
        (layer, min(map(min, row.places)), max(map(max, row.places)))
        for row, layer in zip(table.rows, table.layers, strict=True)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_bars_do_not_overlap_at_any_stage(seed: int) -> None:
    rng = random.Random(seed)
    words = [rng.choice(["a", "protein", "interleukin-2"]) for _ in range(12)]
    rows = []
    for _ in range(rng.randint(1, 8)):
        first = rng.randrange(11)
        places = [(rng.uniform(-1, 6), rng.uniform(4, 13)) for _ in range(3)]
        rows.append(found(first, rng.randint(first + 1, 12), "CEL", *places))
    (traced,) = sentence(words, rows).sentences
    table = trace_layout(traced)
    placed = boxes(traced)
    for i, (layer, start, end) in enumerate(placed):
        for other, other_start, other_end in placed[:i]:
            assert layer != other or end <= other_start or other_end <= start
        for word in range(max(0, int(start)), min(12, int(end))):
            assert table.rooms[word] > layer
    assert sorted(set(table.layers)) == list(range(max(table.layers) + 1))


def test_a_word_without_bars_has_no_room_below() -> None:
    (traced,) = sentence(WORDS, [found(2, 4, "CEL", (2.0, 4.0))]).sentences
    assert trace_layout(traced).rooms == (0, 0, 1, 1, 0, 0, 0, 0, 0, 0)


def test_json_is_plain_and_half_open() -> None:
    record = json.loads(json.dumps(WITH_GOLD.to_json()))
    assert record["id"] == "d1"
    assert record["misfits"] == [{"start": 0, "end": 3, "label": "PRO"}]
    (only,) = record["sentences"]
    assert only["words"] == list(WORDS)
    assert only["gold"][0] == {"start": 2, "end": 4, "label": "CEL"}
    first, second = only["found"]
    assert (first["start"], first["end"], first["right"], second["right"]) == (2, 4, True, False)
    assert first["steps"] == [
        {"stage": "stage 0", "start": 2.87, "end": 4.01, "score": 0.5},
        {
            "stage": "stage 1",
            "start": 2.46,
            "end": 4.06,
            "no_entity": 0.1,
            "label_probs": {"CEL": 0.8, "DNA": 0.1},
        },
    ]
    none, near = only["missed"]
    assert (none["reason"], none["nearest"]) == ("no-candidate", None)
    assert (near["nearest"]["start"], near["nearest"]["end"]) == (7, 8)
    assert near["nearest"]["no_entity"] == 0.9


def test_fragments_are_kept_in_json() -> None:
    apart = Entity.from_fragments([WordSpan(0, 1), WordSpan(2, 3)], "CEL")
    missed = MissedEntity(apart, candidate(0, 3, "CEL", (0.0, 3.0)), Reason.GAP, "it has a gap")
    (only,) = sentence(WORDS, missed=[missed]).to_json()["sentences"]
    assert only["missed"][0]["fragments"] == [[0, 1], [2, 3]]
