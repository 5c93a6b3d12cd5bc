"""The pyramid compared with torch's convolutions and recurrent networks, sentence by sentence."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.detectors.proposer_regressor.cells import Level, cells_of
from spandet.detectors.proposer_regressor.pyramid import (
    Downwards,
    FeaturePyramid,
    RecurrentBlock,
    Upwards,
)
from spandet.layers.choices import Cell
from spandet.layers.recurrent import BiRNN
from spandet.layers.sequences import padded
from support.sentence_toys import word_features

DIM = 6


def pyramid(kernels: list[int], **options: Any) -> FeaturePyramid:
    torch.manual_seed(0)
    values: dict[str, Any] = {"backward": True, "pool": "mean", "message": "finished"}
    cell: Cell = options.pop("cell", "gru")

    def block() -> RecurrentBlock:
        return RecurrentBlock(dim=DIM, cell=cell, recurrent_dim=10, dropout=0.3)

    made = FeaturePyramid(
        dim=DIM, kernels=kernels, block=block, dropout=0.3, **{**values, **options}
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.4)
    return made.eval()


def read(made: FeaturePyramid, lengths: list[int], kernels: list[int]) -> list[list[Tensor]]:
    """Features of the cells of each sentence, level by level."""
    words = word_features(*lengths, dim=DIM)
    cells = cells_of(lengths, kernels)
    features = made(words.features[words.mask], cells)
    parts = [
        own.split(level.sequences.lengths.tolist())
        for own, level in zip(features, cells.levels, strict=True)
    ]
    return [[level[sentence] for level in parts] for sentence in range(len(lengths))]


VARIANTS: list[dict[str, Any]] = [
    {},
    {"backward": False},
    {"pool": "max", "message": "merged"},
    {"cell": "lstm"},
]


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("kernels", [[], [2, 2], [2, 3], [3, 2, 2]])
def test_a_sentence_alone_is_the_same_as_in_a_batch(
    options: dict[str, Any], kernels: list[int]
) -> None:
    made = pyramid(kernels, **options)
    lengths = [5, 1, 0, 9, 3, 2]
    for length, together in zip(lengths, read(made, lengths, kernels), strict=True):
        assert not any(map(len, together[length:]))
        if not length:
            continue
        (alone,) = read(made, [length], kernels)
        for one, other in zip(alone, together, strict=False):  # alone has no levels without cells
            torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def stock_net(net: BiRNN) -> nn.LSTM | nn.GRU:
    """One bidirectional network with the same weights."""
    ahead, back = net.forwards[0], net.backwards[0]
    kind = nn.GRU if isinstance(ahead, nn.GRU) else nn.LSTM
    stock = kind(DIM, net.dim // 2, bidirectional=True)
    own = dict(ahead.state_dict())
    own.update({f"{name}_reverse": value for name, value in back.state_dict().items()})
    stock.load_state_dict(own)
    return stock


def stock_block(block: nn.Module, cells: Tensor) -> Tensor:
    assert isinstance(block, RecurrentBlock)
    read_, _ = stock_net(block.net)(block.norm(cells))
    result: Tensor = block.out(read_)
    return result


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_block_is_norm_recurrent_network_and_linear_map(cell: Cell) -> None:
    torch.manual_seed(1)
    block = RecurrentBlock(dim=DIM, cell=cell, recurrent_dim=10, dropout=0.0)
    rows = [torch.randn(length, DIM) for length in (4, 1, 7)]
    got = block(torch.cat(rows), padded([4, 1, 7]))
    torch.testing.assert_close(got, torch.cat([stock_block(block, row) for row in rows]))


def lowest_two(kernel: int) -> tuple[Level, Level]:
    below, above = cells_of([9], [kernel]).levels
    return below, above


@pytest.mark.parametrize("kernel", [2, 3])
def test_upwards_is_a_convolution(kernel: int) -> None:
    torch.manual_seed(2)
    up, cells = Upwards(DIM, kernel), torch.randn(9, DIM)
    assert up.map.bias is not None
    weight = up.map.weight.view(DIM, kernel, DIM).permute(0, 2, 1)
    wanted = F.gelu(F.conv1d(cells.T[None], weight, up.map.bias))[0].T
    torch.testing.assert_close(up(cells, lowest_two(kernel)[1]), wanted)


@pytest.mark.parametrize("kernel", [2, 3])
def test_downwards_is_a_transposed_convolution(kernel: int) -> None:
    torch.manual_seed(3)
    down = Downwards(2 * DIM, DIM, kernel)
    nn.init.normal_(down.bias)
    above, cells = lowest_two(kernel)[1], torch.randn(9 - kernel + 1, 2 * DIM)
    weight = down.map.weight.view(kernel, DIM, 2 * DIM).permute(2, 1, 0)
    wanted = F.gelu(F.conv_transpose1d(cells.T[None], weight, down.bias))[0].T
    torch.testing.assert_close(down(cells, above, torch.zeros(9, DIM)), wanted)


def test_downwards_can_be_initialised_as_a_transposed_convolution() -> None:
    """The same numbers for the same seed, in another order."""
    down = Downwards(2 * DIM, DIM, 3)
    torch.manual_seed(4)
    down.start_as_convolution()
    torch.manual_seed(4)
    stock = nn.ConvTranspose1d(2 * DIM, DIM, 3)
    torch.testing.assert_close(down.map.weight.flatten(), stock.weight.flatten())
    assert stock.bias is not None
    torch.testing.assert_close(down.bias, stock.bias)
    made = pyramid([2, 3])
    before = [own.clone() for own in made.downwards.parameters()]
    made.start_as_convolutions()
    assert not any(map(torch.equal, before, made.downwards.parameters()))
    pyramid([2], backward=False).start_as_convolutions()  # none to start


def by_the_book(made: FeaturePyramid, kernels: list[int], words: Tensor) -> list[Tensor]:
    """The forward and backward blocks for one sentence, with torch's layers."""
    going_up = [stock_block(made.upward_blocks[0], words)]
    for number, kernel in enumerate(kernels):
        if len(going_up[-1]) < kernel:
            break
        conv = made.upwards[number]
        assert isinstance(conv, Upwards)
        weight = conv.map.weight.view(DIM, kernel, DIM).permute(0, 2, 1)
        arriving = F.gelu(F.conv1d(going_up[-1].T[None], weight, conv.map.bias))[0].T
        going_up.append(stock_block(made.upward_blocks[number + 1], arriving))
    if made.backward_blocks is None:
        return going_up
    finished: list[Tensor] = []
    message = going_up[-1]
    for number in reversed(range(len(going_up))):
        both = torch.cat([going_up[number], stock_block(made.backward_blocks[number], message)], 1)
        wide = len(words) - len(going_up[number]) + 1
        pooling = F.avg_pool1d if made.pool == "mean" else F.max_pool1d
        pooled = pooling(words.T[None], wide, stride=1)[0].T
        finished.insert(0, made.norms[number](pooled + made.merge[number](both)))
        if number:
            down = made.downwards[number - 1]
            assert isinstance(down, Downwards)
            sent = finished[0] if made.message == "finished" else both
            weight = down.map.weight.view(kernels[number - 1], DIM, -1).permute(2, 1, 0)
            message = F.gelu(F.conv_transpose1d(sent.T[None], weight, down.bias))[0].T
    return finished


@pytest.mark.parametrize("options", VARIANTS)
def test_the_pyramid_equals_the_method(options: dict[str, Any]) -> None:
    kernels = [2, 3, 2]
    made = pyramid(kernels, **options)
    lengths = [8, 4, 3, 1]  # the last three are too short for the upper levels
    words = word_features(*lengths, dim=DIM)
    for number, got in enumerate(read(made, lengths, kernels)):
        wanted = by_the_book(made, kernels, words.features[number, : lengths[number]])
        assert [len(own) for own in got if len(own)] == [len(own) for own in wanted]
        for one, other in zip(got, wanted, strict=False):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_dropout_is_on_in_training_only() -> None:
    made = pyramid([2])
    still = read(made, [5], [2])[0][0]
    torch.testing.assert_close(still, read(made, [5], [2])[0][0])
    made.train()
    assert not torch.allclose(still, read(made, [5], [2])[0][0])
