import pytest
import torch
from torch import Tensor, nn

from spandet.layers.dropout import Dropout, use_fast_dropout


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_drops_its_share_and_keeps_the_mean(share: float) -> None:
    torch.manual_seed(0)
    got = Dropout(share).train()(torch.ones(1000, 1001))
    assert (got == 0).float().mean().item() == pytest.approx(share, abs=0.002)
    assert got.mean().item() == pytest.approx(1, abs=0.01)
    assert got.unique().tolist() == pytest.approx([0, 1 / (1 - share)], rel=1e-3)


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(0)
    kept = Dropout(0.5).train()(torch.ones(400_001)) > 0
    for distance in range(1, 9):
        together = (kept[distance:] & kept[:-distance]).float().mean().item()
        assert together == pytest.approx(0.25, abs=0.005)


def test_dropped_items_have_no_gradient() -> None:
    items = torch.randn(3, 5, requires_grad=True)
    got = Dropout(0.5).train()(items)
    got.sum().backward()
    assert items.grad is not None
    torch.testing.assert_close(got, items.grad * items)
    assert set(items.grad.unique().tolist()) <= {0.0, 2.0}


def test_the_same_seed_drops_the_same() -> None:
    def dropped(seed: int) -> Tensor:
        torch.manual_seed(seed)
        got: Tensor = Dropout(0.5).train()(torch.ones(20, 9))
        return got

    assert torch.equal(dropped(7), dropped(7))
    assert not torch.equal(dropped(7), dropped(8))


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0, 3), (7,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_any_shape_and_precision(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    got = Dropout(0.5).train()(torch.ones(shape, dtype=dtype))
    assert got.shape == shape
    assert got.dtype == dtype


def test_identity_outside_training_and_zero_at_rate_one() -> None:
    items = torch.randn(4)
    assert torch.equal(Dropout(0.5).eval()(items), items)
    assert torch.equal(Dropout(0.0).train()(items), items)
    assert not Dropout(1.0).train()(items).any()


def test_every_nn_dropout_inside_a_model_is_replaced() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.1), nn.Dropout2d(0.2)))
    use_fast_dropout(model)
    inner = model[1]
    assert isinstance(inner, nn.Sequential)
    assert [type(part) for part in inner] == [Dropout, nn.Dropout2d]
    assert inner[0].p == 0.1
