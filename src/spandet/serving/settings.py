"""What a service allows, and how it works."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Gt

from spandet.config import Natural, Positive, Settings

Seconds = Annotated[float, Gt(0)]


class ServiceSettings(Settings):
    """Limits of a service. Lengths of texts count characters, lengths of bodies bytes."""

    max_body_bytes: Positive = 2 * 1024 * 1024
    """A longer request is refused (413) before it is in memory."""
    max_text_chars: Positive = 100_000
    """A longer text is refused (413)."""
    max_trace_chars: Positive = 5_000
    """A longer text is not traced (413): a trace is many times as long as its text."""
    max_texts: Positive = 256
    """More texts in one request are refused (413)."""
    max_queue_texts: Positive = 1024
    """So many texts may wait or be worked on; more are turned away (429)."""
    max_queue_chars: Positive = 2_000_000
    """So many characters may wait or be worked on; more are turned away (429)."""
    max_batch_texts: Positive = 32
    """So many texts, or parts of long texts, are worked on together; 1: no batching."""
    max_batch_chars: Positive = 4_000
    """A batch ends with the text that reaches this: a batch is how long others wait."""
    part_chars: Positive = 1_000
    """A longer text is worked on in parts of whole sentences, so that short ones get by."""
    gather_seconds: Annotated[float, Ge(0)] = 0.002
    """How long the first text of a batch waits for company."""
    timeout_seconds: Seconds = 60.0
    """Who waits longer gets a 504, and what has not begun is dropped."""
    header_seconds: Seconds = 10.0
    """A request line and headers that take longer to arrive are given up (408)."""
    body_seconds: Seconds = 20.0
    """A body that takes longer to arrive is given up (408)."""
    send_seconds: Seconds = 60.0
    """A client that takes longer to read an answer is disconnected."""
    shutdown_seconds: Seconds = 30.0
    """How long a service that is told to stop works on what it has accepted."""
    max_connections: Natural = 512
    """Open connections; 0: any number. For a new one beyond, the one that has waited longest for
    its client is closed; where none waits for its client, the new one is turned away (503)."""
    max_connections_per_client: Natural = 256
    """The same for the connections of one address, so that no single client can use up all."""
