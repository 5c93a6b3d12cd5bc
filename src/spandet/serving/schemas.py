"""Requests and responses of the API, for validation and for the OpenAPI schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from spandet.config import Share
from spandet.inference.options import EntityOptions, PredictOptions


def _text(value: object) -> str:
    # The string type of pydantic refuses lone surrogates, which are allowed in JSON and documents.
    if not isinstance(value, str):
        raise ValueError("a text must be a string")  # noqa: TRY004 (pydantic expects ValueError)
    return value


def _texts(value: object) -> list[str]:
    # One error for the whole list: a body has room for a million items.
    if not isinstance(value, list):
        raise ValueError("a list of strings is expected")  # noqa: TRY004 (pydantic expects it)
    for number, item in enumerate(value):
        if not isinstance(item, str):
            raise ValueError(f"item {number} is not a string")  # noqa: TRY004 (pydantic expects it)
    return value


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]


def _without_null(schema: dict[str, Any]) -> None:
    """Remove null from the types of optional fields, and empty lists from those of options."""
    for name, own in schema["properties"].items():
        kinds = [kind for kind in own.pop("anyOf", ()) if kind.get("type") != "null"]
        own.update(*kinds)
        if own.get("default", ...) is None:
            del own["default"]
        if own["type"] == "array" and name in EntityOptions.model_fields:
            own["minItems"] = 1


class _Message(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_given(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            raise ValueError("null is not allowed; leave the key out")
        if value == [] and info.field_name in EntityOptions.model_fields:
            raise ValueError("an empty list is not allowed; leave the key out")
        return value


def _entities_schema(schema: dict[str, Any]) -> None:
    _without_null(schema)
    schema["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]
    schema["examples"] = [
        {"text": "IL-2 gene expression requires NF-kappa B."},
        {"texts": ["IL-2 gene", "no entity here"], "min_score": 0.7},
    ]


class EntitiesRequest(_Message, EntityOptions):
    """One text, or several."""

    model_config = ConfigDict(json_schema_extra=_entities_schema)

    text: Text | None = None
    """One text. Any characters, NUL and escaped lone surrogates included."""
    texts: (
        Annotated[
            list[str],
            PlainValidator(_texts),
            WithJsonSchema({"type": "array", "items": {"type": "string"}}),
        ]
        | None
    ) = None
    """Several texts, instead of `text`."""

    @model_validator(mode="after")
    def _one_of_both(self) -> EntitiesRequest:
        if (self.text is None) == (self.texts is None):
            raise ValueError('send either "text" or "texts"')
        return self

    @property
    def all_texts(self) -> list[str]:
        """The texts, from `text` or `texts`."""
        return [self.text] if self.text is not None else list(self.texts or ())

    @property
    def options(self) -> PredictOptions:
        """The options of the prediction; batching options are those of the service."""
        return PredictOptions(**self.model_dump(include=set(EntityOptions.model_fields)))


def _trace_schema(schema: dict[str, Any]) -> None:
    _without_null(schema)
    schema["examples"] = [{"text": "IL-2 gene expression requires NF-kappa B."}]


class TraceRequest(_Message):
    """A text to trace."""

    model_config = ConfigDict(json_schema_extra=_trace_schema)

    text: Text
    min_score: Share | None = None
    """Only entities with a score above this (0 to 1), in place of the model's tuned threshold."""


class EntityOut(BaseModel):
    """A labelled span of characters of its text, half-open, counted in Unicode code points."""

    start: int
    end: int
    label: str
    score: float
    text: str
    fragments: list[tuple[int, int]] = Field(
        default=[], description="Fragments of a discontinuous entity; absent for other entities."
    )


class DocumentOut(BaseModel):
    """The entities of one text, from left to right, outer before inner."""

    entities: list[EntityOut]


class EntitiesResponse(BaseModel):
    """One document per text, in the order of the texts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {
                            "entities": [
                                {
                                    "start": 0,
                                    "end": 4,
                                    "label": "protein",
                                    "score": 0.93,
                                    "text": "IL-2",
                                }
                            ]
                        }
                    ]
                }
            ]
        }
    )

    documents: list[DocumentOut]


class TracedSentenceOut(BaseModel):
    """A sentence with the trajectory of each entity; spans are half-open, counted in its words."""

    words: list[str]
    char_starts: list[int] = Field(description="Position of each word's first character.")
    found: list[dict[str, Any]]


class TraceResponse(BaseModel):
    """The traced sentences of a text, in the format of `spandet trace --json`."""

    text: str
    sentences: list[TracedSentenceOut]


class MeasuredOut(BaseModel):
    """F1 of the model on one data set."""

    data: str = Field(description="Name of the data set.")
    f1: float


class ModelResponse(BaseModel):
    """The served model, and the limits of the service."""

    name: str
    detector: str
    encoder: str
    labels: list[str]
    threshold: float = Field(description="Default of min_score.")
    scores: dict[str, float] | None = Field(
        description="The first of `measured`; with precision and recall if they are known."
    )
    measured: list[MeasuredOut] = Field(description="F1 of the served model by data set.")
    version: str
    limits: dict[str, float]


class HealthResponse(BaseModel):
    """Response of the health check."""

    status: str


class Problem(BaseModel):
    """An error."""

    detail: str
    errors: list[dict[str, str]] = Field(
        default=[], description="422: field (`where`) and reason (`what`) of each error."
    )
    retry_after: int = Field(default=1, description="429: seconds until the queue has room.")
    id: str = Field(default="", description="500: id of the traceback in the service's log.")


def with_limits(
    schema: dict[str, Any], *, labels: tuple[str, ...], limits: Mapping[str, Any]
) -> None:
    """Add the limits of this service and the labels of its model to an OpenAPI schema."""
    shapes = schema["components"]["schemas"]
    entities = shapes["EntitiesRequest"]["properties"]
    entities["text"]["maxLength"] = limits["max_text_chars"]
    entities["texts"]["items"]["maxLength"] = limits["max_text_chars"]
    entities["texts"]["maxItems"] = limits["max_texts"]
    if labels:
        entities["labels"]["items"]["enum"] = list(labels)
    shapes["TraceRequest"]["properties"]["text"]["maxLength"] = limits["max_trace_chars"]
