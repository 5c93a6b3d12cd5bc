"""A pretraining run, from an encoder and texts to the folder of a new encoder."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.torch import save

from spandet.encoding.part_settings import TransformerSettings
from spandet.encoding.pretrained import fetch
from spandet.encoding.transformer import Transformer
from spandet.errors import ConfigError, UsageError
from spandet.formats import read
from spandet.formats.target import Target
from spandet.inference.device import Precision, precision_of
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
from spandet.pretraining.loop import PretrainingLoop, build_pretraining_engine
from spandet.pretraining.objective import OBJECTIVES, Objective, TextStatistics
from spandet.pretraining.settings import PretrainingSettings
from spandet.pretraining.summary import PretrainingSummary
from spandet.text import Document
from spandet.training.card import CARD
from spandet.training.checkpoint import CHECKPOINT, RunState, Saved, remove_checkpoint
from spandet.training.log import LOG, Log
from spandet.training.loop import StopRequest
from spandet.training.progress import Screen
from spandet.training.report import REPORT
from spandet.training.run_folder import (
    Identity,
    RunFolder,
    check_folder,
    check_identity,
    exclusive,
    identity_of_finished,
    read_resumed,
    write_text,
)
from spandet.training.step import Engine, build_accelerator
from spandet.training.summary import RUN

SETTINGS = "pretraining.toml"
"""File with the settings of a run, in its folder."""

_RESULTS = (SETTINGS, CHECKPOINT, LOG, RUN, "config.json", FILE)
"""Files that a new run must not overwrite."""

Texts = Iterable[Document] | str | PathLike[str]
"""Texts for pretraining: documents, a corpus from `read`, or a path to read."""


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
        texts: Training text; entities are ignored.
        encoder: The encoder to start from, named as in a recipe: a folder, a hub id, or `minilm`.
        out: A folder without a run and without an encoder, or the folder of the run to resume.
        settings: Settings of the run; without them, the defaults.
        resume: Continue from the checkpoint in `out`; the result is that of an uninterrupted run.
        progress: Show progress on stderr.

    Returns:
        The folder, which `encoder.transformer.name` of a recipe can name.

    Raises:
        SpandetError: encoder, texts or settings cannot be used, or the run cannot continue.
    """
    chosen, folder = settings or PretrainingSettings(), Path(out)
    if not texts:
        raise UsageError("there is no text to learn from: give at least one file")
    with exclusive(folder):
        check_folder(
            folder,
            resume=resume,
            started=(SETTINGS,),
            results=_RESULTS,
            holds="a run or an encoder",
        )
        name = TransformerSettings(name=str(encoder), freeze_embeddings=chosen.freeze_embeddings)
        pretrained = fetch(name)
        _check_encoder(pretrained, chosen, str(encoder))
        precision = _precision(chosen)
        accelerator = build_accelerator(precision)
        accelerator.wait_for_everyone()  # every process has checked the folder before one writes
        run = _Run(
            name=Path(encoder).name,
            pretrained=pretrained,
            weights=_digest(pretrained),
            texts=[read(text) if isinstance(text, str | PathLike) else text for text in texts],
            settings=chosen,
            precision=precision,
            folder=folder,
            accelerator=accelerator,
            screen=Screen(silent=not (progress and accelerator.is_main_process)),
        )
        run.execute(resume=resume)
        accelerator.wait_for_everyone()
    return folder


def _precision(settings: PretrainingSettings) -> Precision:
    return precision_of(settings.precision, where="pretraining", bf16_on_cpu=True)


def _check_encoder(pretrained: Transformer, settings: PretrainingSettings, name: str) -> None:
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


def _digest(pretrained: Transformer) -> str:
    digest = hashlib.sha256()
    for name, tensor in pretrained.model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _with_current_names(identity: Identity) -> Identity:
    """The identity of a run that an older version began, with this version's setting names."""
    digests = {key: identity.get(key) for key in ("encoder weights", "texts")}
    values = {key: value for key, value in identity.items() if key not in digests}
    try:
        settings = PretrainingSettings.build(values, where="pretraining")
        precision = _precision(settings)  # older versions did not resolve "auto" on a GPU
    except ConfigError:  # a setting that this version cannot read: the comparison shows it
        return identity
    return {**settings.model_dump(mode="json"), "precision": precision, **digests}


@dataclass(frozen=True)
class EncoderFolder:
    """Writes an encoder; each file is replaced atomically, so that the folder is always usable."""

    pretrained: Transformer

    def save_settings(self, folder: Path) -> None:
        """Write configuration and tokenizer, which pretraining does not change."""
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".", suffix=".part") as name:
            self.pretrained.save_files(Path(name))
            for path in Path(name).iterdir():
                path.replace(folder / path.name)

    def save_pretrained(self, folder: Path) -> None:
        """Write the current weights."""
        weights = self.pretrained.model.state_dict()
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        with Target(str(folder / FILE)).binary() as out:
            out.write(save(tensors, metadata={"format": "pt"}))


@dataclass(frozen=True, kw_only=True)
class _Run:
    name: str
    pretrained: Transformer
    weights: str
    """A digest of the weights that the run starts from."""
    texts: Sequence[Iterable[Document]]
    settings: PretrainingSettings
    precision: Precision
    folder: Path
    accelerator: Accelerator
    screen: Screen

    def execute(self, *, resume: bool) -> None:
        """Cut the texts into pieces, train, and write the results."""
        if resume and self._is_finished():
            self.screen.note(f"the run in {self.folder} is complete already")
            return
        if self.accelerator.is_main_process:
            self._prepare_folder()
        self.accelerator.wait_for_everyone()
        corpus = read_pieces(self.folder / PIECES)
        state = self._train(corpus, resume=resume)
        if self.accelerator.is_main_process:
            self._finish(corpus, state)

    def _is_finished(self) -> bool:
        finished = identity_of_finished(self.folder)
        if finished is not None:
            self._check_identity(finished, content_of(self.texts))
        return finished is not None

    def _identity(self, content: str) -> dict[str, Any]:
        """Settings and digests of encoder and texts: equal identities give equal results."""
        return {
            **self.settings.model_dump(mode="json"),
            "precision": self.precision,
            "encoder weights": self.weights,
            "texts": content,
        }

    def _check_identity(self, before: Identity, content: str) -> None:
        now = self._identity(content)
        check_identity(_with_current_names(before), now, settings_file=SETTINGS)

    def _prepare_folder(self) -> None:
        """Write settings, the encoder's files, and the pieces of the texts."""
        # First, because the settings mark the folder as that of a run.
        write_text(self.folder, SETTINGS, self.settings.to_toml())
        for left in self.folder.glob(".*.part"):  # by a run that was killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        EncoderFolder(self.pretrained).save_settings(self.folder)
        cutter = Cutter(
            tokenizer=self.pretrained.tokenizer.backend_tokenizer,
            special=self.pretrained.pieces.special,
            size=self._size,
            held_out=self.settings.held_out,
        )
        write_pieces(self.texts, cutter, self.folder / PIECES)

    def _train(self, corpus: PieceCorpus, *, resume: bool) -> RunState:
        settings, special = self.settings, self.pretrained.pieces.special
        torch.manual_seed(settings.seed)
        objective = self._objective(corpus)
        engine = build_pretraining_engine(objective, settings, self.accelerator)
        saved = self._saved(corpus) if resume else None
        state = self._state(corpus, engine, saved)
        log = self._log(state) if self.accelerator.is_main_process else None
        model = EncoderFolder(self.pretrained)
        with log or nullcontext(), StopRequest() as stop, self.screen:
            loop = PretrainingLoop(
                engine=engine,
                objective=objective,
                train=Blocks(corpus.train, special, size=settings.block),
                held_out=Blocks(corpus.held_out, special, size=settings.block),
                settings=settings,
                state=state,
                folder=RunFolder(self.folder, model, engine.learner, log),
                screen=self.screen,
                stop=stop,
                resumed=saved is not None,
            )
            self.screen.note(
                f"{len(corpus.train.ids):,} pieces of text in {len(loop.train):,} blocks, "
                f"{loop.steps:,} steps, {self.precision}"
            )
            loop.run()
        return state

    def _saved(self, corpus: PieceCorpus) -> Saved | None:
        saved = read_resumed(self.folder, self.screen.note)
        if saved is not None:
            self._check_identity(saved.state.identity, corpus.facts.content)
            self.screen.note(f"resuming after step {saved.state.step}")
        return saved

    def _state(self, corpus: PieceCorpus, engine: Engine, saved: Saved | None) -> RunState:
        identity = self._identity(corpus.facts.content)
        if saved is None:
            return RunState(identity=identity)
        state = engine.restore(saved)
        state.identity = identity
        self.accelerator.wait_for_everyone()  # every process has read the checkpoint
        if self.accelerator.is_main_process:
            saved.make_newest()
        return state

    def _log(self, state: RunState) -> Log:
        tensorboard = self.settings.tensorboard
        return Log(self.folder, size=state.log_bytes, step=state.step, tensorboard=tensorboard)

    @property
    def _size(self) -> int:
        """Size of the encoder's vocabulary."""
        model: Any = self.pretrained.model
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
        return make(self.pretrained.model, statistics, self.settings)

    def _finish(self, corpus: PieceCorpus, state: RunState) -> None:
        summary = PretrainingSummary(
            encoder=self.name,
            weights=self.weights,
            folder=self.folder,
            settings=self.settings,
            state=state,
            corpus=corpus,
        )
        write_text(self.folder, REPORT, summary.to_html())
        write_text(self.folder, CARD, summary.to_card())
        facts = json.dumps(summary.to_json(), indent=2, ensure_ascii=False)
        write_text(self.folder, RUN, facts + "\n")
        # Last, so that a run that is killed before this can be resumed.
        remove_checkpoint(self.folder / CHECKPOINT)
        shutil.rmtree(self.folder / PIECES)
        self.screen.note(f"encoder and report: {self.folder}")
