"""A Llama-style decoder with random weights: RMSNorm, rotary positions, grouped heads, SwiGLU.

`Decoder.decode` is one token of each slot, `prefill` one prompt, both on static caches; `forward` is a batch of
sequences without a cache, for training.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import nn
from torch.nn import functional

ROTARY_BASE = 10000.0


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int  # of the MLP
    vocabulary: int = 32000

    @property
    def head(self) -> int:
        return self.width // self.heads


SHAPES = {
    'tiny': Shape(2, 64, 4, 2, 128, 256),  # for a test on a CPU
    '1b': Shape(22, 2048, 32, 4, 5632),  # 1.1 B parameters
    '8b': Shape(32, 4096, 32, 8, 14336),  # 7.2 B
}


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        wide = (shape.heads + 2 * shape.kv_heads) * shape.head
        self.qkv, self.out = nn.Linear(shape.width, wide, bias=False), nn.Linear(shape.width, shape.width, bias=False)
        self.gate_up = nn.Linear(shape.width, 2 * shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)
        self.first, self.second = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)

    def heads_of(self, x: Any, cos: Any, sin: Any) -> Any:
        """Queries, keys and values, each [..., heads, head]. cos and sin are [..., 1, head / 2]."""
        shape = self.shape
        mixed = self.qkv(self.first(x)).unflatten(-1, (-1, shape.head))
        turned, values = mixed.split((shape.heads + shape.kv_heads, shape.kv_heads), dim=-2)
        left, right = turned.chunk(2, dim=-1)
        turned = torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)
        queries, keys = turned.split((shape.heads, shape.kv_heads), dim=-2)
        return queries, keys, values

    def finished(self, x: Any, attended: Any) -> Any:
        """The layer's result from what its heads attended to."""
        x = x + self.out(attended)
        gate, up = self.gate_up(self.second(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)

    def decode(self, x: Any, turn: tuple[Any, Any], bias: Any, positions: Any, cache: tuple[Any, Any]) -> Any:
        """One token of each slot. x: [slots, width]; cache: keys and values, [slots, kv_heads, context, head]."""
        shape, batch = self.shape, x.shape[0]
        queries, *new = self.heads_of(x, *turn)
        place = positions.view(batch, 1, 1, 1).expand(batch, shape.kv_heads, 1, shape.head)
        for kept, fresh in zip(cache, new, strict=True):
            kept[:batch].scatter_(2, place, fresh.unsqueeze(2))
        keys, values = (kept[:batch].flatten(0, 1) for kept in cache)
        # The heads that share keys and values are rows of one product.
        grouped = queries.reshape(batch * shape.kv_heads, -1, shape.head)
        scores = torch.baddbmm(bias, grouped, keys.transpose(1, 2), alpha=shape.head ** -0.5)
        return self.finished(x, torch.bmm(scores.softmax(dim=-1), values).view(batch, shape.width))

    def sequence(self, x: Any, turn: tuple[Any, Any]) -> tuple[Any, Any, Any]:
        """Whole sequences with causal attention. x: [batch, length, width]. Also the keys and values."""
        shape = self.shape
        queries, keys, values = (part.transpose(1, 2) for part in self.heads_of(x, *turn))
        share = shape.heads // shape.kv_heads
        attended = functional.scaled_dot_product_attention(
            queries, keys.repeat_interleave(share, dim=1), values.repeat_interleave(share, dim=1), is_causal=True)
        return self.finished(x, attended.transpose(1, 2).flatten(2)), keys, values


class Decoder(nn.Module):
    def __init__(self, shape: Shape, context: int) -> None:
        super().__init__()
        self.shape, self.context = shape, context
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm, self.head = nn.RMSNorm(shape.width), nn.Linear(shape.width, shape.vocabulary, bias=False)
        rates = ROTARY_BASE ** -(torch.arange(0, shape.head, 2, dtype=torch.float32) / shape.head)
        angles = torch.arange(context, dtype=torch.float32)[:, None] * rates
        dtype = self.norm.weight.dtype
        self.register_buffer('cos', angles.cos().to(dtype)[:, None, :])
        self.register_buffer('sin', angles.sin().to(dtype)[:, None, :])

    def decode(self, given: Any, caches: list[tuple[Any, Any]]) -> Any:
        """The next token of each slot. given: the last tokens and their positions, [2, slots]."""
        tokens, positions = given
        x, turn = self.tokens(tokens), (self.cos[positions], self.sin[positions])
        seen = torch.arange(self.context, device=x.device) <= positions[:, None]
        bias = torch.zeros(seen.shape, dtype=x.dtype, device=x.device).masked_fill_(~seen, float('-inf'))
        bias = bias.repeat_interleave(self.shape.kv_heads, dim=0).unsqueeze(1)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer.decode(x, turn, bias, positions, cache)
        return self.head(self.norm(x)).argmax(dim=-1)

    def prefill(self, given: Any, caches: list[tuple[Any, Any]]) -> Any:
        """The first token behind a prompt. given: the prompt, padded, its length and its slot."""
        length = given.shape[0] - 2
        count, slot = given[length:length + 1], given[length + 1:]
        x, turn = self.tokens(given[:length])[None], (self.cos[:length], self.sin[:length])
        for layer, cache in zip(self.layers, caches, strict=True):
            x, *new = layer.sequence(x, turn)
            for kept, fresh in zip(cache, new, strict=True):
                kept[:, :, :length].index_copy_(0, slot, fresh)
        return self.head(self.norm(x[0].index_select(0, count - 1))).argmax(dim=-1)

    def forward(self, tokens: Any) -> Any:
        """Logits of sequences, [batch, length, vocabulary]."""
        length = tokens.shape[1]
        x, turn = self.tokens(tokens), (self.cos[:length], self.sin[:length])
        for layer in self.layers:
            x, _, _ = layer.sequence(x, turn)
        return self.head(self.norm(x))


def made(name: str, context: int, device: str, dtype: Any, seed: int = 7) -> Decoder:
    """A decoder with random weights, which are made on the device: a CPU takes tens of seconds for them."""
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            return Decoder(SHAPES[name], context).eval().requires_grad_(False)
    finally:
        torch.set_default_dtype(before)


def caches_of(model: Decoder, slots: int) -> list[tuple[Any, Any]]:
    """Keys and values of each layer, [slots, kv_heads, context, head]."""
    shape, like = model.shape, model.head.weight
    size = (slots, shape.kv_heads, model.context, shape.head)
    return [(like.new_zeros(size), like.new_zeros(size)) for _ in range(shape.layers)]
