"""A tiny random BERT in a folder, with a given WordPiece vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def save_tiny_bert(folder: Path, pieces: Iterable[str], *, layers: int = 1) -> Path:
    """Save the model; returns the folder, for `encoder.transformer.name`.

    Special pieces come first, with an unused one among them, as in vocabularies of BERT.
    """
    first, *others = SPECIAL.values()
    every = [first, "[unused0]", *others, *pieces]
    vocabulary = {piece: number for number, piece in enumerate(every)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL["unk_token"]))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    frame = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=frame
    )
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, **SPECIAL
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
        initializer_range=0.3,
    )
    torch.manual_seed(1)
    BertModel(config).save_pretrained(folder)  # type: ignore[no-untyped-call]
    return folder
