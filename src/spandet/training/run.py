"""A run from recipe and data to a model folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from spandet.config import read_json
from spandet.errors import ConfigError, MismatchError, UsageError
from spandet.evaluation import evaluate
from spandet.formats.locking import is_main_process, one_writer
from spandet.formats.target import Target
from spandet.inference.manifest import CONFIG, MANIFEST, finish_replacing
from spandet.inference.memory import give_back
from spandet.inference.recognizer import Recognizer
from spandet.inference.tuning import tune
from spandet.inference.weights import FILE as WEIGHTS
from spandet.text import Document
from spandet.training.card import CARD, model_card
from spandet.training.checkpoint import (
    BEFORE,
    CHECKPOINT,
    RunState,
    Saved,
    check_identity,
    has_checkpoint,
    read_newest,
    remove_checkpoint,
)
from spandet.training.data import Documents, Split, TrainingSentences, learnable, load
from spandet.training.log import Log, check_board
from spandet.training.loop import Interruption, Loop
from spandet.training.progress import Screen
from spandet.training.recipe import Recipe
from spandet.training.report import REPORT, headline, report_page
from spandet.training.run_folder import Keeper, save_model
from spandet.training.step import Engine, build_accelerator
from spandet.training.summary import RUN, Summary

RECIPE = "recipe.toml"

_RESULTS = (CHECKPOINT, BEFORE, RUN, CONFIG, MANIFEST, WEIGHTS)
"""What is worth keeping of a run: without any of it, another may begin in its folder."""

_logger = logging.getLogger("spandet")


def train(
    recipe: str | PathLike[str] | Recipe,
    train: Documents,
    dev: Documents | None = None,
    *,
    out: str | PathLike[str],
    overrides: Iterable[str] = (),
    resume: bool = False,
    progress: bool = True,
) -> Recognizer:
    """Train a recognizer and write its folder: model, log, report and model card.

    Args:
        recipe: A TOML file, or what `Recipe.load` gave.
        train: What to learn from.
        dev: What chooses the best epoch and the thresholds. Without it the last epoch is kept.
        out: A folder that holds no run yet, or the one to resume.
        overrides: Assignments such as `training.epochs=3`.
        resume: Go on from the checkpoint in `out`. The result is that of a run never stopped.
        progress: Show on stderr how it goes.

    Returns:
        The best recognizer, as `Recognizer.from_pretrained(out)` gives it.

    Raises:
        SpandetError: the recipe or the data cannot be used, or the run cannot go on.
    """
    resolved = _resolved(recipe, overrides)
    folder = Path(out)
    with one_writer(folder) if is_main_process() else nullcontext(), _own_chance():
        _check_folder(folder, resume=resume)
        accelerator = build_accelerator(resolved.training)
        accelerator.wait_for_everyone()  # all have looked before one of them writes
        run = _Run(
            recipe=resolved,
            train=learnable(load(train), fragments=resolved.model.fragments),
            dev=None if dev is None else load(dev),
            folder=folder,
            accelerator=accelerator,
            screen=Screen(silent=not (progress and accelerator.is_main_process)),
        )
        if resume and run.is_over():
            run.screen.note(f"the run in {folder} is complete already")
        else:
            run.execute(resume=resume)
        accelerator.wait_for_everyone()
        return Recognizer.from_pretrained(folder)


def _resolved(recipe: str | PathLike[str] | Recipe, overrides: Iterable[str]) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe.changed(overrides)
    return Recipe.load(recipe, overrides)


def _check_folder(folder: Path, *, resume: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give a folder for the run")
    if resume and not any((folder / name).exists() for name in (RECIPE, CHECKPOINT, BEFORE, RUN)):
        raise UsageError(f"there is no run in {folder} to resume")
    if not resume and any((folder / name).exists() for name in _RESULTS):
        raise UsageError(
            f"{folder} holds a run already: resume it (--resume) or name another folder"
        )


def _own_chance() -> AbstractContextManager[None]:
    """Inside, torch's global generators may be set; outside, nobody notices."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    return torch.random.fork_rng(devices)


@dataclass(frozen=True, kw_only=True)
class _Run:
    recipe: Recipe
    train: Split
    dev: Split | None
    folder: Path
    accelerator: Accelerator
    screen: Screen

    def identity(self) -> dict[str, Any]:
        """What must be the same for the run to be the same."""
        return {
            **self.recipe.to_values(),
            "train data": self.train.content,
            "dev data": self.dev.content if self.dev else None,
        }

    def is_over(self) -> bool:
        """Has it been brought to its end before? If so, it must have been this one."""
        path = self.folder / RUN
        if not path.exists() or has_checkpoint(self.folder):
            return False
        known = read_json(path)
        if not isinstance(known, dict) or not isinstance(known.get("identity"), dict):
            raise UsageError(f"{path} is damaged: it does not say which run it was")
        check_identity(known["identity"], self.identity())
        return True

    def execute(self, *, resume: bool) -> None:
        """Train, choose the best epoch, tune, and write everything down."""
        saved = self._saved() if resume else None
        warnings = [*self.train.left_out, *self._unknown_labels(), *self._nothing_to_link()]
        warnings += check_start(self.recipe, self.train, self.dev)
        if self.accelerator.is_main_process:
            for warning in warnings:
                _logger.warning(warning)
        state = self._learn(saved)
        self.accelerator.free_memory()  # nobody needs the optimizer any more
        give_back()
        if self.accelerator.is_main_process:
            self._finish(state, tuple(warnings))

    def _unknown_labels(self) -> list[str]:
        if self.dev is None:
            return []
        unknown = self.dev.labels - self.train.labels
        lost = sum(e.label in unknown for d in self.dev.documents for e in d.entities)
        names = ", ".join(sorted(unknown))
        return (
            [f"dev has {lost:,} entities with labels that train lacks ({names}): they are misses"]
            if unknown
            else []
        )

    def _nothing_to_link(self) -> list[str]:
        model = self.recipe.model
        needless = model.fragments and not model.suited_to(self.train.documents).fragments
        why = "no entity of the training data has gaps, so the model gets no fragment linker"
        return [why] if needless else []

    def _learn(self, saved: Saved | None) -> RunState:
        settings = self.recipe.training
        torch.manual_seed(settings.seed)
        recognizer = Recognizer.build(self.recipe.model, self.train.documents)
        engine = Engine(recognizer, settings, self.accelerator)
        state = RunState(identity=self.identity())
        if saved is not None:
            state = saved.state
            engine.learner.restore(saved.tensors)
            engine.scaler = state.scaler
        sentences = TrainingSentences.of(recognizer, self.train.documents)
        check_model(recognizer, self.dev)
        # From here on, steps can be made: only now, something is written.
        log = self._begin(state, saved) if self.accelerator.is_main_process else None
        with log or nullcontext(), Interruption() as interruption, self.screen:
            Loop(
                recognizer=recognizer,
                engine=engine,
                sentences=sentences,
                dev=self.dev.documents if self.dev else None,
                settings=settings,
                state=state,
                keeper=Keeper(self.folder, recognizer, engine.learner, log),
                screen=self.screen,
                interruption=interruption,
            ).run()
        return state

    def _saved(self) -> Saved | None:
        if not has_checkpoint(self.folder):
            self.screen.note("no checkpoint had been written: starting from the beginning")
            return None
        saved = read_newest(self.folder, self.screen.note)
        state = saved.state
        check_identity(state.identity, self.identity())
        self.screen.note(f"resuming in epoch {state.epoch + 1} after step {state.step}")
        return saved

    def _begin(self, state: RunState, saved: Saved | None) -> Log:
        """The folder of the run, with its recipe and an open log."""
        self._write(RECIPE, self.recipe.to_toml())
        if saved is not None:  # all processes have read it: they have met to build the model
            saved.make_newest()
        finish_replacing(self.folder)
        wants_board = self.recipe.training.tensorboard
        return Log(self.folder, size=state.log_bytes, step=state.step, tensorboard=wants_board)

    def _finish(self, state: RunState, warnings: tuple[str, ...]) -> None:
        recognizer = Recognizer.from_pretrained(self.folder)
        recognizer.modules().to(self.accelerator.device)
        predicted: list[Document] = []
        if self.dev is not None:
            recognizer.decoding = self.recipe.model.decoding  # not what a killed run has tuned
            if recognizer.decoding.tune:
                self.screen.note("tuning thresholds on dev")
            recognizer.decoding = tune(recognizer, self.dev.documents)
            predicted = list(recognizer.predict(self.dev.documents))
        save_model(recognizer, self.folder)
        summary = Summary(
            recipe=self.recipe,
            state=state,
            train=self.train,
            dev=self.dev,
            labels=recognizer.labels,
            parameters=sum(p.numel() for p in recognizer.modules().parameters()),
            warnings=warnings,
            scores=evaluate(self.dev.documents, predicted) if self.dev else None,
            decoding=recognizer.decoding.model_dump(mode="json"),
            predicted=predicted,
        )
        self._write(REPORT, report_page(summary, self.folder))
        self._write(CARD, model_card(summary))
        self._write(RUN, json.dumps(summary.to_json(), indent=2, ensure_ascii=False) + "\n")
        # Last: until here, the run can be resumed and brought to its end.
        remove_checkpoint(self.folder / CHECKPOINT)
        self.screen.note(f"{headline(summary)}\nmodel and report: {self.folder}")

    def _write(self, name: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with Target(str(self.folder / name)).text() as stream:
            stream.write(text)


def check_start(recipe: Recipe, train: Split, dev: Split | None) -> list[str]:
    """Check recipe and data against each other; gives what is worth a warning.

    Raises:
        SpandetError: the run could not be brought to its end.
    """
    if recipe.training.tensorboard:
        check_board()
    if dev is not None:
        _check_dev(dev)
    return _untagged(train) if recipe.model.encoder.tags else []


def check_model(recognizer: Recognizer, dev: Split | None) -> None:
    """Let an untrained model read of dev what is most likely to fail.

    Raises:
        SpandetError: it cannot read dev, or learn from what it was built for.
    """
    if getattr(recognizer.encoder, "needs_tags", False) and not recognizer.encoder.vocabulary.tags:
        raise ConfigError("[encoder.tags] min_count: no tag is as frequent in the training data")
    if dev is not None:
        longest = max(dev.documents, key=_longest_sentence)
        untagged = [document for document in dev.documents if _has_untagged(document)]
        for _ in recognizer.predict([longest, *untagged[:1]], min_score=0.0):
            pass


def _check_dev(dev: Split) -> None:
    if not dev.entities:
        raise UsageError(
            f"the dev data ({dev.name}) have no entity: no epoch and no threshold can be chosen"
        )
    try:
        evaluate(dev.documents, dev.documents, resamples=0)
    except MismatchError as error:
        raise UsageError(f"the dev data ({dev.name}) cannot be scored: {error}") from None


def _untagged(train: Split) -> list[str]:
    sentences = [s for d in train.documents for s in d.sentences if s.words]
    bare = sum(not sentence.tags for sentence in sentences)
    if bare == len(sentences):
        raise ConfigError(
            f"[encoder.tags] needs part-of-speech tags, and the training data ({train.name}) have "
            f"none: give data with tags, or leave this section out"
        )
    told = f"{bare:,} of {len(sentences):,} sentences of the training data have no tags"
    return [f"{told}: the model learns them as unknown"] if bare else []


def _longest_sentence(document: Document) -> int:
    return max((len(sentence.words) for sentence in document.sentences), default=0)


def _has_untagged(document: Document) -> bool:
    return any(sentence.words and not sentence.tags for sentence in document.sentences)
