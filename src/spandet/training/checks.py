"""What can be known before the first step of a run: checked then, and not after its first epoch."""

from __future__ import annotations

from spandet.errors import ConfigError, MismatchError, UsageError
from spandet.evaluation import evaluate
from spandet.inference.recognizer import Recognizer
from spandet.text import Document
from spandet.training.data import Split
from spandet.training.log import check_board
from spandet.training.recipe import Recipe


def check_start(recipe: Recipe, train: Split, dev: Split | None) -> list[str]:
    """Check recipe and data against each other; gives what is worth a warning.

    Raises:
        SpandetError: the run could not be brought to its end.
    """
    if recipe.training.tensorboard:
        check_board()
    if dev is not None:
        _check_dev(dev)
    return _untagged(train) if recipe.model.encoder.tags else []


def check_model(recognizer: Recognizer, dev: Split | None) -> None:
    """Let an untrained model read of dev what is most likely to fail.

    Raises:
        SpandetError: it cannot read dev, or learn from what it was built for.
    """
    if getattr(recognizer.encoder, "needs_tags", False) and not recognizer.encoder.vocabulary.tags:
        raise ConfigError("[encoder.tags] min_count: no tag is as frequent in the training data")
    if dev is not None:
        longest = max(dev.documents, key=_longest_sentence)
        untagged = [document for document in dev.documents if _has_untagged(document)]
        for _ in recognizer.predict([longest, *untagged[:1]], min_score=0.0):
            pass


def _check_dev(dev: Split) -> None:
    if not dev.entities:
        raise UsageError(
            f"the dev data ({dev.name}) have no entity: no epoch and no threshold can be chosen"
        )
    try:
        evaluate(dev.documents, dev.documents, resamples=0)
    except MismatchError as error:
        raise UsageError(f"the dev data ({dev.name}) cannot be scored: {error}") from None


def _untagged(train: Split) -> list[str]:
    sentences = [s for d in train.documents for s in d.sentences if s.words]
    bare = sum(not sentence.tags for sentence in sentences)
    if bare == len(sentences):
        raise ConfigError(
            f"[encoder.tags] needs part-of-speech tags, and the training data ({train.name}) have "
            f"none: give data with tags, or leave this section out"
        )
    told = f"{bare:,} of {len(sentences):,} sentences of the training data have no tags"
    return [f"{told}: the model learns them as unknown"] if bare else []


def _longest_sentence(document: Document) -> int:
    return max((len(sentence.words) for sentence in document.sentences), default=0)


def _has_untagged(document: Document) -> bool:
    return any(sentence.words and not sentence.tags for sentence in document.sentences)
