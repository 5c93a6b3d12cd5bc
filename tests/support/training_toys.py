"""A very small recognizer, for tests of the training engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import torch
from accelerate import Accelerator
from torch import Generator, Tensor, nn

from spandet.detectors import Detector
from spandet.encoding import Encoder, Example
from spandet.inference.decoding import DecodingSettings
from spandet.inference.recognizer import Recognizer
from spandet.tensors import GoldSpans, Loss, Losses, SpanPredictions, WordFeatures
from spandet.text import Document, Entity, WordRow, WordSpan
from spandet.training.batches import batches
from spandet.training.checkpoint import RunState
from spandet.training.data import TrainingSentences
from spandet.training.epochs import TrainingLoop
from spandet.training.log import Log
from spandet.training.loop import StopRequest
from spandet.training.progress import Screen
from spandet.training.recipe import TrainingSettings
from spandet.training.run_folder import RunFolder
from spandet.training.step import build_accelerator, build_engine

WORDS = 64
LONGEST = 3


@dataclass(frozen=True)
class ToyBatch:
    ids: Tensor
    lengths: tuple[int, ...]
    cached: Tensor | None = None

    @property
    def cached_rows(self) -> list[int]:
        return list(self.lengths)

    def to(self, device: torch.device) -> ToyBatch:
        cached = None if self.cached is None else self.cached.to(device)
        return replace(self, ids=self.ids.to(device), cached=cached)


class ToyEncoder(nn.Module):
    """An embedding in place of the transformer, and a linear layer."""

    def __init__(self, *, dim: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.dim = dim
        self.context_words = self.passage_words = 0
        self.neighbour_sentences = 0
        self.transformer = nn.Embedding(WORDS, dim)
        self.rest = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.transformer_calls = 0

    def prepare(self, examples: Sequence[Example]) -> ToyBatch:
        words = list(chain.from_iterable(example.words for example in examples))
        ids = torch.tensor([crc32(word.encode()) % WORDS for word in words], dtype=torch.long)
        return ToyBatch(ids, tuple(len(example.words) for example in examples))

    def with_pieces(self, examples: Sequence[Example]) -> Sequence[Example]:
        return examples

    def sizes(self, examples: Sequence[Example]) -> list[int]:
        return [len(example.words) for example in examples]

    def together(self, examples: Sequence[Example]) -> list[list[int]]:
        return [[number] for number in range(len(examples))]

    def pretrained_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        return self.transformer.named_parameters(prefix="transformer")

    @torch.no_grad()
    def transformer_words(self, batch: ToyBatch) -> Tensor:
        return self.embedded(batch)

    def embedded(self, batch: ToyBatch) -> Tensor:
        self.transformer_calls += 1
        return cast("Tensor", self.transformer(batch.ids))

    def forward(self, batch: ToyBatch) -> WordFeatures:
        flat = self.embedded(batch) if batch.cached is None else batch.cached
        rows = self.dropout(torch.tanh(self.rest(flat))).split(list(batch.lengths))
        features = nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
        lengths = torch.tensor(batch.lengths, device=features.device)
        places = torch.arange(features.shape[1], device=features.device)
        return WordFeatures(features, places < lengths[:, None])

    def save_files(self, folder: Path) -> None:
        """Save nothing: it has only weights."""


class ToyDetector(Detector):
    """Classifies every span of up to three words by its first and last word."""

    def __init__(self, dim: int, labels: int) -> None:
        super().__init__()
        self.head = nn.Linear(2 * dim, labels)
        self.length = nn.Embedding(LONGEST, labels)
        self.never = nn.Linear(dim, 1)  # a layer without gradients
        self.broken = False

    def scored(self, words: WordFeatures) -> tuple[Tensor, Tensor, Tensor]:
        length = words.mask.shape[1]
        pairs = [(i, j) for i in range(length) for j in range(i + 1, min(length, i + LONGEST) + 1)]
        spans = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
        mask = spans[:, 1] <= words.lengths[:, None]
        first, last = words.features[:, spans[:, 0]], words.features[:, spans[:, 1] - 1]
        logits = self.head(torch.cat([first, last], dim=-1)) + self.length(lengths(spans) - 1)
        return spans.repeat(len(mask), 1, 1), logits, mask

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        spans, logits, mask = self.scored(words)
        same = (spans[:, :, None] == gold.spans[:, None]).all(dim=-1) & gold.mask[:, None]
        target = (same * gold.labels[:, None]).sum(dim=-1)
        drawn = torch.stack([torch.rand(WORDS, LONGEST, generator=rng) for rng in rngs])
        drawn = drawn[:, spans[0, :, 0], lengths(spans[0]) - 1]  # independent of the padding
        entity = mask & (target > 0)
        other = mask & (target == 0) & (drawn < 0.7)
        losses = nn.functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
        if self.broken:
            losses = losses * torch.nan
        return {
            "found": Loss((losses * entity).sum(), entity.sum().float()),
            "nothing": Loss(0.5 * (losses * other).sum(), other.sum().float()),
        }

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        spans, logits, mask = self.scored(words)
        return SpanPredictions(spans, logits.softmax(dim=-1), mask)


def lengths(spans: Tensor) -> Tensor:
    return spans[..., 1] - spans[..., 0]


class ToyRecognizer(Recognizer):
    def __init__(self, labels: Sequence[str], *, dropout: float = 0.0) -> None:
        self.encoder = cast("Encoder", ToyEncoder(dropout=dropout))
        self.detector = ToyDetector(8, 1 + len(labels))
        self.labels = tuple(labels)
        self.decoding = DecodingSettings(crossing="keep")
        self.seed = 0
        self.saves = 0

    def save_pretrained(self, folder: object) -> None:
        self.saves += 1


def documents(count: int, *, start: int = 0) -> list[Document]:
    """Sentences in which "wN" with odd N is a "thing", and two of them in a row are a "pair"."""
    result = []
    for number in range(start, start + count):
        length = 2 + number * 7 % 9
        numbers = [(number * 13 + i * (i + 1) // 2 * 5) % 40 for i in range(length)]
        things = [Entity(WordSpan(i, i + 1), "thing") for i, n in enumerate(numbers) if n % 2]
        pairs = [
            Entity(WordSpan(i, i + 2), "pair")
            for i in range(length - 1)
            if numbers[i] % 2 and numbers[i + 1] % 2
        ]
        words = [f"w{n}" for n in numbers]
        result.append(Document.from_rows([WordRow(words, [*things, *pairs])], id=str(number)))
    return result


class Toy:
    """A training loop with its recognizer, data, engine and folder."""

    def __init__(
        self,
        folder: Path,
        *,
        sentences: int = 24,
        dev: int | None = 8,
        dropout: float = 0.0,
        accelerator: Accelerator | None = None,
        **settings: Any,
    ) -> None:
        values = {"epochs": 2, "batch_sentences": 4, "lr": 0.01, "encoder_lr": 0.01, **settings}
        self.settings = TrainingSettings.build(values, where="training")
        self.documents = documents(sentences)
        torch.manual_seed(0)
        self.recognizer = ToyRecognizer(["pair", "thing"], dropout=dropout)
        own = accelerator or build_accelerator("fp32")
        self.engine = build_engine(self.recognizer, self.settings, own)
        self.state = RunState(identity={})
        self.stop = StopRequest()
        self.log = Log(folder, size=0, step=0, tensorboard=False) if own.is_main_process else None
        self.run_folder = RunFolder(folder, self.recognizer, self.engine.learner, self.log)
        self.loop = TrainingLoop(
            recognizer=self.recognizer,
            engine=self.engine,
            sentences=TrainingSentences.of(self.recognizer, self.documents),
            dev=None if dev is None else documents(dev, start=sentences),
            settings=self.settings,
            state=self.state,
            folder=self.run_folder,
            screen=Screen(silent=True),
            stop=self.stop,
        )

    @property
    def encoder(self) -> ToyEncoder:
        return cast("ToyEncoder", self.recognizer.encoder)

    @property
    def detector(self) -> ToyDetector:
        return cast("ToyDetector", self.recognizer.detector)

    def run(self) -> RunState:
        try:
            self.loop.run()
        finally:
            self.close()
        return self.state

    def close(self) -> None:
        if self.log is not None:
            self.log.__exit__(None, None, None)

    def weights(self) -> dict[str, Tensor]:
        return {k: v.clone() for k, v in self.recognizer.modules().state_dict().items()}

    def plan(self, epoch: int = 0) -> list[tuple[int, ...]]:
        sentences = self.loop.sentences
        return batches(sentences, epoch=epoch, settings=self.settings)


def largest_difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[k] - other[k]).abs().max()) for k in one)
