from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.evaluation import evaluate
from spandet.inference.decoding import DecodingSettings
from spandet.text import CharSpan, Document, Entity
from spandet.training.epochs import dev_score
from support.training_toys import ToyRecognizer, documents

TEXT = "abcdefgh"


@st.composite
def entity_sets(draw: st.DrawFn, *, scored: bool) -> Document:
    keys = st.tuples(st.integers(0, 3), st.integers(1, 4), st.sampled_from("xy"))
    scores = st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9])
    return Document(
        TEXT,
        tuple(
            Entity(CharSpan(start, start + length), label, draw(scores) if scored else None)
            for start, length, label in sorted(draw(st.sets(keys, max_size=5)))
        ),
    )


def f1_at(gold: list[Document], found: list[Document], threshold: float) -> float:
    accepted = [
        replace(d, entities=tuple(e for e in d.entities if (e.score or 0) > threshold))
        for d in found
    ]
    return evaluate(gold, accepted, resamples=0).micro.f1


@given(
    st.lists(
        st.tuples(entity_sets(scored=False), entity_sets(scored=True)), min_size=1, max_size=3
    ),
    st.sampled_from([0.0, 0.3, 0.5, 0.8]),
)
@settings(max_examples=60)
def test_the_tuned_threshold_is_optimal(
    pairs: list[tuple[Document, Document]], untuned: float
) -> None:
    gold, found = [one for one, _ in pairs], [other for _, other in pairs]
    scored = dev_score(gold, found, untuned=untuned)

    assert scored.f1 == f1_at(gold, found, scored.threshold)
    assert scored.f1_untuned == f1_at(gold, found, untuned)
    every = [f1_at(gold, found, threshold) for threshold in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)]
    assert scored.f1 == pytest.approx(max(every))
    fixed = dev_score(gold, found, untuned=untuned, tune=False)
    assert (fixed.threshold, fixed.f1) == (untuned, scored.f1_untuned)


@pytest.mark.parametrize("crossing", ["keep", "greedy", "both"])
@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_a_threshold_only_removes_entities(crossing: str, decay: float) -> None:
    """So one decoding with threshold 0 is enough for all thresholds."""
    torch.manual_seed(3)
    recognizer = ToyRecognizer(["pair", "thing"])
    recognizer.decoding = DecodingSettings.build(
        {"crossing": crossing, "nms_decay": decay, "nms_overlap": 0.3}, where="decoding"
    )
    dev = documents(20)
    everything = list(recognizer.predict(dev, min_score=0.0))
    for threshold in (0.4, 0.5, 0.6):
        accepted = [[e for e in d.entities if (e.score or 0) > threshold] for d in everything]
        found = [list(d.entities) for d in recognizer.predict(dev, min_score=threshold)]
        assert found == accepted
    assert sum(map(len, accepted)) < sum(len(d.entities) for d in everything)


def test_discontinuous_gold_entities_count_as_missed() -> None:
    gap = Entity(CharSpan(0, 5), "x", fragments=(CharSpan(0, 2), CharSpan(4, 5)))
    gold = [Document(TEXT, (gap, Entity(CharSpan(6, 8), "x")))]
    found = [Document(TEXT, (Entity(CharSpan(0, 5), "x", 0.2), Entity(CharSpan(6, 8), "x", 0.3)))]

    scored = dev_score(gold, found, untuned=0.5)

    assert (scored.precision, scored.recall, scored.f1_untuned) == (1.0, 0.5, 0.0)
    assert scored.threshold == pytest.approx(0.25)
