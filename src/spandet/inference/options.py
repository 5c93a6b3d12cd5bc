"""The options of a prediction, for Python, command line, HTTP service, spaCy and Ray.

A new option is one field here and one line in `PredictKeywords`; all interfaces use this class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self, TypedDict, Unpack

from pydantic import PlainValidator, ValidationError, WithJsonSchema

from spandet.config import Positive, Settings, Share
from spandet.errors import UsageError

BATCH_PIECES = 768
"""The fastest value on a CPU: larger batches do not fit into its cache."""


def _names(value: object) -> tuple[str, ...]:
    # pydantic's own strings cannot hold lone surrogates, which labels and texts may have.
    if isinstance(value, str):
        raise ValueError(f"must be a list of labels, such as [{value!r}]")  # noqa: TRY004
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise ValueError("must be a list of labels")  # noqa: TRY004 (pydantic expects ValueError)
    names = list(value)
    for number, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"item {number} is no string")  # noqa: TRY004
    return tuple(sorted(set(names)))


Labels = Annotated[
    tuple[str, ...],
    PlainValidator(_names),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
"""Labels in alphabetical order, each once."""


class EntityOptions(Settings):
    """Which entities are returned."""

    min_score: Share | None = None
    """Only entities with a score above this (0 to 1), in place of the model's tuned threshold."""
    labels: Labels | None = None
    """Only entities with these labels."""
    flat: bool = False
    """No two entities overlap: of those that do, the one with the highest score is kept."""


class PredictOptions(EntityOptions):
    """Options of `Recognizer.predict`: which entities to return, and how to compute them."""

    batch_pieces: Positive = BATCH_PIECES
    """Sub-word pieces to encode at once, padding included; a GPU is faster with more."""

    @classmethod
    def of(cls, options: EntityOptions | None = None, **keywords: Unpack[PredictKeywords]) -> Self:
        """Options from an object, keyword arguments, or both: keyword arguments replace fields.

        Raises:
            UsageError: an option does not exist or its value cannot be used; names it.
        """
        if isinstance(options, cls) and not keywords:
            return options
        values: dict[str, Any] = {**(dict(options) if options else {}), **keywords}
        try:
            return cls(**values)
        except ValidationError as error:
            raise UsageError("; ".join(map(_explanation, error.errors()))) from None


DEFAULTS = PredictOptions()


class PredictKeywords(TypedDict, total=False):
    """The fields of `PredictOptions` as keyword arguments of `Recognizer.predict`."""

    min_score: float | None
    labels: Iterable[str] | None
    flat: bool
    batch_pieces: int


def _explanation(item: Any) -> str:
    name = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        return f"there is no option {name}; there are {', '.join(PredictOptions.model_fields)}"
    what = item["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return f"{name} {what}, not {item['input']!r:.80}"
