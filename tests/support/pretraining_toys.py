"""A tiny encoder and a few texts to pretrain it on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from spandet.encoding.part_settings import TransformerSettings
from spandet.encoding.pretrained import fetch
from spandet.encoding.transformer import Transformer
from spandet.pretraining import PretrainingSettings
from spandet.text import Document
from support.tiny_bert import save_tiny_bert

STEMS = [f"{a}{b}" for a in "bdgkmn" for b in ("a", "ei", "ou")]
MASK = "[MASK]"
ENDS = ["##s", "##ing", "##ed"]


def save_tiny_encoder(folder: Path, *, mask: bool = True) -> Path:
    """Save a tiny BERT with a mask piece, which pretraining needs."""
    save_tiny_bert(folder, [MASK, *STEMS, *ENDS, "."])
    if mask:
        tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(folder, mask_token=MASK)
        tokenizer.save_pretrained(folder)
    return folder


def tiny_encoder(folder: Path) -> Transformer:
    return fetch(TransformerSettings(name=str(save_tiny_encoder(folder))))


def texts(count: int, *, seed: int = 0) -> list[Document]:
    """Documents in which each word determines the next one, so that they can be learnt."""
    rng = random.Random(seed)
    documents = []
    for number in range(count):
        place = rng.randrange(len(STEMS))
        words = []
        for _ in range(rng.randrange(5, 30)):
            words.append(STEMS[place] + rng.choice(ENDS).removeprefix("##"))
            place = (place * 5 + 1) % len(STEMS)
        documents.append(Document(" ".join(words) + ".", id=str(number)))
    return documents


def tiny_settings(**values: Any) -> PretrainingSettings:
    """Settings of a run that takes a second."""
    quick = {
        "block": 16,
        "batch_blocks": 4,
        "held_out": 0.1,
        "steps": 8,
        "evaluation_steps": 3,
        "log_steps": 2,
        "precision": "fp32",
        "lr": 1e-2,
        "head_lr": 1e-2,
    }
    return PretrainingSettings.build({**quick, **values}, where="pretraining")
