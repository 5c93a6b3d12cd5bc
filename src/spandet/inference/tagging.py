"""Part-of-speech tags by spaCy for words without tags, if a model was trained on its tag set.

A model stores the names of the tags in its training data. Two tag sets are recognised by them: that
of the Penn Treebank (`tag_` in spaCy) and the universal one (`pos_`). The tokenisation is not
changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

from spandet.errors import UsageError

Tagger = Callable[[Sequence[str]], Sequence[str]]
"""A function that returns one tag for each word of a sentence."""

PIPELINE_VARIABLE = "SPANDET_SPACY"
"""The environment variable with the name of another spaCy pipeline."""
_PIPELINE = "en_core_web_sm"
_PENN = """
CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD
VBG VBN VBP VBZ WDT WP WP$ WRB . , : `` '' " # $ ( ) -LRB- -RRB- HYPH NFP ADD AFX GW XX _SP
"""
_UNIVERSAL = """
ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X SPACE
"""


def tagger_for(tags: Sequence[str]) -> Tagger:
    """The tagger for a tag set.

    Raises:
        UsageError: there is no tagger for it, or it is not installed.
    """
    known = set(tags)
    if known <= set(_UNIVERSAL.split()):
        return spacy_tagger("universal")
    if known <= set(_PENN.split()):
        return spacy_tagger("penn")
    some = ", ".join(sorted(known)[:5])
    raise UsageError(
        f"the model reads part-of-speech tags of the corpus that it was trained on ({some}, …), "
        f"and no tagger for these is known: give documents with tags, or set recognizer.tagger"
    )


def spacy_tagger(tag_set: Literal["penn", "universal"]) -> Tagger:
    """SpaCy's tagger, with tags of the Penn Treebank or universal ones.

    Raises:
        UsageError: spaCy or its pipeline is not installed.
    """
    pipeline = os.environ.get(PIPELINE_VARIABLE) or _PIPELINE
    return _spacy_tagger(pipeline, "tag_" if tag_set == "penn" else "pos_")


@cache
def _spacy_tagger(pipeline: str, attribute: str) -> Tagger:
    try:
        import spacy  # noqa: PLC0415 (an extra)
        from spacy.tokens import Doc  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            "the model reads part-of-speech tags, and the documents have none: "
            "pip install 'spandet[spacy]' to compute them"
        ) from None
    try:
        nlp: Any = spacy.load(pipeline, exclude=["ner", "lemmatizer", "parser"])
    except OSError:
        raise UsageError(
            f"the model reads part-of-speech tags, and the documents have none: to compute them, "
            f"install spaCy's pipeline with `python -m spacy download {pipeline}`, or name another "
            f"one in {PIPELINE_VARIABLE}"
        ) from None

    def tag(words: Sequence[str]) -> list[str]:
        doc = nlp(Doc(nlp.vocab, words=list(words)))
        return [getattr(token, attribute) for token in doc]

    return tag
