"""On another device: nothing of the CPU meets it, in detectors, the encoder and decoding."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from spandet.encoding import Encoder, EncoderSettings, Example, Vocabulary
from spandet.inference.decoding import DecodingSettings
from spandet.inference.linking import assemble
from spandet.spans.flat import enumerate_spans
from spandet.tensors import Links, SpanPredictions, to_device, total_loss
from support.detector_variants import Variant, gold, rngs, variants, words
from support.pretend_device import DevicesMeetError, pretended_device
from support.tiny_bert import save_tiny_bert

LENGTHS = (4, 1)
ITEMS = [[(0, 2, 1), (1, 2, 2)], []]


def test_a_tensor_that_was_left_behind_is_found() -> None:
    with pretended_device() as device:
        there = torch.arange(3, device=device)
        assert there.device == there.new_tensor([1, 2]).device == device
        assert (there + 1).tolist() == (there.cpu() + torch.ones(3)).tolist() == [1, 2, 3]
        assert there[there > 0].sum().item() == 3
        for left_behind in (torch.arange(3), torch.tensor([True, False, True])):
            with pytest.raises(DevicesMeetError, match=r"aten\.\w+\.\w+ is given \[\(3,\)\]"):
                torch.where(there > 0, there, left_behind)
            with pytest.raises(DevicesMeetError):
                there[left_behind]


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_detectors_stay_on_their_device(variant: Variant) -> None:
    made = variant.build()
    for parameter in made.parameters():
        parameter.requires_grad_(not variant.change)  # the way back once for each preset
    with pretended_device() as device:
        made.to(device)
        given, right = to_device((words(*LENGTHS), gold(*ITEMS)), device)
        loss = total_loss(made(given, right, rngs(*LENGTHS)))
        if loss.requires_grad:
            loss.backward()
        with torch.no_grad():
            found = made.detect(given, rngs(*LENGTHS))
        assert {loss.device, found.spans.device, found.label_probs.device} == {device}


PARTS: dict[str, dict[str, Any]] = {
    "hashed": {"hashed": {"dim": 8, "rows": 16}},
    "characters": {"characters": {"dim": 4, "pooling": "mean"}},
    "last characters": {"characters": {"dim": 4, "pooling": "last", "cell": "gru"}},
    "tags": {"tags": {"dim": 4}, "fusion": {"kind": "none", "dim": 6, "norm": True}},
    "word vectors": {"word_vectors": {"path": "{folder}/vectors.txt"}},
    "transformer": {"transformer": {"name": "{folder}", "pooling": "mean"}},
    "bypass": {
        "transformer": {"name": "{folder}", "pooling": "max"},
        "hashed": {"dim": 8, "rows": 16},
        "fusion": {"kind": "bigru", "bypass": True, "dim": 6},
    },
}
EXAMPLES = [Example(("the", "cells", "grew"), ("DT", "NNS", "VBD")), Example(("cells",), ("NNS",))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small transformer, and vectors of words."""
    made = save_tiny_bert(tmp_path_factory.mktemp("bert"), ["the", "cell", "##s", "grew"])
    (made / "vectors.txt").write_text("the 1 2\ncells 3 4\n")
    return made


@pytest.mark.parametrize("name", PARTS)
def test_the_encoder_stays_on_its_device(name: str, folder: Path) -> None:
    values = {
        part: {
            key: value.format(folder=folder) if isinstance(value, str) else value
            for key, value in own.items()
        }
        for part, own in PARTS[name].items()
    }
    settings = EncoderSettings.build(values, where="encoder")
    encoder = Encoder.build(settings, Vocabulary.from_examples(EXAMPLES, settings)).eval()
    with pretended_device() as device, torch.no_grad():
        encoder.to(device)
        batch = encoder.prepare(EXAMPLES).to(device)
        read = encoder(batch)
        assert {read.features.device, read.mask.device} == {device}
        if encoder.transformer is not None:
            assert encoder.transformer_words(batch).device == device


CHOICES: list[dict[str, Any]] = [
    {"crossing": crossing, "merge": merge, "nms_decay": decay}
    for crossing, merge, decay in product(
        ("keep", "greedy", "both"), ("max", "sum", "first", "noisy-or"), (0.5, 1.0)
    )
] + [{"crossing": "greedy", "flat": True}]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("linked", [False, True])
def test_decoding_stays_on_its_device(choice: dict[str, Any], linked: bool) -> None:
    spans = enumerate_spans([5], [1, 2, 3]).spans.repeat(2, 2, 1)
    rng = torch.Generator().manual_seed(0)
    probs = torch.rand(*spans.shape[:2], 3, generator=rng).softmax(dim=-1)
    count = spans.shape[1]
    links = Links(torch.eye(count).flip(0).expand(2, -1, -1), torch.ones(2, count))
    mask = torch.ones(2, count, dtype=torch.bool)
    given = SpanPredictions(spans, probs, mask, links=links if linked else None)
    settings = DecodingSettings(threshold=0.3, min_odds=0.0, **choice)
    wanted = assemble(given, settings)
    with pretended_device() as device:
        assert assemble(to_device(given, device), settings) == wanted
    assert wanted or choice["crossing"] == "both"
