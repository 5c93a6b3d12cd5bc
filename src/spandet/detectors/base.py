"""The interface of all detectors: word vectors in, scored spans out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from torch import Generator, Tensor, nn

from spandet.tensors import GoldSpans, Losses, SpanPredictions, WordFeatures


class Detector(nn.Module, ABC):
    """Finds entities: `forward` for training, `detect` for prediction.

    What they return does not depend on `self.training` (only dropout does). Both accept one
    sentence, sentences of unequal lengths, and sentences without words or entities.
    """

    links_fragments: bool = False
    """Whether `forward` expects discontinuous entities as fragments with links."""

    @abstractmethod
    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Compute the training losses of a batch, each with its weight.

        Args:
            words: The encoded sentences.
            gold: Their gold entities.
            rngs: One random generator per sentence, so that a sentence gets the same random
                numbers alone, in any batch and on any process.
        """

    @abstractmethod
    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Predict candidate spans with label probabilities.

        Args:
            words: The encoded sentences.
            rngs: One random generator per sentence.
            keep_all: Also return the candidates that the detector drops, with their mask False,
                for a trace. Decoding gives the same entities.
        """

    def detect_in_graph(
        self, words: WordFeatures, inputs: Mapping[str, Tensor]
    ) -> SpanPredictions | None:
        """`detect` with shapes that follow from the shapes of the arguments, for one ONNX graph.

        Args:
            words: The encoded sentences, with at least one word.
            inputs: From `graph_inputs` of the settings, by name.

        Returns:
            None if the detector, with its settings, has no such form.
        """
        del words, inputs
        return None
