"""Layout of sequences in the input of a recurrent network, as tensors."""

from collections.abc import Sequence

from spandet.layers.layout import Sequences, packed_layout, padded_layout
from spandet.tensors import to_device, to_tensors


def padded(lengths: Sequence[int]) -> Sequences:
    """A padded grid of steps × sequences: fastest if all lengths are similar."""
    return to_tensors(padded_layout(lengths))


def packed(lengths: Sequence[int]) -> Sequences:
    """All steps without padding: fastest if lengths differ much."""
    return to_tensors(packed_layout(lengths))


def on_grid(sequences: Sequences) -> Sequences:
    """The same sequences as a padded grid."""
    if sequences.batch_sizes is None:
        return sequences
    return to_device(padded(sequences.lengths.tolist()), sequences.lengths.device)
