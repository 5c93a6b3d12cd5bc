"""Continued pretraining: from an encoder and raw text to an encoder that knows such text."""

from spandet.pretraining.run import pretrain
from spandet.pretraining.settings import PretrainingSettings

__all__ = ["PretrainingSettings", "pretrain"]
