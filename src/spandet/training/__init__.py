"""Training: from a recipe and documents to a model folder.

One batch passes data, batches, epochs (the loop of a recognizer; `loop` is what it shares with
pretraining), step and optimizer; run_folder, checkpoint and log write the files of the run.
"""

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
