from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spandet.pretraining.corpus import Block
from spandet.pretraining.objective import Masking
from spandet.pretraining.settings import PretrainingSettings
from spandet.seeding import generator

SPECIAL, MASK, SIZE = (0, 1, 2, 3), 3, 50


def masking(**values: object) -> Masking:
    never = np.zeros(SIZE, dtype=bool)
    never[list(SPECIAL)] = True
    settings = PretrainingSettings.build(values, where="pretraining")
    return Masking(settings, MASK, never, np.arange(len(SPECIAL), SIZE))


def block(ids: list[int], starts: list[bool] | None = None) -> Block:
    return Block(np.array(ids), np.array(starts or [True] * len(ids)))


blocks = st.lists(st.tuples(st.integers(0, SIZE - 1), st.booleans()), min_size=1, max_size=200).map(
    lambda pairs: block([i for i, _ in pairs], [s for _, s in pairs])
)


@given(blocks, st.integers(0, 3), st.booleans())
def test_masks_cover_ordinary_pieces_only(one: Block, seed: int, whole_words: bool) -> None:
    masked = masking(whole_words=whole_words).apply(one, generator(seed))

    ordinary = ~np.isin(one.ids, SPECIAL)
    assert ordinary[masked.places].all()
    assert (np.diff(masked.places) > 0).all()
    assert (masked.targets == one.ids[masked.places]).all()
    untouched = np.ones(len(one.ids), dtype=bool)
    untouched[masked.places] = False
    assert (masked.ids[untouched] == one.ids[untouched]).all()
    assert not np.isin(masked.ids[masked.places], [0, 1, 2]).any()
    if not whole_words and ordinary.any():
        assert len(masked.places) == 1 or abs(len(masked.places) - 0.15 * ordinary.sum()) <= 0.5


@given(blocks, st.integers(0, 3))
def test_whole_words_are_masked_or_not(one: Block, seed: int) -> None:
    """A word consists of the pieces from one start to the next."""
    masked = masking(whole_words=True).apply(one, generator(seed))

    words = np.cumsum(one.starts)
    ordinary = ~np.isin(one.ids, SPECIAL)
    covered = set(words[masked.places].tolist())
    assert set(masked.places.tolist()) == {
        place for place in range(len(words)) if words[place] in covered and ordinary[place]
    }


def test_shares_of_masked_random_and_visible_pieces() -> None:
    law = masking()
    drawn = torch.randint(len(SPECIAL), SIZE, (400, 128), generator=generator(1)).numpy()
    rows = [block(row.tolist()) for row in drawn]
    found = [law.apply(row, generator(0, number)) for number, row in enumerate(rows)]

    places = sum(len(one.places) for one in found)
    assert places / drawn.size == pytest.approx(0.15, abs=0.002)
    read = np.concatenate([one.ids[one.places] for one in found])
    targets = np.concatenate([one.targets for one in found])
    assert (read == MASK).mean() == pytest.approx(0.8, abs=0.02)
    assert (read == targets).mean() == pytest.approx(0.1 + 0.1 / 46, abs=0.02)
    hits = np.zeros(128)
    for one in found:
        hits[one.places] += 1
    assert hits.min() > 25  # 60 are expected at each place
    assert hits.max() < 100


def test_a_mask_depends_on_its_generator_only() -> None:
    row = block(list(range(4, 44)))

    first, again, other = (masking().apply(row, generator(0, n)) for n in (1, 1, 2))

    assert (first.ids == again.ids).all()
    assert (first.places == again.places).all()
    assert (first.places != other.places).any()


def test_measured_pieces_are_all_masked() -> None:
    """A piece that stays visible could be copied."""
    row = block(list(range(4, 50)))

    for number in range(20):
        trained = masking().apply(row, generator(0, number))
        measured = masking().apply(row, generator(0, number), cover_all=True)
        assert (measured.places == trained.places).all()
        assert (measured.ids[measured.places] == MASK).all()
