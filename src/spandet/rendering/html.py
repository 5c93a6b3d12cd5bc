"""The shell of every self-contained HTML page that spandet writes: no network, light and dark."""

from __future__ import annotations

from html import escape

# A browser enforces it: whatever a document holds, the page loads nothing from anywhere.
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


def page(*, title: str, body: str, style: str = "", script: str = "") -> str:
    """A whole page; `body` is HTML that its maker has escaped."""
    code = f"<script>{script}</script>" if script else ""
    heading = escape(title.encode("utf-8", "replace").decode())  # a file's name may not be text
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,">'
        f"<title>{heading}</title><style>{_STYLE}{style}</style></head>\n"
        f'<body>\n<h1 dir="auto">{heading}</h1>\n{body}\n{code}</body></html>\n'
    )
