"""Training: from a recipe and documents to a model folder."""

from spandet.training.data import Split, load
from spandet.training.errors import TrainingError, TrainingInterrupted
from spandet.training.recipe import Recipe
from spandet.training.run import train
from spandet.training.settings import TrainingSettings

__all__ = [
    "Recipe",
    "Split",
    "TrainingError",
    "TrainingInterrupted",
    "TrainingSettings",
    "load",
    "train",
]
