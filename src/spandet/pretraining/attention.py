"""Attention in full precision inside arithmetic in half precision, on a CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

_NAME = "spandet-full-precision"


def widen_attention(model: Any) -> None:
    """Let an encoder compute its attention in fp32, whatever the rest is computed in.

    On a CPU, torch's attention needs several times as long to go backward in bf16 as in fp32, which
    is a fifth of a training step. Encoders with an attention of their own are left as they are.
    """
    if model.config._attn_implementation == "sdpa":  # noqa: SLF001 (transformers has no other name)
        AttentionInterface.register(_NAME, _attend)
        model.set_attn_implementation(_NAME)


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    with torch.autocast(query.device.type, enabled=False):
        return sdpa_attention_forward(
            module, query.float(), key.float(), value.float(), mask, **options
        )
