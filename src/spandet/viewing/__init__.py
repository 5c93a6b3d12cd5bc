"""Looking at documents: in the terminal and as a page, alone or predicted against gold."""

from spandet.viewing.browser import comparison_to_html, to_html
from spandet.viewing.terminal import comparison_to_terminal, to_terminal

__all__ = ["comparison_to_html", "comparison_to_terminal", "to_html", "to_terminal"]
