"""Documents, comparisons with gold and traces of predictions, in the terminal and as HTML."""

from spandet.viewing.html import comparison_to_html, to_html
from spandet.viewing.terminal import comparison_to_terminal, to_terminal
from spandet.viewing.trace_html import trace_to_html
from spandet.viewing.trace_terminal import trace_to_terminal

__all__ = [
    "comparison_to_html",
    "comparison_to_terminal",
    "to_html",
    "to_terminal",
    "trace_to_html",
    "trace_to_terminal",
]
