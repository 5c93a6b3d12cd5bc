"""The folder of a model: how a recognizer is saved and loaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from spandet.encoding import Encoder
from spandet.errors import UsageError
from spandet.inference.ensemble_folder import MemberRecord, decoding_of, read_members
from spandet.inference.manifest import CONFIG, HAS_MANIFEST, check_files, replacing_model
from spandet.inference.model_names import MEMBERS, Config, read_config
from spandet.inference.model_settings import read_settings
from spandet.inference.onnx_folder import Exported, remove_export
from spandet.inference.weights import load_weights, save_weights

if TYPE_CHECKING:
    from spandet.inference.recognizer import Recognizer


def save(
    recognizer: Recognizer, folder: Path, more: Callable[[Path], None] = lambda _: None
) -> None:
    """Write weights, settings, labels, vocabularies, tokenizer and manifest.

    A model that is in the folder is replaced; other files are kept.

    Args:
        recognizer: The model.
        folder: Where to write.
        more: Writes further files of the model into a folder.
    """
    with replacing_model(folder) as draft:
        recognizer.encoder.save_files(draft)
        settings = recognizer.settings.model_copy(update={"decoding": recognizer.decoding})
        config = {
            HAS_MANIFEST: True,
            "labels": recognizer.labels,
            **settings.model_dump(mode="json"),
        }
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        (draft / CONFIG).write_text(text, encoding="utf-8")
        state, exported = recognizer.modules().state_dict(), recognizer.exported
        if exported is not None:
            exported.save(draft)
            state = {key: state[key] for key in state.keys() - exported.manifest.weights}
        save_weights(state, draft)
        more(draft)
        if exported is None:
            remove_export(folder)


def load(
    cls: type[Recognizer], folders: Sequence[Path], overrides: Sequence[str], device: torch.device
) -> Recognizer:
    """The recognizer that was saved in a folder, or the ensemble of those in several folders.

    Args:
        cls: The class to make, unless it is an ensemble.
        folders: Where they are. The same model several times is one.
        overrides: Settings to change, such as `decoding.threshold=0.3`.
        device: Where to compute.

    Raises:
        UsageError: a model is damaged, or models cannot be combined.
        ConfigError: the overrides do not fit.
    """
    if len(folders) == 1:
        return _load(cls, folders[0], overrides, device)
    records = [MemberRecord.of(folder) for folder in folders]
    if len({record.fingerprint for record in records}) == 1:
        return _load(cls, folders[0], overrides, device)
    return _ensemble(cls, records, None, overrides, device)


def _load(
    cls: type[Recognizer], folder: Path, overrides: Sequence[str], device: torch.device
) -> Recognizer:
    """The recognizer in a folder, ready to predict.

    Raises:
        UsageError: the model is damaged.
        ConfigError: the overrides do not fit it.
    """
    check_files(folder)
    config = read_config(folder)
    if MEMBERS in config.sections:
        return _ensemble(cls, read_members(folder, config), config, overrides, device)
    settings = read_settings(folder, config, overrides)
    weights = load_weights(folder)
    recognizer = cls(settings, Encoder.from_files(settings.encoder, folder), config.labels)
    recognizer.exported = Exported.load(folder, recognizer.modules(), overrides)
    if recognizer.exported is not None:
        weights |= recognizer.exported.empty_weights
    try:
        recognizer.modules().load_state_dict(weights)
    except RuntimeError as error:
        reason = "; ".join(line.strip() for line in str(error).split("\n")[1:3])
        raise UsageError(f"the weights in {folder} do not fit its settings: {reason}") from None
    recognizer.modules().to(device).eval()
    return recognizer


def _ensemble(
    cls: type[Recognizer],
    records: Sequence[MemberRecord],
    config: Config | None,
    overrides: Sequence[str],
    device: torch.device,
) -> Recognizer:
    """The ensemble of models; `config` is that of its folder, if it has one."""
    from spandet.inference.ensemble import Ensemble, Member  # noqa: PLC0415 (it imports this)

    distinct = {record.fingerprint: record for record in records}
    loaded = {key: _load(cls, own.folder, (), device) for key, own in distinct.items()}
    members = [Member(loaded[record.fingerprint], record) for record in records]
    ensemble = Ensemble(members)
    sections = config.sections if config else {"decoding": dict(ensemble.decoding)}
    where = "+".join(record.name for record in records)
    ensemble.decoding = decoding_of(sections.get("decoding", {}), overrides, where=where)
    return ensemble
