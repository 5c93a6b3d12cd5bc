"""Limits and batching options of a service."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Gt

from spandet.config import Natural, Positive, Settings

Seconds = Annotated[float, Gt(0)]


class ServiceSettings(Settings):
    """Limits of a service. Lengths of texts are in characters, lengths of bodies in bytes."""

    max_body_bytes: Positive = 2 * 1024 * 1024
    """Maximum length of a request body; a longer one is refused (413) before it is in memory."""
    max_text_chars: Positive = 100_000
    """Maximum length of a text; a longer one is refused (413)."""
    max_trace_chars: Positive = 5_000
    """Maximum length of a text to trace (413): a trace is many times as long as its text."""
    max_texts: Positive = 256
    """Maximum number of texts in a request (413)."""
    max_queue_texts: Positive = 1024
    """Maximum number of texts in the queue and in the current batch; more are refused (429)."""
    max_queue_chars: Positive = 2_000_000
    """Maximum number of characters in them; more are refused (429)."""
    max_batch_texts: Positive = 32
    """Maximum number of texts, or parts of long texts, in a batch; 1: no batching."""
    max_batch_chars: Positive = 4_000
    """A batch is full when it has this many characters; it delays all requests that come after."""
    part_chars: Positive = 1_000
    """Longer texts are split into parts of whole sentences, so that short texts can overtake."""
    gather_seconds: Annotated[float, Ge(0)] = 0.002
    """Time that the first text of a batch waits for others."""
    timeout_seconds: Seconds = 60.0
    """Maximum time for a response; then 504, and what has not begun is dropped."""
    header_seconds: Seconds = 10.0
    """Maximum time for a request line and headers to arrive; then 408."""
    body_seconds: Seconds = 20.0
    """Maximum time for a body to arrive; then 408."""
    send_seconds: Seconds = 60.0
    """Maximum time for a client to read a response; then it is disconnected."""
    shutdown_seconds: Seconds = 30.0
    """Maximum time to finish accepted requests after a signal to stop."""
    max_connections: Natural = 512
    """Maximum number of open connections; 0: no maximum. A new connection beyond it replaces the
    one that has waited longest for its client; if none waits for its client, the new one is refused
    (503)."""
    max_connections_per_client: Natural = 256
    """The same for the connections of one address, so that no single client can use up all."""
