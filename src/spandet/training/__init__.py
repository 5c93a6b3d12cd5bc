"""Training: from a recipe and documents to a model folder."""

from spandet.errors import TrainingError, TrainingInterrupted
from spandet.training.data import Split, load
from spandet.training.recipe import Recipe, TrainingSettings
from spandet.training.run import train

__all__ = [
    "Recipe",
    "Split",
    "TrainingError",
    "TrainingInterrupted",
    "TrainingSettings",
    "load",
    "train",
]
