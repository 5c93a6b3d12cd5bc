"""A new part of the encoder is one file and one field of `EncoderSettings`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from spandet.detectors.biaffine import Biaffine
from spandet.detectors.biaffine_settings import BiaffineSettings
from spandet.encoding import Encoder, EncoderSettings, Example, Vocabulary
from spandet.encoding.inputs import FormInput
from spandet.encoding.part_settings import HashedSettings, PartSettings, TagSettings
from spandet.encoding.parts import FormPart
from spandet.encoding.vocabulary import Counts
from spandet.tensors import GoldSpans, total_loss

EXAMPLES = [
    Example(("the", "IL-2", "gene"), ("DT", "NN", "NN")),
    Example(("the", "cell"), ("DT", "NN")),
]
GOLD = GoldSpans(
    torch.tensor([[[1, 3]], [[1, 2]]]), torch.tensor([[1], [2]]), torch.ones(2, 1, dtype=torch.bool)
)


class LengthSettings(PartSettings):
    dim: int = Field(default=3, ge=1)

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        return replace(vocabulary, words=tuple(sorted(counts.words)))

    def input(self, vocabulary: Vocabulary, folder: Path | None = None) -> "LengthInput":
        del folder
        return LengthInput(max(map(len, vocabulary.words)))

    def new_part(self, vocabulary: Vocabulary) -> "Lengths":
        return Lengths(self, max(map(len, vocabulary.words)))


class LengthInput(FormInput):
    def __init__(self, longest: int) -> None:
        self._longest = longest

    def arrays(self, forms: Sequence[str]) -> np.ndarray:
        return np.array([min(len(word), self._longest) for word in forms])


class Lengths(FormPart):
    """An embedding of the number of characters of a word."""

    def __init__(self, settings: LengthSettings, longest: int) -> None:
        super().__init__()
        self.dim = settings.dim
        self.input = LengthInput(longest)
        self.embedding = nn.Embedding(1 + longest, settings.dim)

    def forward(self, lengths: Tensor) -> Tensor:
        vectors: Tensor = self.embedding(lengths)
        return vectors


class WithLengths(EncoderSettings):
    lengths: LengthSettings | None = None


def test_a_part_of_one_field_trains_and_is_saved(tmp_path: Path) -> None:
    values = {"lengths": {"dim": 4}, "tags": {}, "fusion": {"kind": "none"}}
    settings = WithLengths.build(values, where="encoder")
    torch.manual_seed(0)
    encoder = Encoder.build(settings, settings.vocabulary_of(EXAMPLES))
    detector = Biaffine(BiaffineSettings(), dim=encoder.dim, sentence_dim=0, labels=3)
    assert list(encoder.parts) == ["tags", "lengths"]
    assert encoder.dim == 25 + 4

    before = {name: own.clone() for name, own in encoder.state_dict().items()}
    optimizer = torch.optim.SGD([*encoder.parameters(), *detector.parameters()], lr=1.0)
    rngs = [torch.Generator().manual_seed(number) for number in range(len(EXAMPLES))]
    total_loss(detector(encoder(encoder.prepare(EXAMPLES)), GOLD, rngs)).backward()
    optimizer.step()
    trained = (
        encoder.state_dict()["lengths.embedding.weight"] - before["lengths.embedding.weight"]
    ).any(1)
    assert trained.tolist() == [length in {3, 4} for length in range(5)]

    encoder.save_files(tmp_path)
    loaded = Encoder.from_files(settings, tmp_path)
    loaded.load_state_dict(encoder.state_dict())
    with torch.no_grad():
        one, other = (each.eval()(each.prepare(EXAMPLES)) for each in (encoder, loaded))
    assert torch.equal(one.features, other.features)
    lengths = encoder.get_parameter("lengths.embedding.weight")
    torch.testing.assert_close(one.features[0, 1, 25:], lengths[4])


def test_parts_are_in_the_order_of_the_fields_and_keep_their_names() -> None:
    settings = EncoderSettings(tags=TagSettings(), hashed=HashedSettings())
    encoder = Encoder.build(settings, settings.vocabulary_of(EXAMPLES))
    names = [name for name, _ in encoder.named_parameters() if not name.startswith("fusion.")]
    assert names == ["hashed.table.weight", "tags.embedding.weight"]
    assert encoder.transformer is None
