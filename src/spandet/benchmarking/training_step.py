"""What a training step costs beside one of the bare encoder."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from spandet.benchmarking.batches import Batch, read_at_once, runs_from
from spandet.benchmarking.clock import Work
from spandet.benchmarking.inference import bare_forward
from spandet.inference.device import precision_of
from spandet.inference.recognizer import Recognizer
from spandet.seeding import generator
from spandet.tensors import to_device
from spandet.text import Document
from spandet.training.batches import fill, gold_spans
from spandet.training.data import TrainingSentences
from spandet.training.optimizer import build_optimizer
from spandet.training.recipe import Recipe
from spandet.training.step import BatchLoss, build_accelerator, build_engine


class TrainingStep:
    """Forward, backward and update of the bare encoder, against a step of the training loop.

    Weights are fresh. In the batches of the recipe, and with a transformer that learns.
    """

    def __init__(self, recipe: Recipe, documents: Sequence[Document]) -> None:
        self._settings = recipe.training
        self.recognizer = Recognizer.build(recipe.model, documents)
        precision = precision_of(recipe.training.precision, where="training")
        accelerator = build_accelerator(precision)
        self._engine = build_engine(self.recognizer, recipe.training, accelerator)
        self._sentences = TrainingSentences.of(self.recognizer, documents)
        encoder = self.recognizer.encoder
        bare = encoder if encoder.transformer is None else encoder.transformer.model
        pretrained = [parameter for _, parameter in encoder.pretrained_parameters()]
        self._bare_optimizer = build_optimizer(bare, pretrained, recipe.training)

    @property
    def lengths(self) -> list[int]:
        """Words that are read at once with each sentence."""
        return read_at_once(self._sentences.runs, self._sentences.words)

    def batches(self, group: Sequence[int], size: int) -> list[Batch]:
        """Some sentences in batches of the recipe, which need not hear of a size."""
        del size
        runs = runs_from(self._sentences.runs, group)
        return list(fill(runs, self._sentences, self._settings))

    def works(self, batch: Batch) -> tuple[Work, Work]:
        """A step of the bare encoder and one of everything, on the same batch."""
        examples = [self._sentences.examples[number] for number in batch]
        forward = bare_forward(self.recognizer.encoder, examples, self._engine.device)

        def bare() -> None:
            said = forward()
            assert isinstance(said, torch.Tensor)  # noqa: S101 (an encoder's)
            said.mean().backward()
            self._bare_optimizer.step()
            self._bare_optimizer.zero_grad()

        return bare, lambda: self.learn(self.loss(batch))

    def loss(self, batch: Batch) -> BatchLoss:
        """The first half of a step, as the training loop takes it."""
        engine, sentences, recognizer = self._engine, self._sentences, self.recognizer
        engine.begin_step(step=0, at=0.0)
        prepared = recognizer.encoder.prepare([sentences.examples[number] for number in batch])
        gold = gold_spans(
            [sentences.rows[number] for number in batch],
            recognizer.labels,
            fragments=recognizer.detector.links_fragments,
        )
        rngs = [generator(self._settings.seed, "sentence", 0, number) for number in batch]
        inputs = (prepared.to(engine.device), to_device(gold, engine.device), rngs)
        return engine.loss(*inputs, counted=True, stop=False)

    def learn(self, loss: BatchLoss) -> None:
        """The second half."""
        self._engine.backward(loss, share=1.0)
        self._engine.update()
