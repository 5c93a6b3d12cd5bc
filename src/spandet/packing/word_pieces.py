"""Pruning of a WordPiece vocabulary: which pieces are kept, and the tokenizer with these.

WordPiece always takes the longest piece that fits. So a text whose pieces are all kept is split as
before. Any other text is split into smaller pieces, down to single characters; it becomes unknown
only where it was unknown before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from spandet.errors import UsageError

_TOKENIZER, _CONFIG = "tokenizer.json", "config.json"


def read_tokenizer(folder: Path) -> dict[str, Any]:
    """The tokenizer in the folder of a transformer, as plain values.

    Raises:
        UsageError: its vocabulary cannot be pruned.
    """
    path = folder / _TOKENIZER
    tokenizer: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    kind, frame = tokenizer["model"]["type"], (tokenizer["post_processor"] or {}).get("type")
    if (kind, frame) != ("WordPiece", "TemplateProcessing"):
        raise UsageError(
            f"{path} is {kind} with {frame}, expected WordPiece with TemplateProcessing: only such "
            "a vocabulary can be pruned"
        )
    return tokenizer


def pieces_to_keep(tokenizer: Mapping[str, Any], used: Set[int], size: int) -> list[int]:
    """The sorted ids of the pieces to keep.

    Args:
        tokenizer: As plain values.
        used: Pieces that are needed.
        size: Size of the vocabulary, if the needed pieces are fewer: it is filled up with the first
            of the others, because vocabularies begin with frequent pieces.
    """
    vocabulary: Mapping[str, int] = tokenizer["model"]["vocab"]
    kept = {token["id"] for token in tokenizer["added_tokens"]} | used | _alphabet(tokenizer)
    others = [number for piece, number in vocabulary.items() if not _is_reserved(piece)]
    spare = [number for number in sorted(others) if number not in kept]
    return sorted(kept | set(spare[: max(0, size - len(kept))]))


def write_tokenizer(tokenizer: Mapping[str, Any], kept: Sequence[int], folder: Path) -> None:
    """Write the tokenizer and configuration with these pieces only, renumbered in this order."""
    new = {old: number for number, old in enumerate(kept)}
    model, frame = tokenizer["model"], tokenizer["post_processor"]
    vocabulary = {piece: new[old] for piece, old in model["vocab"].items() if old in new}
    special = {
        name: {**token, "ids": [new[old] for old in token["ids"]]}
        for name, token in frame["special_tokens"].items()
    }
    smaller = {
        **tokenizer,
        "truncation": None,
        "padding": None,
        "added_tokens": [{**t, "id": new[t["id"]]} for t in tokenizer["added_tokens"]],
        "post_processor": {**frame, "special_tokens": special},
        "model": {**model, "vocab": vocabulary},
    }
    _write(folder / _TOKENIZER, smaller)
    config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    _write(folder / _CONFIG, {**config, "vocab_size": len(kept)})


def _alphabet(tokenizer: Mapping[str, Any]) -> set[int]:
    """Single characters, and all pieces with a character that is not a piece by itself."""
    vocabulary: Mapping[str, int] = tokenizer["model"]["vocab"]
    prefix = tokenizer["model"]["continuing_subword_prefix"]
    return {
        number
        for piece, number in vocabulary.items()
        if not _is_reserved(piece)
        and (
            (single := list(_characters(piece, prefix))) == [piece]
            or not all(one in vocabulary for one in single)
        )
    }


def _characters(piece: str, prefix: str) -> Iterator[str]:
    """The pieces of one character that a piece could be split into."""
    inside = piece.startswith(prefix) and piece != prefix
    text = piece.removeprefix(prefix) if inside else piece
    for place, character in enumerate(text):
        yield f"{prefix}{character}" if inside or place else character


def _is_reserved(piece: str) -> bool:
    """Whether it is a placeholder such as "[unused7]", which no text contains."""
    return len(piece) > 1 and piece.startswith("[") and piece.endswith("]")


def _write(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
