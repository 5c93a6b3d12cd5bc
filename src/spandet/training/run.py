"""A training run, from a recipe and documents to a model folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from spandet.errors import ConfigError, MismatchError, UsageError
from spandet.evaluation import evaluate
from spandet.inference.device import precision_of
from spandet.inference.manifest import CONFIG, MANIFEST, finish_replacing
from spandet.inference.memory import release_memory
from spandet.inference.recognizer import Recognizer
from spandet.inference.tagging import spacy_tagger
from spandet.inference.tuning import tune
from spandet.inference.weights import FILE as WEIGHTS
from spandet.text import Document
from spandet.training.card import CARD, model_card
from spandet.training.checkpoint import BEFORE, CHECKPOINT, RunState, Saved, remove_checkpoint
from spandet.training.data import (
    Documents,
    Split,
    TrainingSentences,
    learnable,
    load,
    with_tags,
)
from spandet.training.epochs import TrainingLoop
from spandet.training.log import Log, check_tensorboard
from spandet.training.loop import StopRequest
from spandet.training.progress import Screen
from spandet.training.recipe import SECTIONS, Recipe
from spandet.training.report import REPORT, headline, report_page
from spandet.training.run_folder import (
    Identity,
    RunFolder,
    check_folder,
    check_identity,
    exclusive,
    identity_of_finished,
    read_resumed,
    save_model,
    write_text,
)
from spandet.training.step import build_accelerator, build_engine
from spandet.training.summary import RUN, Summary

RECIPE = "recipe.toml"

_STARTED = (RECIPE, CHECKPOINT, BEFORE, RUN)
_RESULTS = (CHECKPOINT, BEFORE, RUN, CONFIG, MANIFEST, WEIGHTS)
"""Files that a new run must not overwrite; a folder without them may be used again."""

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
        recipe: A TOML file or a `Recipe`.
        train: Training data; several files as a list of paths.
        dev: Data for choosing the best epoch and the thresholds; without them, the last epoch.
        out: A folder without a run, or the folder of the run to resume.
        overrides: Assignments such as `training.epochs=3`.
        resume: Continue from the checkpoint in `out`; the result is that of an uninterrupted run.
        progress: Show progress on stderr.

    Returns:
        The best recognizer, loaded from `out`.

    Raises:
        SpandetError: the recipe or the data cannot be used, or the run cannot continue.
    """
    resolved = _resolved(recipe, overrides)
    folder = Path(out)
    with exclusive(folder):
        check_folder(folder, resume=resume, started=_STARTED, results=_RESULTS, holds="a run")
        precision = precision_of(resolved.training.precision, where="training")
        accelerator = build_accelerator(precision)
        accelerator.wait_for_everyone()  # every process has checked the folder before one writes
        run = _Run(
            recipe=resolved,
            train=_tagged(learnable(load(train), fragments=resolved.model.fragments), resolved),
            dev=None if dev is None else _tagged(load(dev), resolved),
            folder=folder,
            accelerator=accelerator,
            screen=Screen(silent=not (progress and accelerator.is_main_process)),
        )
        if resume and run.is_finished():
            run.screen.note(f"the run in {folder} is complete already")
        else:
            run.execute(resume=resume)
        accelerator.wait_for_everyone()
        return Recognizer.from_pretrained(folder)


def _resolved(recipe: str | PathLike[str] | Recipe, overrides: Iterable[str]) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe.changed(overrides)
    return Recipe.load(recipe, overrides)


def _tagged(split: Split, recipe: Recipe) -> Split:
    """The split with tags from the tagger of the recipe, if it has one."""
    tags = recipe.model.encoder.tags
    if tags is None or tags.tagger == "none":
        return split
    return with_tags(split, spacy_tagger(tags.tagger))


def _with_current_names(identity: Identity, preset: str | None) -> Identity:
    """The identity of a run that an older version began, with this version's setting names.

    Older versions did not record the preset, only the values that it gave.
    """
    sections = {name: section for name, section in identity.items() if name in SECTIONS}
    sections["detector"] = {"preset": preset, **sections.get("detector", {})}
    try:
        return {**identity, **Recipe.from_values(sections).to_values()}
    except ConfigError:  # a setting that this version cannot read: the comparison shows it
        return identity


@dataclass(frozen=True, kw_only=True)
class _Run:
    recipe: Recipe
    train: Split
    dev: Split | None
    folder: Path
    accelerator: Accelerator
    screen: Screen

    def identity(self) -> dict[str, Any]:
        """Recipe and digests of the data: equal identities give equal results."""
        return {
            **self.recipe.to_values(),
            "train data": self.train.content,
            "dev data": self.dev.content if self.dev else None,
        }

    def is_finished(self) -> bool:
        """Whether the folder holds this run, complete.

        Raises:
            UsageError: it holds another complete run.
        """
        finished = identity_of_finished(self.folder)
        if finished is not None:
            self._check_identity(finished)
        return finished is not None

    def _check_identity(self, before: Identity) -> None:
        recorded = _with_current_names(before, self.recipe.preset)
        check_identity(recorded, self.identity(), settings_file=RECIPE)

    def execute(self, *, resume: bool) -> None:
        """Train, choose the best epoch, tune thresholds, and write the results."""
        saved = self._saved() if resume else None
        if self.recipe.preset is not None:
            self.screen.note(self.recipe.preset_line())
        warnings = [*self.train.left_out, *self._unknown_labels(), *self._needless_linker()]
        warnings += _check_start(self.recipe, self.train, self.dev)
        if self.accelerator.is_main_process:
            for warning in warnings:
                _logger.warning(warning)
        state = self._train(saved)
        self.accelerator.free_memory()  # the optimizer is not needed any more
        release_memory()
        if self.accelerator.is_main_process:
            self._finish(state, tuple(warnings))

    def _saved(self) -> Saved | None:
        saved = read_resumed(self.folder, self.screen.note)
        if saved is not None:
            state = saved.state
            self._check_identity(state.identity)
            self.screen.note(f"resuming in epoch {state.epoch + 1} after step {state.step}")
        return saved

    def _unknown_labels(self) -> list[str]:
        if self.dev is None:
            return []
        unknown = self.dev.labels - self.train.labels
        missed = sum(e.label in unknown for d in self.dev.documents for e in d.entities)
        names = ", ".join(sorted(unknown))
        return (
            [f"dev has {missed:,} entities with labels that train lacks ({names}): they are misses"]
            if unknown
            else []
        )

    def _needless_linker(self) -> list[str]:
        model = self.recipe.model
        needless = model.fragments and not model.suited_to(self.train.documents).fragments
        why = "no entity of the training data has gaps, so the model gets no fragment linker"
        return [why] if needless else []

    def _train(self, saved: Saved | None) -> RunState:
        settings = self.recipe.training
        torch.manual_seed(settings.seed)
        recognizer = Recognizer.build(self.recipe.model, self.train.documents)
        engine = build_engine(recognizer, settings, self.accelerator)
        state = RunState(identity=self.identity()) if saved is None else engine.restore(saved)
        state.identity = self.identity()
        sentences = TrainingSentences.of(recognizer, self.train.documents)
        _check_model(recognizer, self.dev)
        # Nothing is written before this: a run that fails earlier leaves no files.
        log = self._open_log(state, saved) if self.accelerator.is_main_process else None
        with log or nullcontext(), StopRequest() as stop, self.screen:
            TrainingLoop(
                recognizer=recognizer,
                engine=engine,
                sentences=sentences,
                dev=self.dev.documents if self.dev else None,
                settings=settings,
                state=state,
                folder=RunFolder(self.folder, recognizer, engine.learner, log),
                screen=self.screen,
                stop=stop,
            ).run()
        return state

    def _open_log(self, state: RunState, saved: Saved | None) -> Log:
        """Write the recipe, clean up after a run that was killed, and open the log."""
        write_text(self.folder, RECIPE, self.recipe.to_toml())
        if saved is not None:  # every process has read it: building the model synchronised them
            saved.make_newest()
        finish_replacing(self.folder)
        tensorboard = self.recipe.training.tensorboard
        return Log(self.folder, size=state.log_bytes, step=state.step, tensorboard=tensorboard)

    def _finish(self, state: RunState, warnings: tuple[str, ...]) -> None:
        recognizer = Recognizer.from_pretrained(self.folder)
        recognizer.modules().to(self.accelerator.device)
        predicted: list[Document] = []
        if self.dev is not None:
            recognizer.decoding = self.recipe.model.decoding  # undo the tuning of a killed run
            if self.recipe.training.tune:
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
        write_text(self.folder, REPORT, report_page(summary, self.folder))
        write_text(self.folder, CARD, model_card(summary))
        facts = json.dumps(summary.to_json(), indent=2, ensure_ascii=False)
        write_text(self.folder, RUN, facts + "\n")
        # Last, so that a run that is killed before this can be resumed.
        remove_checkpoint(self.folder / CHECKPOINT)
        self.screen.note(f"{headline(summary)}\nmodel and report: {self.folder}")


def _check_start(recipe: Recipe, train: Split, dev: Split | None) -> list[str]:
    """Check before the first step what would make the run fail later; returns warnings."""
    if recipe.training.tensorboard:
        check_tensorboard()
    if dev is not None:
        _check_dev(dev)
    return _untagged(train) if recipe.model.encoder.tags else []


def _check_model(recognizer: Recognizer, dev: Split | None) -> None:
    """Predict the dev documents that are most likely to fail with the untrained model."""
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
            f'none: give data with tags, set tagger = "penn", or leave this section out'
        )
    counts = f"{bare:,} of {len(sentences):,} sentences of the training data have no tags"
    return [f"{counts}: the model learns them as unknown"] if bare else []


def _longest_sentence(document: Document) -> int:
    return max((len(sentence.words) for sentence in document.sentences), default=0)


def _has_untagged(document: Document) -> bool:
    return any(sentence.words and not sentence.tags for sentence in document.sentences)
