"""The output folder of a job on Ray: a manifest of the job, its parts, and a receipt per part.

`_spandet.json` is the manifest: model, options and inputs of the job. `.part-000000.jsonl.done` is
the receipt of a part: the checksum of the part and its report, followed by a checksum of the
receipt itself. A part without a matching receipt counts as missing.
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
    """A folder of parts: a local path or a URI that pyarrow supports."""

    path: str

    def open(self, manifest: Mapping[str, Any], *, resume: bool) -> None:
        """Create the folder of a job; with `resume`, check that it belongs to the same job.

        Raises:
            UsageError: The folder has files, and they do not belong to this job.
        """
        manifest = json.loads(json.dumps({"version": _VERSION, **manifest}))
        system, place = located(self.path)
        system.create_dir(place, recursive=True)
        there = {info.base_name for info in system.get_file_info(fs.FileSelector(place))}
        drafts = set(filter(is_draft, there))
        if there and not resume:
            raise UsageError(
                f"{self.path} is not empty: use a new folder, or continue with --resume"
            )
        if there - drafts:
            self._check(manifest, there)
        for name in drafts:  # left by a run that was killed
            system.delete_file(f"{place}/{name}")
        if not there - drafts:
            with written(self.path, _MANIFEST) as out:
                out.write(json.dumps(manifest).encode())

    def write(self, documents: Iterable[Document], name: str) -> str:
        """Write a part atomically, and return its checksum."""
        return write_part(documents, self.path, name)

    def write_receipt(self, name: str, checksum: str, facts: Mapping[str, Any]) -> None:
        """Write the receipt of a part with this checksum."""
        body = json.dumps({"sha256": checksum, "facts": facts}).encode()
        with written(self.path, _receipt(name)) as out:
            out.write(_with_checksum(body))

    def facts(self, name: str) -> dict[str, Any] | None:
        """The report in the receipt of a part; None unless the part is complete and unchanged."""
        system, place = located(self.path)
        receipt = f"{place}/{_receipt(name)}"
        if not all(info.is_file for info in system.get_file_info([receipt, f"{place}/{name}"])):
            return None
        with system.open_input_stream(receipt, compression=None) as stream:
            data = stream.read()
        body, _, _ = data.partition(b"\n")
        if data != _with_checksum(body):
            return None
        content: dict[str, Any] = json.loads(body)
        return content["facts"] if content["sha256"] == digest_of(f"{self.path}/{name}") else None

    def missing(self, names: Iterable[str]) -> list[str]:
        """The parts without file or receipt."""
        system, place = located(self.path)
        there = {info.base_name for info in system.get_file_info(fs.FileSelector(place))}
        return [name for name in names if not {name, _receipt(name)} <= there]

    def _check(self, manifest: Mapping[str, Any], there: set[str]) -> None:
        """Raise an error unless the folder belongs to the same job."""
        if _MANIFEST not in there:
            raise UsageError(f"{self.path} is not the folder of a job on Ray: it cannot be resumed")
        system, place = located(self.path)
        with system.open_input_stream(f"{place}/{_MANIFEST}") as stream:
            data = stream.read()
        try:
            earlier = dict(json.loads(data))
        except (ValueError, TypeError, RecursionError):
            raise UsageError(
                f"{self.path}/{_MANIFEST} is damaged: start again with a new folder"
            ) from None
        if earlier.get("version") != _VERSION:
            raise UsageError(
                f"{self.path} is of another version of spandet: start again with a new folder"
            )
        other = [key for key in manifest if earlier.get(key) != manifest[key]]
        if other:
            raise UsageError(f"{self.path} is of another job: not the same {', '.join(other)}")


def _receipt(name: str) -> str:
    return f".{name}.done"


def _with_checksum(body: bytes) -> bytes:
    """Append the checksum of some bytes to them."""
    return body + b"\n" + hashlib.sha256(body).hexdigest().encode()
