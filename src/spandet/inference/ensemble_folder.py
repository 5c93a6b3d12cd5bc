"""The folder of an ensemble: its members with their fingerprints, and settings of decoding.

`write_references` names the members; `write_copies` copies them into the folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spandet.config import Settings, override
from spandet.errors import ConfigError, UsageError
from spandet.inference.decoding import DecodingSettings
from spandet.inference.manifest import CONFIG, HAS_MANIFEST, UNCHECKED, replacing_model
from spandet.inference.model_names import MEMBERS, Config, find_model, fingerprint, named_models

if TYPE_CHECKING:
    from spandet.inference.recognizer import Recognizer

_COPIES = "members"


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member of an ensemble as its folder describes it."""

    folder: Path
    fingerprint: str
    weight: float = 1.0

    @classmethod
    def of(cls, folder: Path) -> MemberRecord:
        """The record of a model."""
        return cls(folder, fingerprint(folder))

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.resolve().name


class _Entry(Settings):
    """A member in config.json."""

    model: str | None = None
    """Name of a bundled or local model."""
    folder: str | None = None
    """Its folder, relative to that of the ensemble, or absolute."""
    fingerprint: str
    weight: float = 1.0


def write_references(
    folder: Path,
    records: Iterable[MemberRecord],
    labels: Sequence[str],
    decoding: DecodingSettings,
    *,
    place: Path | None = None,
) -> None:
    """Write an ensemble that names its members: bundled and local models by name, others by folder.

    Args:
        folder: Where to write; a model in it is replaced.
        records: The members.
        labels: All labels.
        decoding: Settings of decoding.
        place: Where the folder will be moved to; paths of members are relative to it.
    """
    with replacing_model(folder) as draft:
        entries = [_entry(record, place or folder) for record in records]
        _write(draft, entries, labels, decoding)


def write_copies(
    folder: Path,
    members: Iterable[tuple[Recognizer, MemberRecord]],
    labels: Sequence[str],
    decoding: DecodingSettings,
) -> None:
    """Write an ensemble with copies of its members. A model that is in the folder is replaced."""
    with replacing_model(folder) as draft:
        entries = []
        for number, (recognizer, record) in enumerate(members, start=1):
            place = f"{_COPIES}/{number}-{record.name}"
            recognizer.save_pretrained(draft / place)
            entries.append(
                _Entry(folder=place, fingerprint=fingerprint(draft / place), weight=record.weight)
            )
        _write(draft, entries, labels, decoding)


def _write(
    draft: Path, entries: Iterable[_Entry], labels: Sequence[str], decoding: DecodingSettings
) -> None:
    config = {
        HAS_MANIFEST: True,
        "labels": list(labels),
        MEMBERS: [entry.model_dump(mode="json", exclude_none=True) for entry in entries],
        "decoding": decoding.model_dump(mode="json"),
    }
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (draft / CONFIG).write_text(text, encoding="utf-8")


def _entry(record: MemberRecord, folder: Path) -> _Entry:
    own, names = record.folder.resolve(), {path.resolve(): path.name for path in named_models()}
    known: dict[str, Any] = {"fingerprint": record.fingerprint, "weight": record.weight}
    if own in names:
        return _Entry(model=names[own], **known)
    try:
        place = os.path.relpath(own, folder.resolve())
    except ValueError:  # on another drive
        place = str(own)
    return _Entry(folder=Path(place).as_posix(), **known)


def read_members(folder: Path, config: Config) -> list[MemberRecord]:
    """Find the members of an ensemble and compare their fingerprints.

    Raises:
        UsageError: the folder is damaged, or a member is missing or has changed; names it.
    """
    listed = config.sections.get(MEMBERS)
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise UsageError(f"{folder / CONFIG} is damaged: expected a list of members in {MEMBERS}")
    try:
        entries = [_Entry.build(one, where=MEMBERS) for one in listed]
    except ConfigError as error:
        raise UsageError(f"{folder / CONFIG} is damaged: {error}") from None
    if not entries:
        raise UsageError(f"{folder / CONFIG} is damaged: it names no members")
    return [_found(folder, entry) for entry in entries]


def _found(folder: Path, entry: _Entry) -> MemberRecord:
    if (entry.model is None) == (entry.folder is None):
        raise UsageError(f"{folder / CONFIG} is damaged: a member needs a model or a folder")
    place = folder / entry.folder if entry.folder is not None else None
    if place is not None and not place.is_dir():
        raise UsageError(f"{place}, a member of the ensemble {folder}, is missing")
    record = MemberRecord.of(place or find_model(str(entry.model)))
    if record.fingerprint != entry.fingerprint and os.environ.get(UNCHECKED) != "1":
        raise UsageError(
            f"{record.folder}, a member of the ensemble {folder}, has changed: its fingerprint is "
            f"{record.fingerprint[:12]}, expected {entry.fingerprint[:12]}; tune the ensemble "
            f"again with `spandet ensemble`"
        )
    return replace(record, weight=entry.weight)


def decoding_of(
    sections: Mapping[str, Any], overrides: Sequence[str], *, where: str
) -> DecodingSettings:
    """The settings of decoding, with overrides.

    Raises:
        UsageError: an override is for another section.
        ConfigError: a setting does not exist, or its value is invalid.
    """
    changed = override({"decoding": dict(sections)}, overrides)
    others = sorted(changed.keys() - {"decoding"})
    if others:
        raise UsageError(f"{where} is an ensemble: only [decoding] can be set, not {others[0]}")
    return DecodingSettings.build(changed["decoding"], where="decoding")
