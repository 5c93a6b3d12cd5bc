"""Half precision: word positions and spans stay exact in `forward` and `detect`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from spandet.detectors import Detector
from spandet.detectors.boundary_diffusion.noise import NoiseSpace
from spandet.detectors.locate_and_label.detector import LocateAndLabel
from spandet.detectors.locate_and_label.settings import LocateAndLabelSettings
from spandet.spans.choices import State
from spandet.spans.flat import enumerate_spans
from spandet.spans.pooling import RangeMean
from spandet.tensors import SpanPredictions, WordFeatures
from support.detector_variants import DIM, LABELS, Variant, gold, rngs, variants, words

LENGTH = 264
"""More words than bfloat16 can count: 257 is the first integer that it cannot represent."""
ITEMS = [(0, 2, 1), (257, 264, 2), (259, 261, 3)]
CHOICES = {
    "eta",
    "fragments",
    "illegal",
    "offset_activation",
    "pooling",
    "proposals",
    "rounds",
    "slot_codes",
    "start",
    "state",
    "time",
    "use_regressor",
}
"""What has to do with places, or makes vectors of numbers."""
VARIANTS = [one for one in variants() if one.change.keys() <= CHOICES]


class ExactIntegers(TorchDispatchMode):
    """Fails if an operation in half precision gets an integer that it cannot represent."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Look at what every operation of torch is given and gives."""
        result = func(*args, **(kwargs or {}))
        short = any(one.dtype in (torch.bfloat16, torch.half) for one in _tensors(result))
        if short and not func.__name__.startswith(_LOOK_UPS):
            for one in _tensors((args, kwargs)):
                if not one.is_floating_point() and not torch.equal(
                    one.bfloat16().long(), one.long()
                ):
                    raise AssertionError(f"{func} rounds integers to {_tensors(result)[0].dtype}")
        return result


_LOOK_UPS = ("index", "gather", "embedding", "scatter", "_index_put", "nll_loss")
"""Integers are places here, not numbers."""


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def autocast() -> AbstractContextManager[None]:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def modes(made: Detector) -> Iterator[AbstractContextManager[None]]:
    """Mixed precision; then weights in half precision too."""
    yield autocast()
    made.to(torch.bfloat16)
    yield nullcontext()


def short(given: WordFeatures) -> WordFeatures:
    assert given.sentence is not None
    return WordFeatures(given.features.bfloat16(), given.mask, given.sentence.bfloat16())


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_no_position_is_rounded(variant: Variant) -> None:
    made, given = variant.build(), short(words(LENGTH))
    for context in modes(made):
        with context, ExactIntegers(), torch.no_grad():  # type: ignore[no-untyped-call]
            losses = made(given, gold(ITEMS), rngs(LENGTH))
            made.detect(given, rngs(LENGTH))
        assert all(torch.isfinite(loss.total) for loss in losses.values())
        assert all(loss.count.dtype == torch.float32 for loss in losses.values())


def neutral(made: Detector) -> Detector:
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.zero_()
    return made


def places(found: SpanPredictions) -> list[Tensor]:
    return [found.spans, *(stage.spans for stage in found.trace)]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_positions_are_exact_in_half_precision_with_neutral_weights(variant: Variant) -> None:
    slow = variant.name == "proposer-regressor" and str(variant) != "proposer-regressor-defaults"
    length = 300 if slow else 1000
    made, given = neutral(variant.build()), words(length)
    with torch.no_grad():
        exact = places(made.detect(given, rngs(length)))
    for context in modes(made):
        with context, torch.no_grad():
            got = places(made.detect(short(given), rngs(length)))
        for ours, wanted in zip(got, exact, strict=True):
            torch.testing.assert_close(ours, wanted, rtol=0, atol=0)  # types too


@pytest.mark.parametrize("lengths", [range(1, 11), range(1, 4)])
def test_zero_offsets_change_no_seed(lengths: range) -> None:
    settings = LocateAndLabelSettings(lengths=tuple(lengths))
    made = neutral(LocateAndLabel(settings, dim=DIM, sentence_dim=0, labels=LABELS)).eval()
    for context in modes(made):
        with context, torch.no_grad():
            found = made.detect(short(words(1000)), [])
        assert torch.equal(found.spans[0], enumerate_spans([1000], lengths).spans)


@pytest.mark.parametrize("state", ["ends", "width"])
def test_noise_space_stays_in_full_precision(state: State) -> None:
    space = NoiseSpace("cosine", 1000, scale=4.0, state=state, spread=False).to(torch.bfloat16)
    spans = enumerate_spans([1000], [1, 7, 300]).spans
    length = torch.full((len(spans),), 1000)
    with autocast():
        latents = space.noised(space.latents(spans, length), torch.zeros(len(spans), 2), 0)
        assert torch.equal(space.spans(latents, length, 0), spans)


def test_the_mean_of_many_short_vectors_is_exact() -> None:
    features = torch.full((1, 1000, 1), 1.0, dtype=torch.bfloat16)
    spans = torch.tensor([[[0, 1000], [0, 259], [500, 757]]])
    assert torch.equal(RangeMean(features).inside(spans), torch.ones(1, 3, 1, dtype=torch.bfloat16))
