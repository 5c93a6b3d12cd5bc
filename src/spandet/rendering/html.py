"""The frame of every HTML page that spandet writes: self-contained, for light and dark mode."""

from __future__ import annotations

from html import escape

# Browsers enforce this policy: the page loads nothing, for any content of the documents.
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --line: #d9d9e0;
  --back: #fcfcfd; --panel: #f0f0f3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #edeef0; --soft: #b0b4ba; --line: #43484e; --back: #111113; --panel: #212225; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--back);
  color: var(--ink); font: 16px/1.5 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: end; }
th:first-child, td:first-child { text-align: start; }
.soft { color: var(--soft); }
"""


def html_page(*, title: str, body: str, style: str = "", script: str = "") -> str:
    """A complete page; `body` is HTML that the caller has escaped."""
    code = f"<script>{script}</script>" if script else ""
    heading = escape(
        title.encode("utf-8", "replace").decode()
    )  # a file name may contain surrogates
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,">'
        f"<title>{heading}</title><style>{_STYLE}{style}</style></head>\n"
        f'<body>\n<h1 dir="auto">{heading}</h1>\n{body}\n{code}</body></html>\n'
    )
