"""Continued pretraining: train an encoder further on raw text."""

from spandet.pretraining.run import pretrain
from spandet.pretraining.settings import PretrainingSettings

__all__ = ["PretrainingSettings", "pretrain"]
