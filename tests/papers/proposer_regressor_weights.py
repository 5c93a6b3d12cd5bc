"""From our modules to the weights of the transcription of proposer-regressor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
from torch import Tensor, nn

from papers import proposer_regressor_parts as parts
from spandet.detectors.proposer_regressor.detector import ProposerRegressor
from spandet.detectors.proposer_regressor.pyramid import Downwards, RecurrentBlock, Upwards
from spandet.layers.recurrent import BiRNN
from spandet.layers.regressor import GatedUpdate, RegressorLayer


def linear(module: nn.Module) -> parts.Linear:
    assert isinstance(module, nn.Linear)
    return parts.Linear(array(module.weight), array(module.bias))


def array(tensor: Tensor) -> parts.Array:
    return tensor.detach().numpy().copy()


def mlp(module: nn.Module) -> parts.Mlp:
    assert isinstance(module, nn.Sequential)
    return parts.Mlp(linear(module[0]), linear(module[2]))


def norm(module: nn.Module) -> parts.Norm:
    assert isinstance(module, nn.LayerNorm)
    return parts.Norm(array(module.weight), array(module.bias))


def gate(*tensors: Tensor) -> parts.GateWeights:
    """Torch's order of the three gates is that of eq. 18: r, z, n."""
    of_x, of_h, b_x, b_h = (np.split(array(tensor), 3) for tensor in tensors)
    xs = [parts.Linear(*pair) for pair in zip(of_x, b_x, strict=True)]
    hs = [parts.Linear(*pair) for pair in zip(of_h, b_h, strict=True)]
    return parts.GateWeights(*xs, *hs)


def bigru(net: BiRNN) -> parts.BiGru:
    def one(gru: nn.Module) -> parts.GateWeights:
        assert isinstance(gru, nn.GRU)
        own = gru.state_dict()
        return gate(
            *(own[f"{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        )

    return parts.BiGru(one(net.forwards[0]), one(net.backwards[0]))


def forward_weights(made: ProposerRegressor) -> Iterator[parts.ForwardWeights]:
    for level, block in enumerate(made.pyramid.upward_blocks):
        assert isinstance(block, RecurrentBlock)
        convolution = None
        if level:
            up = made.pyramid.upwards[level - 1]
            assert isinstance(up, Upwards)
            places = np.split(array(up.map.weight), made.settings.kernels[level - 1], axis=1)
            convolution = parts.Convolution(places, array(up.map.bias))
        yield parts.ForwardWeights(
            norm(block.norm), bigru(block.net), linear(block.out), convolution
        )


def backward_weights(made: ProposerRegressor) -> Iterator[parts.BackwardWeights]:
    """Ours has a linear map after the BiGRU and one after the ⊕: together they are W of eq. 7."""
    assert made.pyramid.backward_blocks is not None
    for level, block in enumerate(made.pyramid.backward_blocks):
        assert isinstance(block, RecurrentBlock)
        own, merge = linear(block.out), linear(made.pyramid.merge[level])
        left, right = np.split(merge.weight, 2, axis=1)
        both = np.concatenate([left, right @ own.weight], axis=1)
        transposed = None
        if level:
            down = made.pyramid.downwards[level - 1]
            assert isinstance(down, Downwards)
            places = np.split(array(down.map.weight), made.settings.kernels[level - 1])
            transposed = parts.Convolution(places, array(down.bias))
        yield parts.BackwardWeights(
            norm(block.norm),
            bigru(block.net),
            parts.Linear(both, merge.bias + right @ own.bias),
            norm(made.pyramid.norms[level]),
            transposed,
        )


def regressor_weights(layer: nn.Module) -> parts.RegressorWeights:
    assert isinstance(layer, RegressorLayer)
    assert isinstance(layer.update, GatedUpdate)
    attention, cell = layer.attention, layer.update.cell
    every, heads = linear(attention.project), attention.heads
    maps = [
        parts.Linear(weight, bias)
        for weight, bias in zip(
            np.split(every.weight, 3 * heads), np.split(every.bias, 3 * heads), strict=True
        )
    ]
    out = linear(attention.out)
    return parts.RegressorWeights(
        categories=None if layer.categories is None else array(layer.categories),
        query=maps[:heads],
        key=maps[heads : 2 * heads],
        value=maps[2 * heads :],
        locator=mlp(attention.locator.net),
        head_scores=mlp(attention.votes),
        out=[
            parts.Linear(weight, out.bias / heads) for weight in np.split(out.weight, heads, axis=1)
        ],
        gate=gate(cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh),
        label_change=None if layer.label_change is None else mlp(layer.label_change),
    )


def model_of(made: ProposerRegressor) -> parts.Model:
    pointer = made.head.pointer
    assert pointer.answer is None  # one map for queries and words, as in eq. 22
    asks = linear(pointer.ask)
    start, end = zip(np.split(asks.weight, 2), np.split(asks.bias, 2), strict=True)
    return parts.Model(
        kernels=made.settings.kernels,
        forward=list(forward_weights(made)),
        backward=list(backward_weights(made)) if made.settings.use_backward else None,
        scores=mlp(cast("nn.Module", made.propose.scores)),
        first_labels=mlp(made.first_labels),
        layers=[regressor_weights(layer) for layer in made.layers],
        head=parts.HeadWeights(
            mlp(made.head.label_change),
            parts.Linear(*start),
            parts.Linear(*end),
            mlp(pointer.locator.net),
        ),
        spatial=made.settings.attention != "dot",
        move=made.settings.use_location_iteration,
    )
