"""Boundary diffusion with a linker: it adds losses and links and changes nothing else."""

import torch

from spandet.detectors.boundary_diffusion.detector import BoundaryDiffusion
from spandet.detectors.boundary_diffusion.settings import BoundaryDiffusionSettings
from spandet.inference.decoding import DecodingSettings
from spandet.inference.engine import to_numpy
from spandet.inference.linking import DecodedEntity, assemble
from spandet.seeding import generator
from spandet.tensors import WordFeatures
from support.sentence_toys import gold_spans, word_features

DIM, LENGTHS = 8, (9, 1, 14)
LOOSE = DecodingSettings(threshold=0.0, min_odds=0.0, crossing="keep")


def detector(*, fragments: bool) -> BoundaryDiffusion:
    torch.manual_seed(0)
    settings = BoundaryDiffusionSettings(dim=8, heads=2, dropout=0.0, fragments=fragments)
    return BoundaryDiffusion(settings, dim=DIM, sentence_dim=DIM, labels=4)


def words() -> WordFeatures:
    return word_features(*LENGTHS, dim=DIM)


def rngs() -> list[torch.Generator]:
    return [generator("rng", length) for length in LENGTHS]


def found(made: BoundaryDiffusion) -> list[DecodedEntity]:
    with torch.inference_mode():
        return assemble(to_numpy(made.eval().detect(words(), rngs())), LOOSE)


def test_an_untrained_linker_changes_neither_weights_nor_entities() -> None:
    without, linked = detector(fragments=False), detector(fragments=True)
    assert linked.links_fragments
    assert not without.links_fragments
    theirs = linked.state_dict()
    for name, weight in without.state_dict().items():
        assert torch.equal(weight, theirs[name])
    assert len(found(without)) > 3
    assert found(linked) == found(without)


def test_it_adds_two_losses_and_changes_none() -> None:
    gold = gold_spans([(0, 2, 1), (4, 5, 1), (6, 8, 2)], [], [(3, 9, 3)])
    usual = detector(fragments=False)(words(), gold, rngs())
    linked = detector(fragments=True)(words(), gold, rngs())
    assert set(linked) - set(usual) == {"link", "alone"}
    for name, loss in usual.items():
        assert torch.equal(loss.total, linked[name].total)
    # Contiguous entities are negative examples: two of one label with a gap, and four alone.
    assert (linked["link"].count, linked["alone"].count) == (1, 4)
