"""Text for pretraining: cut into pieces once, kept on disk, read in blocks of equal length."""

from __future__ import annotations

import hashlib
import math
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from pydantic import BaseModel, ValidationError

from spandet.encoding.pieces import Special
from spandet.errors import UsageError
from spandet.formats import Corpus
from spandet.formats.target import Target
from spandet.seeding import generator
from spandet.text import Document


class TextFacts(BaseModel):
    """Name, size and digest of one file of text."""

    name: str
    """The file's name without its folders."""
    documents: int = 0
    characters: int = 0
    sha256: str = ""
    """A digest of the documents' texts."""


class TextReader:
    """Iterates over the texts of documents and computes size and digest of each file."""

    def __init__(self, texts: Sequence[Iterable[Document]]) -> None:
        self._texts = texts
        self.facts: list[TextFacts] = []
        """Facts of the files that have been read completely."""

    def __iter__(self) -> Iterator[str]:
        self.facts = []
        for source in self._texts:
            facts, digest = TextFacts(name=_name(source)), hashlib.sha256()
            for document in source:
                text = document.text
                data = text.encode("utf-8", "surrogatepass")
                digest.update(len(data).to_bytes(8) + data)
                facts.documents += 1
                facts.characters += len(text)
                yield text
            facts.sha256 = digest.hexdigest()
            self.facts.append(facts)

    def content(self) -> str:
        """A digest of all texts in their order; valid after they have been read."""
        return hashlib.sha256(" ".join(facts.sha256 for facts in self.facts).encode()).hexdigest()


def content_of(texts: Sequence[Iterable[Document]]) -> str:
    """Read texts and return their digest."""
    reader = TextReader(texts)
    for _ in reader:
        pass
    return reader.content()


def _name(source: Iterable[Document]) -> str:
    return Path(source.source.name).name if isinstance(source, Corpus) else "documents in memory"


PIECES = "pieces"
"""Folder of the pieces, inside the folder of the run."""

_FACTS = "facts.json"
_SPLITS = ("train", "held-out")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHUNK_DOCUMENTS = 512
_CHUNK_PIECES = 1 << 20


class PieceFacts(BaseModel):
    """The texts and the tokenizer that stored pieces were made from."""

    cutting: str
    """A digest of the tokenizer and of the held-out share."""
    content: str
    """A digest of the texts."""
    texts: list[TextFacts]
    dtype: str


@dataclass(frozen=True)
class PieceStream:
    """The pieces of all documents in one array, with a separator after each document."""

    ids: np.ndarray
    starts: np.ndarray
    """Whether a piece is the first of a word."""

    def counts(self, size: int) -> np.ndarray:
        """How often each piece of a vocabulary of `size` pieces occurs."""
        total = np.zeros(size, dtype=np.int64)
        for first in range(0, len(self.ids), _CHUNK_PIECES):
            total += np.bincount(self.ids[first : first + _CHUNK_PIECES], minlength=size)
        return total


@dataclass(frozen=True)
class PieceCorpus:
    """The training text and the held-out text of a run, as pieces."""

    facts: PieceFacts
    train: PieceStream
    held_out: PieceStream


@dataclass(frozen=True)
class Cutter:
    """Cuts texts into pieces with a tokenizer."""

    tokenizer: Any
    """A tokenizer of the tokenizers library."""
    special: Special
    size: int
    """Size of the encoder's vocabulary."""
    held_out: float
    """Share of documents that is held out."""

    def digest(self) -> str:
        """Equal for cutters that cut equal texts into equal pieces."""
        facts = f"1 {self.held_out} {self.special} {self.size} {self.tokenizer.to_str()}"
        return hashlib.sha256(facts.encode()).hexdigest()

    def cut(self, texts: Iterable[str]) -> Iterator[tuple[bool, PieceStream]]:
        """The pieces of each document that has any, and whether it is held out."""
        first: int | None = None
        ends = np.array(self.special.suffix, dtype=np.int64)
        remaining = iter(texts)
        while chunk := list(islice(remaining, _CHUNK_DOCUMENTS)):
            clean = [t if t.isascii() else _SURROGATE.sub("\ufffd", t) for t in chunk]
            encoded = self.tokenizer.encode_batch(clean, add_special_tokens=False)
            for text, encoding in zip(chunk, encoded, strict=True):
                if not encoding.ids:
                    continue
                number = _number(text)
                first = number if first is None else first
                # The first document is always held out, so that there is held-out text; the choice
                # depends on the text, so that copies of a document are on the same side.
                is_held_out = self.held_out > 0 and (
                    number == first or number < self.held_out * 2**64
                )
                ids = np.concatenate([np.array(encoding.ids, dtype=np.int64), ends])
                words = np.array(encoding.word_ids, dtype=np.float64)  # None becomes nan
                starts = np.ones(len(ids), dtype=bool)
                starts[1 : len(words)] = words[1:] != words[:-1]
                yield is_held_out, PieceStream(ids, starts)


def _number(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def write_pieces(texts: Sequence[Iterable[Document]], cutter: Cutter, folder: Path) -> None:
    """Cut texts into pieces and store them in `folder`, unless it has them already.

    Raises:
        UsageError: there is no text, or the pieces cannot be written.
    """
    stored = _stored_facts(folder)
    if stored and stored.cutting == cutter.digest() and stored.content == content_of(texts):
        return
    shutil.rmtree(folder, ignore_errors=True)
    reader = TextReader(texts)
    dtype = "uint16" if cutter.size <= 1 << 16 else "int32"
    with Target(str(folder)).folder() as draft:
        sizes = _write_streams(cutter.cut(reader), draft, np.dtype(dtype))
        facts = PieceFacts(
            cutting=cutter.digest(), content=reader.content(), texts=reader.facts, dtype=dtype
        )
        _check(facts, sizes)
        (draft / _FACTS).write_text(facts.model_dump_json(), encoding="utf-8")


def _stored_facts(folder: Path) -> PieceFacts | None:
    try:
        return PieceFacts.model_validate_json((folder / _FACTS).read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None


def _write_streams(
    documents: Iterable[tuple[bool, PieceStream]], folder: Path, dtype: np.dtype[Any]
) -> list[int]:
    """Append each document to the files of its split; returns the number of pieces per split."""
    sizes = [0, 0]
    with ExitStack() as stack:
        files: list[tuple[BinaryIO, BinaryIO]] = [
            (stack.enter_context(ids.open("wb")), stack.enter_context(starts.open("wb")))
            for ids, starts in (_paths(folder, split) for split in _SPLITS)
        ]
        for is_held_out, pieces in documents:
            ids, starts = files[is_held_out]
            ids.write(pieces.ids.astype(dtype).tobytes())
            starts.write(pieces.starts.tobytes())
            sizes[is_held_out] += len(pieces.ids)
    return sizes


def _check(facts: PieceFacts, sizes: Sequence[int]) -> None:
    if sizes[0]:
        return
    names = ", ".join(text.name for text in facts.texts) or "no file"
    if not sizes[1]:
        raise UsageError(f"there is no text to learn from in {names}")
    raise UsageError(
        f"all text of {names} is held out, so none is left to learn from: give more documents "
        f"(--text-from text-lines makes one of each line), or set held_out=0"
    )


def read_pieces(folder: Path) -> PieceCorpus:
    """The pieces that `write_pieces` stored in a folder, memory-mapped."""
    facts = PieceFacts.model_validate_json((folder / _FACTS).read_text(encoding="utf-8"))
    train, held_out = (_stream(folder, split, facts.dtype) for split in _SPLITS)
    return PieceCorpus(facts, train, held_out)


def _stream(folder: Path, split: str, dtype: str) -> PieceStream:
    ids, starts = _paths(folder, split)
    if not ids.stat().st_size:  # an empty file cannot be mapped
        return PieceStream(np.zeros(0, dtype), np.zeros(0, bool))
    return PieceStream(np.memmap(ids, dtype, mode="r"), np.memmap(starts, bool, mode="r"))


def _paths(folder: Path, split: str) -> tuple[Path, Path]:
    return folder / f"{split}.ids", folder / f"{split}.starts"


@dataclass(frozen=True)
class Block:
    """Consecutive pieces that the encoder reads at once."""

    ids: np.ndarray
    starts: np.ndarray
    """Whether a piece is the first of a word."""


class Blocks:
    """A stream of pieces divided into blocks, with special pieces around each, without padding."""

    def __init__(self, stream: PieceStream, special: Special, *, size: int) -> None:
        """Divide a stream into blocks.

        Args:
            stream: The pieces. The last block overlaps the one before if it would be too short.
            special: Pieces around each block.
            size: Pieces of a block, including these. A shorter text is one shorter block.
        """
        self._stream = stream
        self._prefix, self._suffix = np.array(special.prefix, int), np.array(special.suffix, int)
        self._content = size - len(self._prefix) - len(self._suffix)
        self._last = max(0, len(stream.ids) - self._content)

    def __len__(self) -> int:
        return math.ceil(len(self._stream.ids) / self._content)

    def __getitem__(self, number: int) -> Block:
        first = min(number * self._content, self._last)
        own = slice(first, first + self._content)
        ids = np.concatenate([self._prefix, self._stream.ids[own].astype(int), self._suffix])
        starts = np.ones(len(ids), dtype=bool)
        inner = self._stream.starts[own]
        starts[len(self._prefix) : len(self._prefix) + len(inner)] = inner
        starts[len(self._prefix)] = True  # even if the block starts inside a word
        return Block(ids, starts)


@dataclass(frozen=True)
class Reading:
    """Number of a block and the epoch in which it is read."""

    epoch: int
    block: int


@dataclass(frozen=True)
class Order:
    """The order of blocks in a run: every epoch has all blocks in a new order."""

    blocks: int
    seed: int

    def readings(self, first: int, count: int) -> list[Reading]:
        """`count` readings from number `first`, counted from the start of the run."""
        pairs = [divmod(number, self.blocks) for number in range(first, first + count)]
        return [Reading(epoch, int(_shuffled(self, epoch)[place])) for epoch, place in pairs]


@lru_cache(maxsize=2)
def _shuffled(order: Order, epoch: int) -> np.ndarray:
    rng = generator(order.seed, "blocks", epoch)
    shuffled: np.ndarray = torch.randperm(order.blocks, generator=rng).numpy()
    return shuffled
