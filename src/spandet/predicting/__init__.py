"""A prediction job: many inputs, one output, and a spool that survives interruptions."""

from spandet.predicting.inputs import Inputs
from spandet.predicting.job import Choices, Job, is_stream
from spandet.predicting.spool import Spool

__all__ = ["Choices", "Inputs", "Job", "Spool", "is_stream"]
