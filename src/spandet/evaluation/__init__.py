"""Exact evaluation and corpus statistics, without torch."""

from spandet.evaluation.alignment import aligned
from spandet.evaluation.bootstrap import Interval
from spandet.evaluation.comparison import Comparison, compare
from spandet.evaluation.description import Statistics, describe
from spandet.evaluation.errors import Errors, Example, Mention
from spandet.evaluation.pairs import projected
from spandet.evaluation.report import Report, evaluate
from spandet.evaluation.scores import Score

__all__ = [
    "Comparison",
    "Errors",
    "Example",
    "Interval",
    "Mention",
    "Report",
    "Score",
    "Statistics",
    "aligned",
    "compare",
    "describe",
    "evaluate",
    "projected",
]
