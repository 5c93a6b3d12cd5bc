"""Words to sub-word pieces, and sentences with their context to rows of pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import Tokenizer

from spandet.config import read_json
from spandet.encoding.examples import Example, Pieces, windows_of
from spandet.encoding.inputs import WordInput
from spandet.errors import UsageError
from spandet.layers.layout import Array

PIECES = "pieces.json"
"""The file with everything that `PieceMaker` needs."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class PieceBatch:
    """Rows of pieces for a transformer, and where the words of each sentence are in them."""

    ids: Int[Array, "row piece"]
    mask: Bool[Array, "row piece"]
    places: Int[Array, " own"]
    """The place of each of the sentences' own pieces, counted over all rows."""
    words: Int[Array, " own"]
    """The word of each own piece, counted over all sentences; every word has at least one."""
    firsts: Int[Array, " item"]
    """The first own piece of each word."""
    heads: Int[Array, " batch"]
    """The first row of each sentence; sentences of one passage may share it."""


@dataclass(frozen=True)
class Special:
    """Special pieces, which are not part of the text."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    unknown: int
    padding: int
    separator: int | None = None
    """Piece between a sentence and its context; None: no separators."""


class PieceMaker(WordInput):
    """Cuts words into pieces and arranges them in rows of at most `limit` for a transformer."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        special: Special,
        *,
        limit: int,
        context: int,
        overlap: int,
        shared: bool,
    ) -> None:
        """Take a tokenizer and the sizes of rows.

        Args:
            tokenizer: Cuts words.
            special: Pieces around each row.
            limit: Maximum pieces of a row, special ones included.
            context: Maximum pieces of context of a sentence.
            overlap: Pieces that neighbouring windows over a long sentence share.
            shared: Use all context, whatever `context` is, and encode equal rows only once.
        """
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
        self._tokenizer = tokenizer
        self._special = special
        self._sizes = {"limit": limit, "context": context, "overlap": overlap, "shared": shared}
        self._capacity = limit - len(special.prefix) - len(special.suffix)
        self._context = self._capacity if shared else min(context, self._capacity)
        self._overlap = overlap
        self._shared = shared

    def save(self, path: Path) -> None:
        """Write everything that `load` needs."""
        values = {
            "special": asdict(self._special),
            **self._sizes,
            "tokenizer": json.loads(self._tokenizer.to_str()),
        }
        path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> PieceMaker:
        """Read the file that `save` wrote.

        Raises:
            UsageError: the file is missing or damaged.
        """
        values = read_json(path)
        try:
            own = values.pop("special")
            special = Special(
                **{**own, "prefix": tuple(own["prefix"]), "suffix": tuple(own["suffix"])}
            )
            tokenizer = Tokenizer.from_str(json.dumps(values.pop("tokenizer")))
            return cls(tokenizer, special, **values)
        except Exception as error:  # tokenizers raises bare Exception for damaged values
            raise UsageError(f"{path} is damaged: it has no pieces ({error!r:.80})") from error

    @property
    def special(self) -> Special:
        """Special pieces around each row."""
        return self._special

    @property
    def capacity(self) -> int:
        """Maximum pieces of text in a row."""
        return self._capacity

    def pieces_of(self, words: Iterable[str]) -> dict[str, list[int]]:
        """The pieces of each word, from one call of the tokenizer.

        A tokenizer cuts each word of a list by itself, so each distinct word is cut only once. A
        word without pieces, such as one of zero-width characters, becomes the unknown piece.
        """
        distinct = list(dict.fromkeys(words))
        texts = [w if w.isascii() else _SURROGATE.sub("\ufffd", w) for w in distinct]
        encoding = self._tokenizer.encode(texts, is_pretokenized=True, add_special_tokens=False)
        pieces: list[list[int]] = [[] for _ in distinct]
        for piece, word in zip(encoding.ids, encoding.word_ids, strict=True):
            if word is not None:  # never: only special pieces have no word
                pieces[word].append(piece)
        unknown = [self._special.unknown]
        return {word: own or unknown for word, own in zip(distinct, pieces, strict=True)}

    def of(self, examples: Sequence[Example]) -> list[Pieces]:
        """The pieces of each example; they are computed if any example has none."""
        known = [example.pieces for example in examples if example.pieces is not None]
        return known if len(known) == len(examples) else self.cut(examples)

    def sizes(self, examples: Sequence[Example]) -> list[int]:
        """The number of pieces that the transformer encodes for each example."""
        extra = len(self._special.prefix) + len(self._special.suffix)
        return [
            sum(window.end - window.start + extra for window in pieces.windows)
            for pieces in self.of(examples)
        ]

    def arrays(self, examples: Sequence[Example]) -> PieceBatch:
        """Rows of pieces as arrays."""
        cuts = self.of(examples)
        prefix, suffix = self._special.prefix, self._special.suffix
        rows = [
            (*prefix, *cut.ids[window.start : window.end], *suffix)
            for cut in cuts
            for window in cut.windows
        ]
        numbers = np.arange(len(rows))
        if self._shared:
            distinct = {row: number for number, row in enumerate(dict.fromkeys(rows))}
            numbers = np.array([distinct[row] for row in rows], dtype=np.int64)
            rows = list(distinct)
        ids, mask = self._padded(rows)
        counts = np.fromiter(chain.from_iterable(cut.counts for cut in cuts), dtype=np.int64)
        windows = np.array([len(cut.windows) for cut in cuts], dtype=np.int64)
        return PieceBatch(
            ids,
            mask,
            self._places(cuts, numbers * ids.shape[1]),
            np.repeat(np.arange(len(counts)), counts),
            np.cumsum(counts) - counts,
            numbers[np.cumsum(windows) - windows],
        )

    def cut(self, examples: Sequence[Example]) -> list[Pieces]:
        """The pieces of each example, from one call of the tokenizer."""
        contexts = [self._context_of(example) for example in examples]
        texts = [
            (left, example.words, right)
            for example, (left, right) in zip(examples, contexts, strict=True)
        ]
        known = self.pieces_of(chain.from_iterable(chain.from_iterable(texts)))
        return [self._cut_one(known, *text) for text in texts]

    def _cut_one(
        self,
        known: Mapping[str, list[int]],
        left: Iterable[str],
        words: Iterable[str],
        right: Iterable[str],
    ) -> Pieces:
        """A sentence and its context, with separators between them if there are any."""
        before, own, after = (
            list(chain.from_iterable(map(known.__getitem__, run))) for run in (left, words, right)
        )
        if self._special.separator is not None:
            # The separator is the nearest piece of the context, so every row with context has it.
            before += [self._special.separator] * bool(before)
            after = [self._special.separator] * bool(after) + after
        windows = windows_of(
            len(before),
            len(own),
            len(after),
            capacity=self._capacity,
            context=self._context,
            overlap=self._overlap,
        )
        return Pieces([*before, *own, *after], [len(known[word]) for word in words], windows)

    def _context_of(self, example: Example) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The context words that may be used, given that each has at least one piece."""
        room, left, right = self._context, example.left, example.right
        from_left = min(len(left), max(room // 2, room - len(right)))
        from_right = min(len(right), max(room - room // 2, room - len(left)))
        return left[len(left) - from_left :], right[:from_right]

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        # A row without pieces (possible if there are no special ones) gets one piece of padding.
        width = max(1, int(lengths.max(initial=0)))
        mask = np.arange(width) < lengths[:, None]
        ids = np.full(mask.shape, self._special.padding, dtype=np.int64)
        ids[mask] = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
        mask[:, 0] = True
        return ids, mask

    def _places(self, cuts: Sequence[Pieces], starts: np.ndarray) -> np.ndarray:
        """The place of each own piece, from the window that keeps it and the start of its row."""
        windows = [window for cut in cuts for window in cut.windows]
        offset = len(self._special.prefix)
        places = [
            np.arange(window.kept_start, window.kept_end) + (start + offset - window.start)
            for start, window in zip(starts, windows, strict=True)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *places])
