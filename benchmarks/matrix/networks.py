"""Services (LC) and training steps (BE) that people run, with random weights, and single calls (BE).

Transformers and plain layers are here, convolutional networks in vision.py, what both share in steps.py.

A service is (function, input): the function takes the input on the GPU and gives a tensor, without gradients.
A step is a training step with autograd and an optimizer that keeps its own losses on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import vision
from steps import LOSSES_MAX, Service, Step, autocast_step
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        # Its backward pass has a deterministic form.
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer layer: normalised after each part as in BERT, or before it as in GPT-2."""

    def __init__(self, width: int, heads: int, causal: bool, norm_first: bool) -> None:
        super().__init__()
        self.attention, self.norm_first = Attention(width, heads, causal), norm_first
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        if self.norm_first:
            x = x + self.attention(self.first(x))
            return x + self.mlp(self.second(x))
        x = self.first(x + self.attention(x))
        return self.second(x + self.mlp(x))


class Bert(nn.Module):
    """BERT-base: 12 layers of 768, 12 heads."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(30522, 768), nn.Embedding(length, 768)
        self.norm = nn.LayerNorm(768)
        self.layers = nn.Sequential(*(Block(768, 12, causal=False, norm_first=False) for _ in range(12)))

    def forward(self, tokens: Any) -> Any:
        return self.layers(self.norm(self.tokens(tokens) + self.positions.weight))


def bert_b1() -> Service:
    net = Bert(128).cuda().half().eval().requires_grad_(False)
    return net, torch.randint(0, 30522, (1, 128), device='cuda')


class DecodeLayer(nn.Module):
    """A layer of an 8B decoder for one new token: 4096 wide, 32 heads over 8 of keys and values, 14336 inside."""

    def __init__(self, batch: int, context: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(4096, 4096 + 2 * 1024, bias=False), nn.Linear(4096, 4096, bias=False)
        self.gate_up, self.down = nn.Linear(4096, 2 * 14336, bias=False), nn.Linear(14336, 4096, bias=False)
        self.first, self.second = nn.RMSNorm(4096), nn.RMSNorm(4096)
        self.register_buffer('keys', torch.randn(batch, 8, context, 128))
        self.register_buffer('values', torch.randn(batch, 8, context, 128))

    def forward(self, x: Any) -> Any:
        batch = x.shape[0]
        q, k, v = self.qkv(self.first(x)).split((4096, 1024, 1024), dim=-1)
        self.keys[:, :, -1] = k.view(batch, 8, 128)
        self.values[:, :, -1] = v.view(batch, 8, 128)
        # The four heads that share keys and values are four rows of one query.
        mixed = functional.scaled_dot_product_attention(q.view(batch, 8, 4, 128), self.keys, self.values)
        x = x + self.out(mixed.reshape(batch, 4096))
        gate, up = self.gate_up(self.second(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)


DECODE_LAYERS = 6  # of the 32: one more only repeats them
PREFILL_LAYERS = 4


def _decode(batch: int) -> Service:
    with torch.device('cuda'):  # random weights of this size take the CPU ten seconds
        net = nn.Sequential(*(DecodeLayer(batch, 1024) for _ in range(DECODE_LAYERS)))
    return net.half().eval().requires_grad_(False), torch.randn(batch, 4096, device='cuda').half()


def decode_b1() -> Service:
    return _decode(1)


def decode_b16() -> Service:
    return _decode(16)


class PrefillLayer(nn.Module):
    """A layer of the same decoder for the tokens of a prompt, with causal attention."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(4096, 4096 + 2 * 1024, bias=False), nn.Linear(4096, 4096, bias=False)
        self.gate_up, self.down = nn.Linear(4096, 2 * 14336, bias=False), nn.Linear(14336, 4096, bias=False)
        self.first, self.second = nn.RMSNorm(4096), nn.RMSNorm(4096)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.first(x)).split((4096, 1024, 1024), dim=-1)
        q = q.view(batch, length, 32, 128).transpose(1, 2)
        # Each head of keys and values serves four of the queries.
        k, v = (part.view(batch, length, 8, 128).transpose(1, 2).repeat_interleave(4, dim=1) for part in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, 4096))
        gate, up = self.gate_up(self.second(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)


def prefill_512() -> Service:
    with torch.device('cuda'):
        net = nn.Sequential(*(PrefillLayer() for _ in range(PREFILL_LAYERS)))
    net = net.half().eval().requires_grad_(False)
    return net, torch.randn(1, 512, 4096, device='cuda').half()


SERVICES: dict[str, Callable[[], Service]] = {
    **vision.SERVICES, 'bert_b1': bert_b1, 'decode_b1': decode_b1, 'decode_b16': decode_b16,
    'prefill_512': prefill_512}


def _mlp(batch: int) -> Step:
    """Three fp16 linear layers of 4096 with SGD: few long kernels, most of them of cuBLAS."""
    net = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                        nn.Linear(4096, 4096)).cuda().half()
    x, y = torch.randn(batch, 4096, device='cuda').half(), torch.randn(batch, 4096, device='cuda').half()
    return Step(net, torch.optim.SGD(net.parameters(), lr=1e-2), lambda: functional.mse_loss(net(x), y))


def mlp_small() -> Step:
    return _mlp(1792)


def mlp_large() -> Step:
    return _mlp(6144)


class Gpt2(nn.Module):
    """GPT-2 small: 12 layers of 768, 12 heads, tied embeddings, no dropout, 50,257 tokens padded to 50,304."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50304, 768), nn.Embedding(length, 768)
        self.layers = nn.Sequential(*(Block(768, 12, causal=True, norm_first=True) for _ in range(12)))
        self.norm = nn.LayerNorm(768)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, tokens: Any) -> Any:
        x = self.layers(self.tokens(tokens) + self.positions.weight)
        return functional.linear(self.norm(x), self.tokens.weight)


def gpt2() -> Step:
    net = Gpt2(512).cuda()
    tokens = torch.randint(0, 50257, (8, 513), device='cuda')

    def loss() -> Any:
        return functional.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return autocast_step(net, loss)


class Call:
    """One product of fp16 matrices: a single kernel, which no cut makes shorter. Its "losses" are an element each."""

    def __init__(self, size: int) -> None:
        self.left, self.right = (torch.randn(size, size, device='cuda').half() for _ in range(2))
        self.product = torch.empty_like(self.left)
        self.losses = torch.zeros(LOSSES_MAX, device='cuda')
        self.count = torch.zeros((), dtype=torch.int64, device='cuda')

    def __call__(self) -> Any:
        torch.mm(self.left, self.right, out=self.product)
        place = self.count.clamp(max=LOSSES_MAX - 1).reshape(1)
        self.losses.scatter_(0, place, self.product[-1, -1:].float())
        self.count += 1
        return self.product

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.product, self.losses, self.count)


def call_5ms() -> Call:
    return Call(11776)


def call_20ms() -> Call:
    return Call(18688)


STEPS: dict[str, Callable[[], Step | Call]] = {
    **vision.STEPS, 'mlp_small': mlp_small, 'mlp_large': mlp_large, 'gpt2': gpt2,
    'call_5ms': call_5ms, 'call_20ms': call_20ms}
