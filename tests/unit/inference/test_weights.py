"""Round trips of weights: exact, in half precision, or within half a quantization step."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from spandet.errors import UsageError
from spandet.inference.weights import FILE, Kept, load_weights, save_weights


def some_weights() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(5, 64, generator=generator) * torch.tensor([[1e-4], [1], [0], [30], [1e4]])
    return {
        "matrix": matrix,
        "turned": matrix.T,
        "short": torch.randn(4, 3, generator=generator),
        "bias": torch.randn(7, generator=generator),
        "none": torch.zeros(0, 64),
        "numbers": torch.arange(6).view(2, 3),
    }


@pytest.mark.parametrize("kept", get_args(Kept))
def test_names_shapes_and_types_round_trip(kept: Kept, tmp_path: Path) -> None:
    weights = some_weights()
    save_weights(weights, tmp_path, kept)
    loaded = load_weights(tmp_path)
    assert {name: (t.shape, t.dtype) for name, t in loaded.items()} == {
        name: (t.shape, t.dtype) for name, t in weights.items()
    }
    assert torch.equal(loaded["numbers"], weights["numbers"])


def test_full_precision_round_trip_is_exact(tmp_path: Path) -> None:
    weights = some_weights()
    save_weights(weights, tmp_path)
    assert all(torch.equal(one, weights[name]) for name, one in load_weights(tmp_path).items())


def test_eight_bit_weights_differ_by_at_most_half_a_step(tmp_path: Path) -> None:
    weights = some_weights()
    save_weights(weights, tmp_path, "int8")
    loaded = load_weights(tmp_path)
    step = weights["matrix"].abs().amax(dim=1, keepdim=True) / 127
    assert ((loaded["matrix"] - weights["matrix"]).abs() <= 0.5001 * step).all()
    assert (loaded["matrix"][2] == 0).all()
    for exact in ("short", "bias"):
        assert torch.equal(loaded[exact], weights[exact])


def test_packing_again_changes_nothing(tmp_path: Path) -> None:
    save_weights(some_weights(), tmp_path, "int8")
    once = load_weights(tmp_path)
    save_weights(once, tmp_path, "int8")
    for name, tensor in load_weights(tmp_path).items():
        torch.testing.assert_close(tensor, once[name])


def test_an_eight_bit_matrix_takes_a_quarter_of_the_space(tmp_path: Path) -> None:
    sizes = []
    for kept in get_args(Kept):
        save_weights({"matrix": torch.randn(200, 400)}, tmp_path, kept)
        sizes.append((tmp_path / FILE).stat().st_size)
    full, half, eighth = sizes
    assert half < 0.51 * full
    assert eighth < 0.26 * full


def damage(folder: Path, **changes: Tensor | None) -> None:
    """Replace tensors of a packed file; None: leave it out. `__` stands for the colon."""
    save_weights({"matrix": torch.randn(5, 64)}, folder, "int8")
    stored = load_file(folder / FILE)
    for name, tensor in changes.items():
        key = name.replace("__", ":")
        stored.pop(key, None)
        if tensor is not None:
            stored[key] = tensor
    save_file(stored, folder / FILE)


def test_scales_must_match_their_weights(tmp_path: Path) -> None:
    expected = "expected int8 with one scale per row"
    damage(tmp_path, matrix__scale=torch.ones(4))
    with pytest.raises(UsageError, match=rf"matrix is .*\[5, 64\] with scales \[4\], {expected}"):
        load_weights(tmp_path)
    damage(tmp_path, matrix__scale=None)
    with pytest.raises(UsageError, match=rf"matrix is .* with scales none, {expected}"):
        load_weights(tmp_path)
    damage(tmp_path, matrix=torch.ones(5, 64).half())
    with pytest.raises(UsageError, match=rf"matrix is torch.float16 .*{expected}"):
        load_weights(tmp_path)
    damage(tmp_path, matrix=None)
    with pytest.raises(UsageError, match="matrix:scale belongs to no weights"):
        load_weights(tmp_path)


def test_unreadable_weights_are_errors_with_their_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the weights in .*model\.safetensors"):
        load_weights(tmp_path)
    save_weights(some_weights(), tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"cannot read the weights in .*model\.safetensors"):
        load_weights(tmp_path)
