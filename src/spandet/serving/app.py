"""The service as an ASGI application.

GET  /             the web page
POST /v1/entities  entities of one or more texts
POST /v1/trace     trajectory of each entity of a text, stage by stage
GET  /v1/model     description of the model, and limits
GET  /healthz      health check
GET  /metrics      Prometheus metrics
GET  /openapi.json OpenAPI schema
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spandet.inference.recognizer import Recognizer
from spandet.serving.batching import Batcher
from spandet.serving.description import Description
from spandet.serving.errors import (
    ClientDisconnectedError,
    ServiceError,
    too_large,
    unprocessable,
)
from spandet.serving.hosts import AllowedHosts
from spandet.serving.limits import GuardedRoute
from spandet.serving.metrics import CONTENT_TYPE, Metrics
from spandet.serving.middleware import Admission, MemoryRelease, RequestLog
from spandet.serving.page_files import page_routes
from spandet.serving.responses import AsciiJSON
from spandet.serving.schemas import (
    EntitiesRequest,
    EntitiesResponse,
    HealthResponse,
    ModelResponse,
    Problem,
    TraceRequest,
    TraceResponse,
    with_limits,
)
from spandet.serving.settings import ServiceSettings
from spandet.serving.work import Finding, Tracing

T = TypeVar("T")

_DISCONNECTED = 499
"""Status in log and metrics of requests whose client has disconnected; it is never sent."""
_SHOWN_ERRORS = 10
_PROBLEMS: dict[int, str] = {
    408: "The request did not arrive in time",
    413: "The request or a text in it is too long",
    415: "The content type is not application/json",
    422: "The body is invalid; `errors` has the fields",
    429: "The queue is full; try again after `Retry-After` seconds",
    500: "The model failed on a text; the service's log has the traceback under `id`",
    503: "The service is stopping, or too many connections are open",
    504: "The request exceeded its time limit",
}


def create_app(
    recognizer: Recognizer,
    settings: ServiceSettings | None = None,
    *,
    description: Description | None = None,
    token: str | None = None,
    hosts: AllowedHosts | None = None,
) -> FastAPI:
    """Create the service of one model.

    Args:
        recognizer: The model.
        settings: Limits and batching.
        description: Name and scores of the model, for GET /v1/model.
        token: Bearer token that clients must send; None: no token is needed.
        hosts: Allowed values of the Host header; None: any.
    """
    settings = settings or ServiceSettings()
    metrics = Metrics()
    batcher = Batcher(recognizer, settings, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.open()
        yield
        batcher.close()

    app = FastAPI(
        title="spandet",
        summary="Named entities, detected like objects.",
        version=version("spandet"),
        docs_url=None,  # it would load scripts from another host
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers={
            ServiceError: _service_error,
            RequestValidationError: _validation_error,
            HTTPException: _http_error,
        },
    )
    app.state.settings = settings
    app.state.token = token
    app.state.recognizer = recognizer
    app.state.description = description or Description()
    app.state.metrics = metrics
    app.state.batcher = batcher
    paths = {"/openapi.json"}
    for router in (_open_routes(), _guarded_routes(with_token=token is not None), page_routes()):
        app.include_router(router)
        paths |= {route.path for route in router.routes if isinstance(route, APIRoute)}
    app.add_middleware(MemoryRelease)
    app.add_middleware(Admission, hosts=hosts)
    app.add_middleware(RequestLog, metrics=metrics, paths=paths)
    app.openapi = partial(_openapi, app, app.openapi)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI, generate: Any) -> dict[str, Any]:
    """The OpenAPI schema with the limits of this service."""
    cached = app.openapi_schema is not None
    schema: dict[str, Any] = generate()
    if not cached:
        limits = app.state.settings.model_dump()
        with_limits(schema, labels=app.state.recognizer.labels, limits=limits)
    return schema


def _open_routes() -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", response_model=HealthResponse)
    async def healthz() -> Response:
        """Health check; needs no token."""
        return AsciiJSON({"status": "ok"})

    router.add_api_route("/healthz", healthz, methods=["HEAD"], include_in_schema=False)

    return router


def _guarded_routes(*, with_token: bool) -> APIRouter:
    dependencies = [Security(HTTPBearer(auto_error=False))] if with_token else []
    denied = {421: "The Host header names a host that is not allowed"}
    if with_token:
        denied[401] = "The bearer token is missing or wrong"
    router = APIRouter(
        route_class=GuardedRoute, dependencies=dependencies, responses=_documented(denied)
    )

    @router.post("/v1/entities", response_model=EntitiesResponse, responses=_documented(_PROBLEMS))
    async def entities(wanted: EntitiesRequest, request: Request) -> Response:
        """Find the entities of one or more texts; one document per text, in order."""
        texts, state = wanted.all_texts, request.app.state
        _check_labels(wanted.labels, state.recognizer.labels)
        _check_texts(texts, most=state.settings.max_texts, longest=state.settings.max_text_chars)
        work = Finding(wanted.options)
        documents = await _until_disconnect(request, state.batcher.run(work, texts))
        return AsciiJSON({"documents": documents})

    @router.post("/v1/trace", response_model=TraceResponse, responses=_documented(_PROBLEMS))
    async def trace(wanted: TraceRequest, request: Request) -> Response:
        """Trace the entities of a text through the stages of the detector."""
        state = request.app.state
        if not state.recognizer.has_stages:
            raise unprocessable("the model is an ensemble, which cannot be traced")
        _check_texts([wanted.text], most=1, longest=state.settings.max_trace_chars)
        (traced,) = await _until_disconnect(
            request, state.batcher.run(Tracing(wanted.min_score), [wanted.text])
        )
        return AsciiJSON(traced)

    @router.get("/v1/model", response_model=ModelResponse)
    async def model(request: Request) -> Response:
        """Describe the model: labels, threshold, known scores, limits of the service."""
        state = request.app.state
        return AsciiJSON(state.description.to_json(state.recognizer, state.settings))

    @router.get("/metrics", response_class=Response)
    async def metrics(request: Request) -> Response:
        """Metrics for Prometheus."""
        return Response(request.app.state.metrics.exposition(), media_type=CONTENT_TYPE)

    return router


def _documented(problems: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem, "description": why} for code, why in problems.items()}


async def _until_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which is cancelled if the client disconnects first."""
    working = asyncio.ensure_future(work)
    disconnecting = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({working, disconnecting}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnectedError
        return working.result()
    finally:
        working.cancel()
        disconnecting.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _check_texts(texts: Sequence[str], *, most: int, longest: int) -> None:
    if len(texts) > most:
        raise too_large(f"{len(texts):,} texts in one request, at most {most:,} are accepted")
    for number, text in enumerate(texts):
        if len(text) > longest:
            raise too_large(
                f"text {number} has {len(text):,} characters, at most {longest:,} are accepted"
            )


def _check_labels(wanted: Sequence[str] | None, known: Sequence[str]) -> None:
    for label in wanted or ():
        if label not in known:
            what = f"the model has no label {label!a}; its labels are {', '.join(known)}"
            raise unprocessable(what, errors=[{"where": "labels", "what": what}])


async def _service_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)  # noqa: S101 (what it is registered for)
    gone = isinstance(error, ClientDisconnectedError)
    status = _DISCONNECTED if gone else int(error.status)
    return AsciiJSON(error.body, status_code=status, headers=error.headers)


async def _validation_error(_: Request, error: Exception) -> Response:
    """Fields and reasons of a 422, without the input, which may be long or confidential."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 (what it is registered for)
    errors = [
        {"where": ".".join(map(str, item["loc"][1:])) or "body", "what": str(item["msg"])}
        for item in error.errors()[:_SHOWN_ERRORS]
    ]
    detail = "; ".join(f"{item['where']}: {item['what']}" for item in errors)
    return AsciiJSON({"detail": detail, "errors": errors}, status_code=422)


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (what it is registered for)
    return AsciiJSON(
        {"detail": str(error.detail)}, status_code=error.status_code, headers=error.headers
    )
