"""HTTP service for a model: API, limits and web page.

`create_app` makes an ASGI application from a recognizer; `spandet serve` runs it.
"""

from __future__ import annotations

from spandet.errors import MissingExtraError

try:
    from spandet.serving.app import create_app
    from spandet.serving.description import Description
    from spandet.serving.hosts import AllowedHosts
    from spandet.serving.settings import ServiceSettings
except ModuleNotFoundError as error:  # pragma: no cover (every test environment has the extra)
    if error.name not in {"fastapi", "h11", "prometheus_client", "starlette", "uvicorn"}:
        raise
    raise MissingExtraError(needs="the service", extra="serve") from None

__all__ = ["AllowedHosts", "Description", "ServiceSettings", "create_app"]
