"""What every detector is: words in, scored spans out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Generator, nn

from spandet.tensors import GoldSpans, Losses, SpanPredictions, WordFeatures


class Detector(nn.Module, ABC):
    """A method of finding entities. It has two doors and no mode.

    Neither door looks at `self.training` to choose what it returns (only dropout does), and both
    are right for one sentence, for unequal lengths, and for sentences without words or entities.
    """

    @property
    def links_fragments(self) -> bool:
        """Must `forward` be given discontinuous entities piece by piece?"""
        return False

    @abstractmethod
    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Train: how wrong are we on these sentences?

        Args:
            words: The encoded sentences.
            gold: Their entities.
            rngs: One random generator per sentence, so that a sentence gets the same random
                numbers alone, in any batch and on any process.
        """

    @abstractmethod
    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Predict: which spans, with which labels?

        Args:
            words: The encoded sentences.
            rngs: One random generator per sentence.
            keep_all: Carry the candidates that are dropped on the way to the end as well, with
                their mask False: decoding gives the same, and a tracer can look at them.
        """
