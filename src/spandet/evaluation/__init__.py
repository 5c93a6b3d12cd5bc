"""Exact evaluation and corpus statistics. Nothing here loads torch; importing it is light."""

from spandet.evaluation.alignment import aligned
from spandet.evaluation.bootstrap import Interval
from spandet.evaluation.census import Errors, Example, Mention
from spandet.evaluation.comparison import Comparison, compare
from spandet.evaluation.description import Statistics, describe
from spandet.evaluation.projection import projected
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
