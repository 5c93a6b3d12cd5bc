"""Named entities, detected like objects: nested, overlapping and discontinuous ones included."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spandet.evaluation import compare, describe, evaluate
    from spandet.formats import Corpus, read, write
    from spandet.generation import generate
    from spandet.inference.options import PredictOptions
    from spandet.inference.recognizer import Recognizer
    from spandet.inference.tracing import trace
    from spandet.text import CharSpan, Document, Entity, Sentence, WordSpan, to_records
    from spandet.training import train

__all__ = [
    "CharSpan",
    "Corpus",
    "Document",
    "Entity",
    "PredictOptions",
    "Recognizer",
    "Sentence",
    "WordSpan",
    "compare",
    "describe",
    "evaluate",
    "generate",
    "read",
    "to_records",
    "trace",
    "train",
    "write",
]

__version__: str

_HOMES = {
    "spandet.evaluation": ("compare", "describe", "evaluate"),
    "spandet.formats": ("Corpus", "read", "write"),
    "spandet.generation": ("generate",),
    "spandet.inference.options": ("PredictOptions",),
    "spandet.inference.recognizer": ("Recognizer",),
    "spandet.text": ("CharSpan", "Document", "Entity", "Sentence", "WordSpan", "to_records"),
    "spandet.inference.tracing": ("trace",),
    "spandet.training": ("train",),
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import spandet` costs nothing."""
    if name == "__version__":
        return _installed_version()
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not, and what every module has."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name[:2] == "__")})


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (60 ms)

    try:
        return version("spandet")
    except PackageNotFoundError:  # run from a source tree
        return "unknown"
