"""A prediction job: many inputs, one output, and a spool that survives interruptions."""

from spandet.jobs.inputs import Inputs
from spandet.jobs.predict import Choices, Job, is_stream
from spandet.jobs.spool import Spool

__all__ = ["Choices", "Inputs", "Job", "Spool", "is_stream"]
