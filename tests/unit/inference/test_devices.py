"""On another device: detectors and the encoder compute there; candidates are copied once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spandet.encoding import Encoder, EncoderSettings, Example
from spandet.inference.decoding import DecodingSettings
from spandet.inference.engine import to_numpy
from spandet.inference.linking import assemble
from spandet.spans.flat import enumerate_spans
from spandet.tensors import Links, SpanPredictions, to_device, total_loss
from support.detector_variants import Variant, gold, rngs, variants, words
from support.pretend_device import DevicesMeetError, pretended_device
from support.tiny_bert import save_tiny_bert

LENGTHS = (4, 1)
ITEMS = [[(0, 2, 1), (1, 2, 2)], []]


def test_a_cpu_tensor_on_the_other_device_is_detected() -> None:
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
        parameter.requires_grad_(not variant.change)  # the backward pass once for each preset
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
    encoder = Encoder.build(settings, settings.vocabulary_of(EXAMPLES)).eval()
    with pretended_device() as device, torch.no_grad():
        encoder.to(device)
        batch = encoder.prepare(EXAMPLES).to(device)
        read = encoder(batch)
        assert {read.features.device, read.mask.device} == {device}
        if encoder.transformer is not None:
            assert encoder.transformer_words(batch).device == device


def assert_same(array: np.ndarray | None, tensor: torch.Tensor | None) -> None:
    assert array is not None
    assert tensor is not None
    assert array.tolist() == tensor.tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_candidates_are_copies_of_the_predictions_on_a_device(dtype: torch.dtype) -> None:
    spans = enumerate_spans([5], [1, 2, 3]).spans.repeat(2, 1, 1)
    count, rng = spans.shape[1], torch.Generator().manual_seed(0)
    probs = torch.rand(2, count, 3, generator=rng).softmax(dim=-1).to(dtype)
    together = torch.eye(count).flip(0).expand(2, -1, -1)
    links = Links(0.9 * together.to(dtype), probs[..., 0])
    mask = torch.rand(2, count, generator=rng) < 0.7
    given = SpanPredictions(spans, probs, mask, links=links, type_probs=probs[..., 1])
    with pretended_device() as device:
        got = to_numpy(to_device(given, device))
    assert_same(got.spans, spans)
    assert_same(got.label_probs, probs)
    assert_same(got.mask, mask)
    assert_same(got.type_probs, probs[..., 1])
    assert got.links is not None
    assert_same(got.links.together, links.together)
    assert_same(got.links.alone, links.alone)
    assert got.label_probs.dtype == got.links.together.dtype == np.float32
    settings = DecodingSettings(threshold=0.3, min_odds=0.0)
    assert assemble(got, settings) == assemble(to_numpy(given), settings)
    plain = to_numpy(SpanPredictions(spans, probs, mask))
    assert plain.links is None
    assert plain.type_probs is None
