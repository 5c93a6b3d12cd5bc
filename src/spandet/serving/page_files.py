"""The web page at / with its scripts and styles, read into memory once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A static file with the headers of its response."""

    path: str
    content: bytes
    headers: dict[str, str]

    def response(self, request: Request) -> Response:
        """The file, or 304 if the browser's copy is current."""
        if request.headers.get("if-none-match") == self.headers["ETag"]:
            return Response(status_code=304, headers=self.headers)
        return Response(self.content, headers=self.headers)


def page_files() -> list[PageFile]:
    """All files of the page; index.html has the path /."""
    found = []
    for file in files("spandet.serving").joinpath("page").iterdir():
        kind = _TYPES.get("." + file.name.rpartition(".")[2])
        if kind is not None and file.is_file():
            content = file.read_bytes()
            path = "/" if file.name == "index.html" else f"/{file.name}"
            headers = {
                "Content-Type": kind,
                "ETag": f'"{sha256(content).hexdigest()[:32]}"',
                # Browsers check for changes before each use, so that versions are never mixed.
                "Cache-Control": "no-cache",
                "Content-Security-Policy": _POLICY,
            }
            found.append(PageFile(path, content, headers))
    return sorted(found, key=lambda file: file.path)


def page_routes() -> APIRouter:
    """A route for each file."""
    router = APIRouter()
    for file in page_files():
        router.add_api_route(
            file.path, _handler(file), methods=["GET", "HEAD"], include_in_schema=False
        )
    return router


def _handler(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        return file.response(request)

    return handle
