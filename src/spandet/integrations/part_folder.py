"""The folder that a job on Ray writes: what the job is, its parts, and a receipt for each of them.

`_spandet.json` says whose results these are. `.part-000000.jsonl.done` is the receipt of a part:
the checksum of its bytes and what is known about it, with a checksum of its own. A part without a
receipt that fits it does not count, and is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from spandet.errors import UsageError
from spandet.integrations.shards import digest_of, is_draft, located, write_part, written
from spandet.text import Document

_MANIFEST = "_spandet.json"
_VERSION = 2


@dataclass(frozen=True, slots=True)
class PartFolder:
    """A folder of parts, on this machine or behind a URI that pyarrow knows."""

    path: str

    def open(self, manifest: Mapping[str, Any], *, resume: bool) -> None:
        """Make the folder of a job; to resume it, check that it is the same job.

        Raises:
            UsageError: the folder has files, and they are not those of this job.
        """
        manifest = json.loads(json.dumps({"version": _VERSION, **manifest}))
        system, place = located(self.path)
        system.create_dir(place, recursive=True)
        there = {info.base_name for info in system.get_file_info(fs.FileSelector(place))}
        drafts = set(filter(is_draft, there))
        if there and not resume:
            raise UsageError(f"{self.path} is not empty: give a new folder, or go on with --resume")
        if there - drafts:
            self._check(manifest, there)
        for name in drafts:  # of a run that was killed
            system.delete_file(f"{place}/{name}")
        if not there - drafts:
            with written(self.path, _MANIFEST) as out:
                out.write(json.dumps(manifest).encode())

    def write(self, documents: Iterable[Document], name: str) -> str:
        """Write a part, which appears complete or not at all; gives its checksum."""
        return write_part(documents, self.path, name)

    def sign(self, name: str, checksum: str, facts: Mapping[str, Any]) -> None:
        """Write the receipt of a part that has this checksum."""
        body = json.dumps({"sha256": checksum, "facts": facts}).encode()
        with written(self.path, _receipt(name)) as out:
            out.write(_sealed(body))

    def facts(self, name: str) -> dict[str, Any] | None:
        """What the receipt of a part says; None unless the part is complete and unchanged."""
        system, place = located(self.path)
        receipt = f"{place}/{_receipt(name)}"
        if not all(info.is_file for info in system.get_file_info([receipt, f"{place}/{name}"])):
            return None
        with system.open_input_stream(receipt, compression=None) as stream:
            data = stream.read()
        body, _, _ = data.partition(b"\n")
        if data != _sealed(body):
            return None
        said: dict[str, Any] = json.loads(body)
        return said["facts"] if said["sha256"] == digest_of(f"{self.path}/{name}") else None

    def missing(self, names: Iterable[str]) -> list[str]:
        """The parts that are not there."""
        system, place = located(self.path)
        there = {info.base_name for info in system.get_file_info(fs.FileSelector(place))}
        return [name for name in names if not {name, _receipt(name)} <= there]

    def _check(self, manifest: Mapping[str, Any], there: set[str]) -> None:
        """Is this the folder of the same job?"""
        if _MANIFEST not in there:
            raise UsageError(f"{self.path} is not the folder of a job on Ray: nothing to resume")
        system, place = located(self.path)
        with system.open_input_stream(f"{place}/{_MANIFEST}") as stream:
            data = stream.read()
        try:
            earlier = dict(json.loads(data))
        except (ValueError, TypeError, RecursionError):
            raise UsageError(
                f"{self.path}/{_MANIFEST} is damaged: begin anew with a new folder"
            ) from None
        if earlier.get("version") != _VERSION:
            raise UsageError(
                f"{self.path} is of another version of spandet: begin anew with a new folder"
            )
        other = [key for key in manifest if earlier.get(key) != manifest[key]]
        if other:
            raise UsageError(f"{self.path} is of another job: not the same {', '.join(other)}")


def _receipt(name: str) -> str:
    return f".{name}.done"


def _sealed(body: bytes) -> bytes:
    """With a checksum behind it."""
    return body + b"\n" + hashlib.sha256(body).hexdigest().encode()
