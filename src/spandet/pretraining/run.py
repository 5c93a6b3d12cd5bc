"""A pretraining run from an encoder and texts to the folder of an encoder."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate import Accelerator

from spandet.encoding.pretrained import fetch
from spandet.encoding.transformer import Pretrained, TransformerSettings
from spandet.errors import ConfigError, UsageError
from spandet.formats import read
from spandet.formats.locking import is_main_process, one_writer
from spandet.formats.target import Target
from spandet.inference.recognizer import Recognizer
from spandet.inference.weights import FILE
from spandet.pretraining.corpus import (
    PIECES,
    Blocks,
    Cutter,
    PieceCorpus,
    content_of,
    read_pieces,
    write_pieces,
)
from spandet.pretraining.engine import PretrainingEngine, resolve_precision
from spandet.pretraining.files import EncoderFiles
from spandet.pretraining.loop import PretrainingLoop
from spandet.pretraining.objective import OBJECTIVES, Objective, TextStatistics
from spandet.pretraining.settings import PretrainingSettings
from spandet.pretraining.summary import PretrainingSummary
from spandet.text import Document
from spandet.training.card import CARD
from spandet.training.checkpoint import (
    CHECKPOINT,
    RunState,
    Saved,
    check_identity,
    has_checkpoint,
    read_newest,
    remove_checkpoint,
)
from spandet.training.log import LOG, Log
from spandet.training.loop import Interruption
from spandet.training.progress import Screen
from spandet.training.report import REPORT
from spandet.training.run_folder import Keeper
from spandet.training.step import build_accelerator
from spandet.training.summary import RUN

SETTINGS = "pretraining.toml"
"""The settings of a run, in its folder."""

Texts = Iterable[Document] | str | PathLike[str]
"""What can be learnt from: what `read` gave, documents, or a path to read."""


def pretrain(
    texts: Sequence[Texts],
    encoder: str | PathLike[str],
    *,
    out: str | PathLike[str],
    settings: PretrainingSettings | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Path:
    """Train an encoder further on raw text and write its folder, with log, report and card.

    Args:
        texts: What to learn from. Entities are not looked at.
        encoder: What to begin with, named as in a recipe: a folder, a hub id, or `minilm`.
        out: A folder that holds no run and no encoder yet, or the one to resume.
        settings: How; without them, the defaults.
        resume: Go on from the checkpoint in `out`. The result is that of a run never stopped.
        progress: Show on stderr how it goes.

    Returns:
        The folder, which `encoder.transformer.name` of a recipe can name.

    Raises:
        SpandetError: encoder, texts or settings cannot be used, or the run cannot go on.
    """
    chosen, folder = settings or PretrainingSettings(), Path(out)
    if not texts:
        raise UsageError("there is no text to learn from: give at least one file")
    with one_writer(folder) if is_main_process() else nullcontext(), _own_chance():
        _check_folder(folder, resume=resume)
        name = TransformerSettings(name=str(encoder), freeze_embeddings=chosen.freeze_embeddings)
        pretrained = fetch(name)
        _check_encoder(pretrained, chosen, str(encoder))
        accelerator = build_accelerator(chosen.training(resolve_precision(chosen.precision)))
        accelerator.wait_for_everyone()  # all have looked before one of them writes
        run = _Run(
            name=Path(encoder).name,
            pretrained=pretrained,
            weights=_digest(pretrained),
            texts=[read(text) if isinstance(text, str | PathLike) else text for text in texts],
            settings=chosen,
            folder=folder,
            accelerator=accelerator,
            screen=Screen(silent=not (progress and accelerator.is_main_process)),
        )
        run.execute(resume=resume)
        accelerator.wait_for_everyone()
    return folder


def _check_folder(folder: Path, *, resume: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give a folder for the encoder")
    if resume and not (folder / SETTINGS).exists():
        raise UsageError(f"there is no run in {folder} to resume")
    ours = (SETTINGS, CHECKPOINT, LOG, RUN, "config.json", FILE)
    if not resume and any((folder / name).exists() for name in ours):
        raise UsageError(
            f"{folder} holds a run or an encoder already: resume it (--resume) or name another "
            f"folder"
        )


def _check_encoder(pretrained: Pretrained, settings: PretrainingSettings, name: str) -> None:
    pieces = pretrained.pieces
    frame = len(pieces.special.prefix) + len(pieces.special.suffix)
    if settings.block > pieces.capacity + frame:
        raise ConfigError(
            f"[pretraining] block: {settings.block}, but {name} reads at most "
            f"{pieces.capacity + frame} pieces at once"
        )
    if settings.objective == "masked" and pretrained.tokenizer.mask_token_id is None:
        raise ConfigError(
            f"the tokenizer of {name} has no mask token, expected one for the objective masked"
        )


def _digest(pretrained: Pretrained) -> str:
    digest = hashlib.sha256()
    for name, tensor in pretrained.transformer.model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _own_chance() -> AbstractContextManager[None]:
    """Inside, torch's global generators may be set; outside, nobody notices."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    return torch.random.fork_rng(devices)


@dataclass(frozen=True, kw_only=True)
class _Run:
    name: str
    pretrained: Pretrained
    weights: str
    """A digest of the weights that the run begins with."""
    texts: Sequence[Iterable[Document]]
    settings: PretrainingSettings
    folder: Path
    accelerator: Accelerator
    screen: Screen

    def execute(self, *, resume: bool) -> None:
        """Cut the texts, train, and write everything down."""
        if resume and self._is_over():
            self.screen.note(f"the run in {self.folder} is complete already")
            return
        if self.accelerator.is_main_process:
            self._begin()
        self.accelerator.wait_for_everyone()
        corpus = read_pieces(self.folder / PIECES)
        state = self._learn(corpus, resume=resume)
        if self.accelerator.is_main_process:
            self._finish(corpus, state)

    def _is_over(self) -> bool:
        """Has it been brought to its end before? If so, it must have been this one."""
        path = self.folder / RUN
        if not path.exists() or has_checkpoint(self.folder):
            return False
        known = json.loads(path.read_text(encoding="utf-8"))
        check_identity(known["identity"], self._identity(content_of(self.texts)))
        return True

    def _identity(self, content: str) -> dict[str, Any]:
        """What must be the same for the run to be the same."""
        return {
            **self.settings.model_dump(mode="json"),
            "precision": resolve_precision(self.settings.precision),
            "encoder weights": self.weights,
            "texts": content,
        }

    def _begin(self) -> None:
        """Write what a run needs: first what says that there is one, last the pieces."""
        self._write(SETTINGS, self.settings.to_toml())
        for left in self.folder.glob(".*.part"):  # by a run that was killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        EncoderFiles(self.pretrained).save_settings(self.folder)
        cutter = Cutter(
            tokenizer=self.pretrained.tokenizer.backend_tokenizer,
            special=self.pretrained.pieces.special,
            size=self._size,
            held_out=self.settings.held_out,
        )
        write_pieces(self.texts, cutter, self.folder / PIECES)

    def _learn(self, corpus: PieceCorpus, *, resume: bool) -> RunState:
        settings, special = self.settings, self.pretrained.pieces.special
        torch.manual_seed(settings.seed)
        engine = PretrainingEngine(self._objective(corpus), settings, self.accelerator)
        state = RunState(identity=self._identity(corpus.facts.content))
        saved = self._saved(state.identity) if resume else None
        if saved is not None:
            state = saved.state
            engine.learner.restore(saved.tensors)
            engine.scaler = state.scaler
            self.accelerator.wait_for_everyone()  # all have read it
            if self.accelerator.is_main_process:
                saved.make_newest()
        log = self._log(state) if self.accelerator.is_main_process else None
        # The keeper asks a model for nothing but `save_pretrained`.
        model = cast("Recognizer", EncoderFiles(self.pretrained))
        with log or nullcontext(), Interruption() as interruption, self.screen:
            loop = PretrainingLoop(
                engine=engine,
                train=Blocks(corpus.train, special, size=settings.block),
                held_out=Blocks(corpus.held_out, special, size=settings.block),
                settings=settings,
                state=state,
                keeper=Keeper(self.folder, model, engine.learner, log),
                screen=self.screen,
                interruption=interruption,
            )
            self.screen.note(
                f"{len(corpus.train.ids):,} pieces of text in {len(loop.train):,} blocks, "
                f"{loop.steps:,} steps, {resolve_precision(settings.precision)}"
            )
            loop.run(resumed=saved is not None)
        return state

    @property
    def _size(self) -> int:
        """Pieces that the encoder knows."""
        model: Any = self.pretrained.transformer.model
        return len(model.get_input_embeddings().weight)

    def _objective(self, corpus: PieceCorpus) -> Objective:
        counts = corpus.train.counts(self._size)
        frame = self.pretrained.pieces.special
        special = np.zeros(self._size, dtype=bool)
        special[[*self.pretrained.tokenizer.all_special_ids, *frame.prefix, *frame.suffix]] = True
        statistics = TextStatistics(
            counts=counts,
            occurring=counts + corpus.held_out.counts(self._size) > 0,
            special=special,
            mask=self.pretrained.tokenizer.mask_token_id,
        )
        make = OBJECTIVES[self.settings.objective]
        return make(self.pretrained.transformer.model, statistics, self.settings)

    def _saved(self, identity: dict[str, Any]) -> Saved | None:
        if not has_checkpoint(self.folder):
            self.screen.note("no checkpoint had been written: starting from the beginning")
            return None
        saved = read_newest(self.folder, self.screen.note)
        check_identity(saved.state.identity, identity)
        self.screen.note(f"resuming after step {saved.state.step}")
        return saved

    def _log(self, state: RunState) -> Log:
        wants_board = self.settings.tensorboard
        return Log(self.folder, size=state.log_bytes, step=state.step, tensorboard=wants_board)

    def _finish(self, corpus: PieceCorpus, state: RunState) -> None:
        summary = PretrainingSummary(
            encoder=self.name,
            weights=self.weights,
            folder=self.folder,
            settings=self.settings,
            state=state,
            corpus=corpus,
        )
        self._write(REPORT, summary.to_html())
        self._write(CARD, summary.to_card())
        self._write(RUN, json.dumps(summary.to_json(), indent=2, ensure_ascii=False) + "\n")
        # Last: until here, the run can be resumed and brought to its end.
        remove_checkpoint(self.folder / CHECKPOINT)
        shutil.rmtree(self.folder / PIECES)
        self.screen.note(f"encoder and report: {self.folder}")

    def _write(self, name: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with Target(str(self.folder / name)).text() as stream:
            stream.write(text)
