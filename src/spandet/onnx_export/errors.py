"""What can go wrong in an export."""

from __future__ import annotations

from spandet.errors import SpandetError


class ExportError(SpandetError):
    """An export that failed one of its gates; nothing of it is left."""


class KeptInTorchError(SpandetError):
    """A part that cannot be exported, and why."""
