"""spandet serve MODEL: serve a model over HTTP, with a web page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.options import Model, Set
from spandet.cli.terminal import note, note_mean_threshold
from spandet.errors import UsageError

TOKEN = "SPANDET_TOKEN"  # noqa: S105 (the name of a variable)

Host = Annotated[
    str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all network interfaces.")
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any free port.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help=f"File with the bearer token that clients must send; or set {TOKEN}.",
    ),
]
MaxBody = Annotated[
    int, typer.Option("--max-body-bytes", min=1, help="Maximum size of a request, in bytes.")
]
MaxText = Annotated[
    int, typer.Option("--max-text-chars", min=1, help="Maximum length of a text, in characters.")
]
MaxTrace = Annotated[
    int, typer.Option("--max-trace-chars", min=1, help="Maximum length of a text to trace.")
]
MaxTexts = Annotated[
    int, typer.Option("--max-texts", min=1, help="Maximum number of texts per request.")
]
MaxQueueTexts = Annotated[
    int, typer.Option("--max-queue-texts", min=1, help="Maximum number of texts in the queue.")
]
MaxQueueChars = Annotated[
    int, typer.Option("--max-queue-chars", min=1, help="Maximum number of queued characters.")
]
MaxBatchTexts = Annotated[
    int, typer.Option("--max-batch-texts", min=1, help="Maximum number of texts per batch.")
]
MaxConnections = Annotated[
    int,
    typer.Option("--max-connections", min=0, help="Maximum number of connections; 0: no limit."),
]
MaxConnectionsPerClient = Annotated[
    int,
    typer.Option(
        "--max-connections-per-client",
        min=0,
        help="Maximum number of connections of one address; 0: no limit.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Additional host name of the service; * for any; repeatable.",
    ),
]
TrustedProxies = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted-proxy",
        metavar="ADDRESS",
        help="Address or network of a proxy whose X-Forwarded-For is used; repeatable.",
    ),
]
HeaderTimeout = Annotated[
    float,
    typer.Option("--header-timeout", min=0.001, help="Seconds to receive a request's headers."),
]
BodyTimeout = Annotated[
    float, typer.Option("--body-timeout", min=0.001, help="Seconds to receive a request's body.")
]
SendTimeout = Annotated[
    float, typer.Option("--send-timeout", min=0.001, help="Seconds to send a response.")
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.001, help="Maximum seconds per request.")
]
ShutdownTimeout = Annotated[
    float,
    typer.Option("--shutdown-timeout", min=0.001, help="Seconds to finish accepted requests."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="CPU threads; torch's default if not given.")
]
LogRequests = Annotated[bool, typer.Option("--log-requests", help="Log each request to stderr.")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Write the log as JSON lines.")]


def serve_command(
    model: Model,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: TokenFile = None,
    max_body_bytes: MaxBody = 2 * 1024 * 1024,
    max_text_chars: MaxText = 100_000,
    max_trace_chars: MaxTrace = 5_000,
    max_texts: MaxTexts = 256,
    max_queue_texts: MaxQueueTexts = 1024,
    max_queue_chars: MaxQueueChars = 2_000_000,
    max_batch_texts: MaxBatchTexts = 32,
    max_connections: MaxConnections = 512,
    max_connections_per_client: MaxConnectionsPerClient = 256,
    allow_host: AllowHosts = None,
    trusted_proxy: TrustedProxies = None,
    header_timeout: HeaderTimeout = 10.0,
    body_timeout: BodyTimeout = 20.0,
    send_timeout: SendTimeout = 60.0,
    timeout: Timeout = 60.0,
    shutdown_timeout: ShutdownTimeout = 30.0,
    threads: Threads = None,
    set_: Set = None,
    log_requests: LogRequests = False,
    log_json: LogJson = False,
) -> None:
    """Serve a model over HTTP, with a web page at / to try it.

    A process serves one model; for more cores, run several behind a proxy. On
    SIGTERM, accepted requests are finished. The API is in docs/serving.md.
    """
    token = _token(token_file)
    from spandet.serving import AllowedHosts, Description, ServiceSettings, create_app, server

    settings = ServiceSettings(
        max_body_bytes=max_body_bytes,
        max_text_chars=max_text_chars,
        max_trace_chars=max_trace_chars,
        max_texts=max_texts,
        max_queue_texts=max_queue_texts,
        max_queue_chars=max_queue_chars,
        max_batch_texts=max_batch_texts,
        max_connections=max_connections,
        max_connections_per_client=max_connections_per_client,
        header_seconds=header_timeout,
        body_seconds=body_timeout,
        send_seconds=send_timeout,
        timeout_seconds=timeout,
        shutdown_seconds=shutdown_timeout,
    )
    hosts = AllowedHosts.when_listening_on(host, allow_host or ())
    proxies = server.networks(trusted_proxy or ())
    listener = server.listen(host, port)
    if token is None and not server.is_loopback(host):
        note(f"warning: no token is set: everyone who can reach {host} can use this service")
    import torch

    from spandet.inference.model_names import find_models
    from spandet.inference.recognizer import Recognizer

    if threads is not None:
        torch.set_num_threads(threads)
    folders = find_models(model)
    note_mean_threshold(folders, set_ or ())
    recognizer = Recognizer.from_pretrained(folders, set_ or ())
    recognizer("Is everything there that the first request will need?")
    server.set_up_log(requests=log_requests, json_lines=log_json)
    is_one = len(folders) == 1
    description = Description.of_folder(folders[0]) if is_one else Description(model)
    app = create_app(recognizer, settings, description=description, token=token, hosts=hosts)
    where = f"{description.name} is served at {server.address(listener)}"
    server.run(app, listener, ready=lambda: typer.echo(where), proxies=proxies)


def _token(file: Path | None) -> str | None:
    """Read the token that clients must send, if one is set."""
    where = str(file) if file is not None else TOKEN
    try:
        text = os.environ.get(TOKEN) if file is None else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"the token file cannot be read: {error}") from None
    if text is None:
        return None
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{where} must contain one token of printable ASCII without spaces")
    return token
