"""The resumable job behind `spandet predict`: inputs, one output, and a spool of results."""

from spandet.jobs.inputs import Inputs
from spandet.jobs.predict import Job, JobOptions, is_stream
from spandet.jobs.spool import Spool

__all__ = ["Inputs", "Job", "JobOptions", "Spool", "is_stream"]
