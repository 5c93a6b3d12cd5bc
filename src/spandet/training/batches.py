"""Batches of sentences of similar length; the same for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from spandet.encoding import Encoder
from spandet.inference.batching import Budget, length_buckets
from spandet.seeding import generator
from spandet.tensors import GoldSpans, Links
from spandet.text import Entity, WordRow, WordSpan
from spandet.training.data import TrainingSentences
from spandet.training.recipe import TrainingSettings

_WINDOW = 50
"""Batches per window. Sentences are sorted only inside a window, so that company changes."""


def batches(
    sentences: TrainingSentences, *, epoch: int, settings: TrainingSettings
) -> list[tuple[int, ...]]:
    """The sentences of each batch of an epoch, counted from 0; each is in exactly one."""
    chance = generator(settings.seed, "batches", epoch)
    runs = sentences.runs
    order = torch.randperm(len(runs), generator=chance).tolist()
    window = _WINDOW * settings.batch_sentences
    found: list[tuple[int, ...]] = []
    for first in range(0, len(order), window):
        own = [runs[i] for i in order[first : first + window]]
        found.extend(fill(own, sentences, settings))
    shuffled = [found[i] for i in torch.randperm(len(found), generator=chance).tolist()]
    if epoch < settings.short_first_epochs:
        shuffled.sort(key=lambda batch: max(sentences.sizes[number] for number in batch))
    return shuffled


def fill(
    runs: Sequence[Sequence[int]], sentences: TrainingSentences, settings: TrainingSettings
) -> Iterator[tuple[int, ...]]:
    """Batches of some of the runs."""
    budget = Budget(settings.batch_sentences, settings.batch_pieces)
    return length_buckets(runs, sentences.sizes, sentences.words, budget)


def share_of_process(batch: Sequence[int], *, process: int, processes: int) -> tuple[int, ...]:
    """What one process gets of a batch; the parts are alike in number and length."""
    return tuple(batch[process::processes])


_Item = tuple[int, int, int]
"""Start, end, and number of the label."""


def gold_spans(
    rows: Sequence[WordRow], labels: Sequence[str], *, fragments: bool = False
) -> GoldSpans:
    """The entities of sentences as tensors. A label that is not listed is left out.

    Args:
        rows: The sentences.
        labels: Names of the label ids 1, 2, …
        fragments: Give discontinuous entities piece by piece, and what belongs together; else they
            are given with their gaps.
    """
    numbers = {label: number for number, label in enumerate(labels, start=1)}
    known = [[entity for entity in row.entities if entity.label in numbers] for row in rows]
    items = [_items(own, numbers, fragments=fragments) for own in known]
    most = max((len(item) for item in items), default=0)
    padded = [item + [(0, 1, 0)] * (most - len(item)) for item in items]
    table = torch.tensor(padded, dtype=torch.long).reshape(len(rows), most, 3)
    spans, numbered = table[..., :2], table[..., 2]
    links = None
    if fragments:
        links = Links(torch.zeros(len(rows), most, most), torch.zeros(len(rows), most))
        for i, (own, item) in enumerate(zip(known, items, strict=True)):
            _link(links.together[i], links.alone[i], own, item, numbers)
    return GoldSpans(spans, numbered, numbered > 0, links)


def _items(
    entities: Iterable[Entity[WordSpan]], numbers: Mapping[str, int], *, fragments: bool
) -> list[_Item]:
    """Whole entities as they come, then all other pieces, each of them once."""
    whole: list[_Item] = []
    pieces: dict[_Item, None] = {}
    for entity in entities:
        number = numbers[entity.label]
        if fragments and entity.fragments:
            pieces |= dict.fromkeys((p.start, p.end, number) for p in entity.fragments)
        else:
            whole.append((entity.span.start, entity.span.end, number))
    return whole + [piece for piece in pieces if piece not in whole]


def _link(
    together: torch.Tensor,
    alone: torch.Tensor,
    entities: Iterable[Entity[WordSpan]],
    items: Sequence[_Item],
    numbers: Mapping[str, int],
) -> None:
    """Write down which items of a sentence belong together, and which are entities alone."""
    places: dict[_Item, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item, []).append(place)
    for entity in entities:
        number = numbers[entity.label]
        own = [places[piece.start, piece.end, number] for piece in entity.pieces]
        if len(own) == 1:
            alone[own[0]] = 1.0
        else:
            everywhere = torch.tensor([place for some in own for place in some])
            together[everywhere[:, None], everywhere] = 1.0
    for some in places.values():  # what is there twice is not in two pieces
        same = torch.tensor(some)
        together[same[:, None], same] = 0.0


class FrozenOutputs:
    """What the transformer says of each sentence of the training data, in main memory."""

    def __init__(self) -> None:
        self._rows: dict[int, Tensor] = {}

    @staticmethod
    def batches(
        sentences: TrainingSentences, settings: TrainingSettings
    ) -> Iterator[tuple[int, ...]]:
        """All sentences in batches that depend on the data alone: a resumed run gets equal bits."""
        return fill(sentences.runs, sentences, settings)

    def add(
        self,
        batch: tuple[int, ...],
        encoder: Encoder,
        sentences: TrainingSentences,
        device: torch.device,
    ) -> None:
        """Compute and keep what it says of these sentences."""
        prepared = encoder.prepare([sentences.examples[i] for i in batch])
        said = encoder.transformer_words(prepared.to(device)).cpu()
        self._rows |= dict(zip(batch, said.split(prepared.cached_rows), strict=True))

    def of(self, batch: tuple[int, ...]) -> Tensor:
        """What it says of these sentences, as `EncoderBatch.cached` wants it."""
        return torch.cat([self._rows[i] for i in batch])

    @property
    def megabytes(self) -> int:
        """How much memory it takes."""
        return sum(rows.nbytes for rows in self._rows.values()) // 2**20
