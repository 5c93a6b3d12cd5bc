"""Number of slots in prediction relative to training."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spandet.detectors.boundary_diffusion.detector import BoundaryDiffusion
from spandet.detectors.boundary_diffusion.settings import BoundaryDiffusionSettings
from spandet.errors import ConfigError
from spandet.seeding import generator
from spandet.tensors import SpanPredictions
from support.sentence_toys import word_features

LENGTHS = (40, 20, 12)


def detected(**values: Any) -> SpanPredictions:
    settings = BoundaryDiffusionSettings.build({"dim": 16, "heads": 2, **values}, where="detector")
    torch.manual_seed(0)
    detector = BoundaryDiffusion(settings, dim=16, sentence_dim=0, labels=3).eval()
    words = word_features(*LENGTHS, dim=16)
    with torch.no_grad():
        return detector.detect(words, [generator(length) for length in LENGTHS])


@pytest.mark.parametrize("fixed", [None, 30])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_slots_are_half_equal_or_double(fixed: int | None, factor: float) -> None:
    usual = {} if fixed is None else {"slots": fixed}
    # Without settling and with ends that are always a span, every slot gives a prediction.
    one, other = (detected(**usual, eval_slots_factor=f) for f in (1.0, factor))
    counts = [(p.mask.sum(dim=1)).tolist() for p in (one, other)]
    assert counts[1] == [factor * count for count in counts[0]]
    if factor == 1:
        plain = detected(**usual)
        assert torch.equal(plain.label_probs, other.label_probs)


def test_the_number_and_the_factor_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="eval_slots or eval_slots_factor, not both"):
        BoundaryDiffusionSettings.build(
            {"eval_slots": 30, "eval_slots_factor": 2.0}, where="detector"
        )
