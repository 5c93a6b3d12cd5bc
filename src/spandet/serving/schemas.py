"""What goes over the wire, for validation and for OpenAPI."""

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
    # pydantic's own string knows no lone surrogates, which JSON, browsers and our texts may have.
    if not isinstance(value, str):
        raise ValueError("a text must be a string")  # noqa: TRY004 (pydantic wants a ValueError)
    return value


def _texts(value: object) -> list[str]:
    # One look at the whole list and one error at most: a body has room for a million.
    if not isinstance(value, list):
        raise ValueError("a list of strings is expected")  # noqa: TRY004 (pydantic wants it)
    for number, item in enumerate(value):
        if not isinstance(item, str):
            raise ValueError(f"item {number} is no string")  # noqa: TRY004 (pydantic wants it)
    return value


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]


def _without_null(schema: dict[str, Any]) -> None:
    """Values are left out rather than null, and lists of options rather than empty."""
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
            raise ValueError("leave it out rather than sending null")
        if value == [] and info.field_name in EntityOptions.model_fields:
            raise ValueError("leave it out rather than sending an empty list")
        return value


def _entities_contract(schema: dict[str, Any]) -> None:
    _without_null(schema)
    schema["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]
    schema["examples"] = [
        {"text": "IL-2 gene expression requires NF-kappa B."},
        {"texts": ["IL-2 gene", "no entity here"], "min_score": 0.7},
    ]


class EntitiesRequest(_Message, EntityOptions):
    """One text or many."""

    model_config = ConfigDict(json_schema_extra=_entities_contract)

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
    """Many texts, instead of one."""

    @model_validator(mode="after")
    def _one_of_both(self) -> EntitiesRequest:
        if (self.text is None) == (self.texts is None):
            raise ValueError('send either "text" or "texts"')
        return self

    @property
    def all_texts(self) -> list[str]:
        """The texts, however they were sent."""
        return [self.text] if self.text is not None else list(self.texts or ())

    @property
    def options(self) -> PredictOptions:
        """The options of the prediction; those about computing are the service's."""
        return PredictOptions(**self.model_dump(include=set(EntityOptions.model_fields)))


def _trace_contract(schema: dict[str, Any]) -> None:
    _without_null(schema)
    schema["examples"] = [{"text": "IL-2 gene expression requires NF-kappa B."}]


class TraceRequest(_Message):
    """A text whose entities are to be explained."""

    model_config = ConfigDict(json_schema_extra=_trace_contract)

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
        default=[], description="The pieces of a discontinuous entity; absent for an ordinary one."
    )


class DocumentOut(BaseModel):
    """What was found in one text, from left to right, outer before inner."""

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
    """A sentence with the way of each entity; spans count its words, half-open."""

    words: list[str]
    char_starts: list[int] = Field(description="Where each word starts in the text.")
    found: list[dict[str, Any]]


class TraceResponse(BaseModel):
    """A text, sentence by sentence, as `spandet trace --json` gives it."""

    text: str
    sentences: list[TracedSentenceOut]


class MeasuredOut(BaseModel):
    """A figure of the model's quality."""

    data: str = Field(description="What it was measured on.")
    f1: float


class ModelResponse(BaseModel):
    """What the service serves."""

    name: str
    detector: str
    encoder: str
    labels: list[str]
    threshold: float = Field(description="Entities are surer than this, unless min_score says so.")
    scores: dict[str, float] | None = Field(
        description="The first of `measured`; with precision and recall, where they are known."
    )
    measured: list[MeasuredOut] = Field(description="F1 of the model as it is served, by data.")
    version: str
    limits: dict[str, float]


class HealthResponse(BaseModel):
    """The service answers."""

    status: str


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str
    errors: list[dict[str, str]] = Field(default=[], description="422: what is wrong, where.")
    retry_after: int = Field(default=1, description="429: seconds until there should be room.")
    id: str = Field(default="", description="500: what to look for in the service's log.")


def with_limits(
    schema: dict[str, Any], *, labels: tuple[str, ...], limits: Mapping[str, Any]
) -> None:
    """Write what this service and its model allow into an OpenAPI schema."""
    shapes = schema["components"]["schemas"]
    entities = shapes["EntitiesRequest"]["properties"]
    entities["text"]["maxLength"] = limits["max_text_chars"]
    entities["texts"]["items"]["maxLength"] = limits["max_text_chars"]
    entities["texts"]["maxItems"] = limits["max_texts"]
    if labels:
        entities["labels"]["items"]["enum"] = list(labels)
    shapes["TraceRequest"]["properties"]["text"]["maxLength"] = limits["max_trace_chars"]
