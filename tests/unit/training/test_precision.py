"""Training in half precision on a CPU."""

from __future__ import annotations

import json
import math
import string
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from spandet.detectors import DETECTORS
from spandet.errors import ConfigError
from spandet.inference.device import precision_of
from spandet.training import train
from spandet.training.log import LOG
from spandet.training.recipe import Recipe, TrainingSettings
from support.training_toys import documents

_NAMES = ("pad_token", "unk_token")
FUSIONS: list[dict[str, Any]] = [
    {"kind": "bilstm", "norm": True},
    {"kind": "bigru", "bypass": True},
    {"kind": "none", "dim": 8},
]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random BERT that cuts words into letters and digits."""
    folder = tmp_path_factory.mktemp("bert")
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{one}" for one in letters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, **dict(zip(_NAMES, ("[PAD]", "[UNK]"), strict=True))
    )
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    torch.manual_seed(1)
    BertModel(config).save_pretrained(folder)  # type: ignore[no-untyped-call]
    return folder


def losses(folder: Path, precision: str, **sections: dict[str, Any]) -> list[dict[str, float]]:
    """Of the first steps."""
    training = {
        "epochs": 1,
        "batch_sentences": 4,
        "lr": 0.01,
        "encoder_lr": 0.001,
        "log_steps": 1,
        "precision": precision,
    }
    out = folder / precision
    recipe = Recipe.from_values({**sections, "training": training})
    trained = train(recipe, documents(12), out=out, progress=False)
    weights = trained.modules().state_dict().values()
    assert {weight.dtype for weight in weights} == {
        torch.float32
    }  # only arithmetic is in half precision
    lines = map(json.loads, (out / LOG).read_text().splitlines())
    return [line["losses"] for line in lines if line["kind"] == "step"]


def compare(folder: Path, *, steps: int, **sections: dict[str, Any]) -> None:
    """Compare the losses of runs in one process, each with its own precision."""
    full, half = (losses(folder, precision, **sections) for precision in ("fp32", "bf16"))
    assert len(full) == len(half) == 3
    assert half[0] != full[0]
    assert all(map(math.isfinite, half[-1].values()))
    for ours, exact in zip(half[:steps], full[:steps], strict=True):
        assert ours == pytest.approx(exact, rel=0.1, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("fusion", FUSIONS, ids=lambda fusion: str(fusion["kind"]))
def test_every_part_of_the_encoder_learns_in_half_precision(
    tmp_path: Path, bert: Path, fusion: dict[str, Any]
) -> None:
    cell = "gru" if fusion["kind"] == "bigru" else "lstm"
    encoder = {
        "transformer": {"name": str(bert), "layers": 2, "pooling": "mean"},
        "characters": {"embedding_dim": 8, "dim": 8, "dropout": 0.0, "cell": cell},
        "fusion": fusion,
    }
    detector = {"name": "locate-and-label", "lengths": [1, 2, 3], "dropout": 0.0}
    compare(tmp_path, steps=3, encoder=encoder, detector=detector)


@pytest.mark.slow
@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_learns_in_half_precision(tmp_path: Path, name: str) -> None:
    encoder = {"hashed": {"dim": 8, "rows": 32, "dropout": 0.0}, "fusion": {"dim": 8}}
    # Later steps may match other spans with entities.
    compare(tmp_path, steps=1, encoder=encoder, detector={"name": name})


def test_unsupported_precision_is_an_error() -> None:
    if torch.accelerator.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigError, match=r"\[training\] precision: fp16 needs a GPU, and there"):
        precision_of(TrainingSettings(precision="fp16").precision, where="training")
    assert precision_of("auto", where="training") == "fp32"
