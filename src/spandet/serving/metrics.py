"""Prometheus metrics of a service."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counters, histograms and gauges in their own registry, so that services do not share them."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own = self._registry
        self._requests = Counter(
            "spandet_requests", "Requests by path and status", ["path", "status"], registry=own
        )
        self._latency = Histogram(
            "spandet_request_seconds",
            "Time from the first byte of a request to the last byte of its response",
            ["path"],
            buckets=_SECONDS,
            registry=own,
        )
        self._batches = Histogram(
            "spandet_batch_texts", "Texts per batch", buckets=_TEXTS, registry=own
        )
        self._batch_seconds = Histogram(
            "spandet_batch_seconds", "Time of the model per batch", buckets=_SECONDS, registry=own
        )
        self._texts = Counter(
            "spandet_texts", "Processed texts, or parts of long texts", registry=own
        )
        self._characters = Counter("spandet_characters", "Processed characters", registry=own)
        self._queue_texts = Gauge(
            "spandet_queue_texts", "Texts in the queue and in the current batch", registry=own
        )
        self._queue_characters = Gauge(
            "spandet_queue_characters",
            "Characters in the queue and in the current batch",
            registry=own,
        )
        self._connections = Gauge("spandet_connections", "Open connections", registry=own)
        self._closed = Counter(
            "spandet_connections_closed",
            "Connections closed by the service: header timeout, send timeout, limit",
            ["reason"],
            registry=own,
        )

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request with its response."""
        self._requests.labels(path, str(status)).inc()
        self._latency.labels(path).observe(seconds)

    def batch(self, texts: int, characters: int, seconds: float) -> None:
        """Count a batch that the model has processed."""
        self._batches.observe(texts)
        self._batch_seconds.observe(seconds)
        self._texts.inc(texts)
        self._characters.inc(characters)

    def queue(self, texts: int, characters: int) -> None:
        """Set the size of the queue and the current batch."""
        self._queue_texts.set(texts)
        self._queue_characters.set(characters)

    def connections(self, count: int) -> None:
        """Set the number of open connections."""
        self._connections.set(count)

    def closed(self, reason: str) -> None:
        """Count a connection that the service has closed."""
        self._closed.labels(reason).inc()

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
