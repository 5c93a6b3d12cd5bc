"""Batches: the sentences of each, their gold spans, and cached outputs of a frozen transformer."""

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
"""Batches per window. Sentences are sorted by length inside a window, not over the whole epoch."""


def batches(
    sentences: TrainingSentences, *, epoch: int, settings: TrainingSettings
) -> list[tuple[int, ...]]:
    """The batches of an epoch (counted from 0), as sentence numbers; each sentence is in one batch.

    They depend on the sentences, the settings and the epoch only.
    """
    rng = generator(settings.seed, "batches", epoch)
    runs = sentences.runs
    order = torch.randperm(len(runs), generator=rng).tolist()
    window = _WINDOW * settings.batch_sentences
    found: list[tuple[int, ...]] = []
    for first in range(0, len(order), window):
        own = [runs[i] for i in order[first : first + window]]
        found.extend(fill(own, sentences, settings))
    shuffled = [found[i] for i in torch.randperm(len(found), generator=rng).tolist()]
    if epoch < settings.short_first_epochs:
        shuffled.sort(key=lambda batch: max(sentences.sizes[number] for number in batch))
    return shuffled


def fill(
    runs: Sequence[Sequence[int]], sentences: TrainingSentences, settings: TrainingSettings
) -> Iterator[tuple[int, ...]]:
    """Divide runs of sentences into batches of similar length."""
    budget = Budget(settings.batch_sentences, settings.batch_pieces)
    return length_buckets(runs, sentences.sizes, sentences.words, budget)


def share_of_process(batch: Sequence[int], *, process: int, processes: int) -> tuple[int, ...]:
    """The share of a batch for one process; shares are similar in number and length."""
    return tuple(batch[process::processes])


_Item = tuple[int, int, int]
"""Start, end and label id."""


def gold_spans(
    rows: Sequence[WordRow], labels: Sequence[str], *, fragments: bool = False
) -> GoldSpans:
    """The gold entities of sentences as tensors, without entities whose label is not listed.

    Args:
        rows: The sentences.
        labels: Names of the label ids 1, 2, …
        fragments: Give the fragments of discontinuous entities and the links between them;
            otherwise a discontinuous entity is one span from its first to its last word.
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
    """Contiguous entities in their order, then the distinct fragments of the others."""
    whole: list[_Item] = []
    parts: dict[_Item, None] = {}
    for entity in entities:
        number = numbers[entity.label]
        if fragments and entity.fragments:
            parts |= dict.fromkeys((p.start, p.end, number) for p in entity.fragments)
        else:
            whole.append((entity.span.start, entity.span.end, number))
    return whole + [part for part in parts if part not in whole]


def _link(
    together: torch.Tensor,
    alone: torch.Tensor,
    entities: Iterable[Entity[WordSpan]],
    items: Sequence[_Item],
    numbers: Mapping[str, int],
) -> None:
    """Set which items of a sentence are fragments of one entity, and which are whole entities."""
    places: dict[_Item, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item, []).append(place)
    for entity in entities:
        number = numbers[entity.label]
        own = [places[span.start, span.end, number] for span in entity.spans]
        if len(own) == 1:
            alone[own[0]] = 1.0
        else:
            everywhere = torch.tensor([place for some in own for place in some])
            together[everywhere[:, None], everywhere] = 1.0
    for some in places.values():  # equal items are not two fragments
        same = torch.tensor(some)
        together[same[:, None], same] = 0.0


class FrozenOutputs:
    """Cached outputs of a frozen transformer for each training sentence, in main memory."""

    def __init__(self) -> None:
        self._rows: dict[int, Tensor] = {}

    @staticmethod
    def batches(
        sentences: TrainingSentences, settings: TrainingSettings
    ) -> Iterator[tuple[int, ...]]:
        """All sentences in batches that depend on the data only: a resumed run gets equal bits."""
        return fill(sentences.runs, sentences, settings)

    def add(
        self,
        batch: tuple[int, ...],
        encoder: Encoder,
        sentences: TrainingSentences,
        device: torch.device,
    ) -> None:
        """Compute and cache the outputs for a batch."""
        prepared = encoder.prepare([sentences.examples[i] for i in batch])
        outputs = encoder.transformer_words(prepared.to(device)).cpu()
        self._rows |= dict(zip(batch, outputs.split(prepared.cached_rows), strict=True))

    def of(self, batch: tuple[int, ...]) -> Tensor:
        """The cached outputs for a batch, for `EncoderBatch.cached`."""
        return torch.cat([self._rows[i] for i in batch])

    @property
    def megabytes(self) -> int:
        """Size of the cache."""
        return sum(rows.nbytes for rows in self._rows.values()) // 2**20
