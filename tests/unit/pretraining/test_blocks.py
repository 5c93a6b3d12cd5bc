from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spandet.encoding.pieces import Special
from spandet.pretraining.corpus import Blocks, Order, PieceStream

SPECIAL = Special(prefix=(1,), suffix=(2,), unknown=3, padding=0)


@given(st.integers(0, 60), st.integers(8, 20))
def test_blocks_hold_all_pieces_and_no_padding(length: int, size: int) -> None:
    ids = np.arange(10, 10 + length).astype("uint16")
    blocks = Blocks(PieceStream(ids, np.ones(length, dtype=bool)), SPECIAL, size=size)
    rows = [blocks[number].ids for number in range(len(blocks))]

    assert {len(row) for row in rows} <= {min(size, length + 2)}
    assert all(row[0] == 1 and row[-1] == 2 for row in rows)
    assert sorted({int(piece) for row in rows for piece in row[1:-1]}) == ids.tolist()
    assert all((np.diff(row[1:-1]) == 1).all() for row in rows)


def test_a_block_that_begins_inside_a_word_begins_a_word() -> None:
    stream = PieceStream(np.arange(10, 22), np.array([True, False, False] * 4))
    blocks = Blocks(stream, SPECIAL, size=10)

    assert blocks[1].ids.tolist() == [1, *range(14, 22), 2]
    assert blocks[1].starts[:4].tolist() == [True, True, False, True]


@given(st.integers(1, 12), st.integers(0, 30), st.integers(1, 9))
def test_every_epoch_reads_every_block_once(blocks: int, first: int, count: int) -> None:
    order = Order(blocks, seed=3)
    run = order.readings(0, 4 * blocks)

    for epoch in range(4):
        own = run[epoch * blocks : (epoch + 1) * blocks]
        assert {reading.epoch for reading in own} == {epoch}
        assert sorted(reading.block for reading in own) == list(range(blocks))
    assert order.readings(first, count) == Order(blocks, seed=3).readings(0, first + count)[first:]
