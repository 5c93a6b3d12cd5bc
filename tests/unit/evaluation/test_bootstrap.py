from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from spandet.errors import UsageError
from spandet.evaluation import bootstrap, compare, evaluate
from spandet.evaluation.bootstrap import intervals, resampled
from spandet.text import CharSpan, Document, Entity


def test_equal_documents_have_an_interval_of_one_point() -> None:
    found = intervals(Counter({(3, 4, 6): 10}), resamples=100, seed=0)
    assert {name: one.to_json() for name, one in found.items() if one} == {
        "precision": [0.75, 0.75],
        "recall": [0.5, 0.5],
        "f1": [0.6, 0.6],
    }


def test_a_resample_draws_documents_with_replacement() -> None:
    # Two documents, one with a hit: none, one or two hits with probabilities 1/4, 1/2, 1/4.
    sums = resampled(Counter({(1, 1, 1): 1, (0, 1, 1): 1}), resamples=20_000, seed=3)
    shares = [float((sums[:, 0] == hits).mean()) for hits in (0, 1, 2)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.02)
    assert (sums[:, 1:] == 2).all()


def test_drawing_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counter({(1, 2, 3): 4, (0, 1, 1): 2, (2, 2, 2): 5})
    whole = resampled(counts, resamples=100, seed=1)
    monkeypatch.setattr(bootstrap, "_CELLS", 21)
    assert np.array_equal(resampled(counts, resamples=100, seed=1), whole)


def test_the_interval_has_the_width_of_the_normal_approximation() -> None:
    # Precision of 400 documents with one prediction each, half of them right: normal, sd 0.025.
    found = intervals(Counter({(1, 1, 1): 200, (0, 1, 1): 200}), resamples=5_000, seed=0)
    assert found["precision"] is not None
    assert found["precision"].to_json() == pytest.approx([0.451, 0.549], abs=0.006)


def test_the_seed_decides() -> None:
    counts = Counter({(n % 5, 6, 7): n for n in range(1, 20)})
    assert intervals(counts, resamples=50, seed=1) == intervals(counts, resamples=50, seed=1)
    assert intervals(counts, resamples=50, seed=1) != intervals(counts, resamples=50, seed=2)


@pytest.mark.parametrize(("documents", "resamples"), [(0, 100), (1, 100), (2, 0)])
def test_too_little_to_draw_from_has_no_interval(documents: int, resamples: int) -> None:
    gold = [Document("a b", (Entity(CharSpan(0, 1), "x"),))] * documents
    report = evaluate(gold, gold, resamples=resamples)
    assert report.to_json()["intervals"] == {"precision": None, "recall": None, "f1": None}


def test_a_negative_number_of_resamples_is_refused() -> None:
    with pytest.raises(UsageError, match=r"resamples must be 0 .* not -1"):
        evaluate([], [], resamples=-1)
    with pytest.raises(UsageError, match="resamples must be 0"):
        compare([], [], [], resamples=-5)


def system(hits: int, documents: int) -> list[Document]:
    """Finds the entity of its first `hits` documents."""
    entity = Entity(CharSpan(0, 1), "x")
    return [Document("a b", (entity,) if n < hits else ()) for n in range(documents)]


def test_a_clear_difference_has_a_small_p_value() -> None:
    found = compare(system(40, 40), system(10, 40), system(35, 40), resamples=2_000)
    assert found.delta == pytest.approx(2 * 35 / 75 - 2 * 10 / 50)
    assert found.draws is not None
    assert found.draws.p_value == pytest.approx(2 / 2_001)
    assert found.draws.interval.low > 0
    assert found.draws.wins_b == 2_000


def test_the_p_value_is_twice_the_smaller_tail() -> None:
    found = compare(system(40, 40), system(21, 40), system(20, 40), resamples=999)
    assert found.draws is not None
    draws = found.draws
    assert draws.wins_a + draws.wins_b + draws.ties == 999
    assert draws.wins_b == 0  # B never finds what A does not
    assert draws.p_value == pytest.approx(2 * (draws.ties + 1) / 1_000)
    assert found.delta < 0


def test_swapping_the_systems_swaps_everything() -> None:
    gold, a, b = system(30, 30), system(12, 30), system(17, 30)
    one, other = compare(gold, a, b, resamples=200), compare(gold, b, a, resamples=200)
    assert one.delta == -other.delta
    assert one.a == other.b
