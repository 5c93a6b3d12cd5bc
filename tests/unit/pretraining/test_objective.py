from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from spandet.encoding.transformer import Transformer
from spandet.pretraining.corpus import Block
from spandet.pretraining.loop import build_pretraining_engine
from spandet.pretraining.objective import MaskedPieces, TextStatistics, use_fp32_attention
from spandet.seeding import generator
from spandet.training.optimizer import build_layered_optimizer
from spandet.training.step import build_accelerator
from support.pretraining_toys import tiny_encoder, tiny_settings


@pytest.fixture
def encoder(tmp_path: Path) -> Transformer:
    return tiny_encoder(tmp_path / "encoder")


def objective(encoder: Transformer, **values: Any) -> MaskedPieces:
    size = len(encoder.tokenizer)
    special = np.zeros(size, dtype=bool)
    special[encoder.tokenizer.all_special_ids] = True
    counts = np.arange(size) * (np.arange(size) % 3 > 0)
    mask = encoder.tokenizer.mask_token_id
    statistics = TextStatistics(counts, counts > 0, special, mask)
    made = MaskedPieces(encoder.model, statistics, tiny_settings(**values))
    torch.manual_seed(3)
    torch.nn.init.normal_(made.dense.weight, std=0.3)
    torch.nn.init.normal_(made.norm.weight)
    return made.eval()


def table_of(encoder: Transformer) -> Tensor:
    model: Any = encoder.model
    table: Tensor = model.embeddings.word_embeddings.weight
    return table


def blocks(encoder: Transformer, count: int) -> list[Block]:
    """Of pieces that occur."""
    size = len(encoder.tokenizer)
    known = [piece for piece in range(6, size) if piece % 3]
    drawn = torch.randint(len(known), (count, 16), generator=generator(5)).numpy()
    return [Block(np.array(known)[row], np.ones(16, dtype=bool)) for row in drawn]


@pytest.mark.parametrize("vocabulary", ["all", "corpus"])
@torch.no_grad()
def test_the_loss_is_that_of_the_plain_computation(encoder: Transformer, vocabulary: str) -> None:
    """Logits of all pieces at all places, of which those of masked places are selected."""
    made = objective(encoder, vocabulary=vocabulary)
    rows = blocks(encoder, 5)
    batch = made.prepare(rows, [generator(0, n) for n in range(5)])
    states = encoder.model(input_ids=batch.ids).last_hidden_state
    hidden = made.norm(states + F.gelu(made.dense(states)))
    table = table_of(encoder)
    every = torch.full((len(table),), -torch.inf)
    if vocabulary == "all":
        every = made.bias
    else:
        every[np.flatnonzero(np.arange(len(table)) % 3)] = made.bias
    logits = hidden @ table.T + every
    original = torch.tensor(np.stack([row.ids for row in rows]))
    losses = -logits.log_softmax(-1).gather(-1, original[..., None]).flatten()

    loss = made(batch)["masked"]
    measured = made.measure(batch)

    assert float(loss.count) == len(batch.places) == 5 * 2
    assert float(loss.total) == pytest.approx(float(losses[batch.places].sum()), rel=1e-5)
    right = (logits.argmax(-1) == original).flatten()[batch.places].sum()
    assert float(measured["loss"].total) == pytest.approx(float(loss.total))
    assert float(measured["accuracy"].total) == float(right)


@torch.no_grad()
def test_a_block_alone_and_in_a_batch_has_the_same_loss(encoder: Transformer) -> None:
    made = objective(encoder, whole_words=True)
    rows, numbers = blocks(encoder, 4), range(4)
    together = made(made.prepare(rows, [generator(0, n) for n in numbers]))["masked"]
    alone = [
        made(made.prepare([row], [generator(0, n)]))["masked"]
        for row, n in zip(rows, numbers, strict=True)
    ]

    assert float(together.count) == sum(float(one.count) for one in alone)
    assert float(together.total) == pytest.approx(sum(float(one.total) for one in alone), rel=1e-5)


def test_the_initial_predictions_are_the_frequencies_of_pieces(encoder: Transformer) -> None:
    made = objective(encoder, vocabulary="all")
    torch.nn.init.zeros_(made.norm.weight)
    batch = made.prepare(blocks(encoder, 1), [generator(0)])
    counts = np.arange(len(encoder.tokenizer)) * (np.arange(len(encoder.tokenizer)) % 3 > 0)

    probabilities = made.logits(batch)[0].softmax(-1).detach().numpy()

    assert probabilities == pytest.approx((counts + 1) / (counts + 1).sum(), rel=1e-4)


def test_tied_weights_stay_tied(encoder: Transformer) -> None:
    """One matrix gets the gradients of output and input, and is stored once."""
    settings = tiny_settings()
    made = objective(encoder)
    engine = build_pretraining_engine(made, settings, build_accelerator("fp32"))
    table = table_of(encoder)
    before = table.detach().clone()
    engine.begin_step(step=0, at=0.5)
    batch = made.prepare(blocks(encoder, 2), [generator(0, n) for n in range(2)])
    engine.backward(engine.loss(batch, counted=True, stop=False), share=1)
    engine.update()

    absent = [piece for piece in range(6, len(table)) if piece not in batch.ids]
    assert (table[absent] != before[absent]).any(dim=1).all()  # as outputs only
    assert made.encoder.get_input_embeddings().weight is table
    names = [name for name, one in made.named_parameters(remove_duplicate=False) if one is table]
    assert names == ["encoder.embeddings.word_embeddings.weight"]


def test_attention_in_full_precision_is_the_same_attention(encoder: Transformer) -> None:
    made = objective(encoder)
    ids = made.prepare(blocks(encoder, 2), [generator(0, n) for n in range(2)]).ids
    before = made.states(ids)

    use_fp32_attention(made.encoder)

    assert torch.equal(made.states(ids), before)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = made.states(ids)
    assert torch.allclose(near.float(), before, atol=0.1)


def test_lower_layers_learn_more_slowly(encoder: Transformer) -> None:
    made, settings = objective(encoder), tiny_settings().training()
    optimizer = build_layered_optimizer(made, made.encoder, settings, 0.5)

    rates = {
        parameter: group["peak_lr"]
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    assert len(rates) == len(list(made.parameters()))
    for name, parameter in made.named_parameters():
        wanted = 5e-3 if "embeddings" in name else 1e-2
        assert rates[parameter] == pytest.approx(wanted), name
    decayed = {p for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    assert decayed == {parameter for parameter in made.parameters() if parameter.ndim > 1}
