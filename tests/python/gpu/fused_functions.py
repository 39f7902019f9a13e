"""Functions of which kernels make pairs for fused twins: large enough to fill a GPU alone.

    for case in pair_cases(): call = case.prepare(); call()       # compiled, with inputs of its own
    case = network_case('gpt2')                                   # the forward pass of a network

record_launches.py records one call of each behind its compilation, so that the candidates of autotuning are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn

# As gpushare.triton.gemm_templates() gives them: a product of cuBLAS has no PTX to fuse.
TEMPLATES = {'options': {'max_autotune_gemm': True, 'max_autotune_gemm_backends': 'TRITON',
                         'max_autotune_conv_backends': 'TRITON'}}
PRODUCTS = {'aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm'}
BLOCKS = 4  # of a network: all have the same shapes, so that the share of nodes is that of more


@dataclasses.dataclass(frozen=True)
class FusedCase:
    """What compiles a function and returns a call of it."""

    name: str
    prepare: Callable[[], Callable[[], Any]]


def _compiled(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]],
              options: dict[str, Any]) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        torch.manual_seed(40)
        inputs = make()
        compiled = torch.compile(function, dynamic=False, **options)

        def call() -> Any:
            with torch.no_grad():
                return compiled(*inputs)
        return call
    return prepare


def library_products(call: Callable[[], Any]) -> int:
    """How many products of one call are the library's: compiled code reaches those through ATen, and templates not."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return sum(event.count for event in profile.key_averages() if event.key in PRODUCTS)


def _random(dtype: torch.dtype, *shape: int) -> Any:
    return torch.randn(*shape, device='cuda').to(dtype)


def pair_cases() -> list[FusedCase]:
    """GEMMs and attention, then kernels that memory bounds, then kernels that arithmetic bounds."""
    return [*_tensor_cases(), *_memory_cases(), *_compute_cases()]


def _tensor_cases() -> list[FusedCase]:
    from torch.nn.attention.flex_attention import flex_attention

    half, brain = torch.float16, torch.bfloat16
    products: list[tuple[str, Callable[..., Any], torch.dtype, tuple[int, int, int]]] = [
        ('mm', torch.mm, brain, (4096, 4096, 2048)),
        ('mm_relu', lambda a, b: fn.relu(a @ b), half, (8192, 2048, 2048)),
        ('mm_gelu_bias', lambda a, b: fn.gelu(a @ b + 1), brain, (4096, 3072, 768)),
    ]
    found = [FusedCase(f'{name} {dtype} {m}x{n}x{k}', _compiled(
        function, lambda dtype=dtype, m=m, n=n, k=k: (_random(dtype, m, k), _random(dtype, k, n)), TEMPLATES))
        for name, function, dtype, (m, n, k) in products]

    def causal(score: Any, _batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return torch.where(query >= key, score, -float('inf'))

    def inputs() -> tuple[Any, ...]:
        return tuple(_random(half, 4, 16, 2048, 64) for _ in range(3))
    return [*found, FusedCase('attention', _compiled(flex_attention, inputs, {})),
            FusedCase('causal attention', _compiled(
                lambda q, k, v: flex_attention(q, k, v, score_mod=causal), inputs, {}))]


def _memory_cases() -> list[FusedCase]:
    def adam(weight: Any, gradient: Any, mean: Any, square: Any) -> Any:
        mean, square = mean * 0.9 + gradient * 0.1, square * 0.999 + gradient * gradient * 0.001
        return weight - 1e-3 * mean / (square.sqrt() + 1e-8), mean, square

    def rows() -> tuple[Any, ...]:
        return (_random(torch.bfloat16, 8192, 4096),)

    def weights() -> tuple[Any, ...]:
        return (*(_random(torch.float32, 4096, 2048) for _ in range(3)),
                _random(torch.float32, 4096, 2048).square())
    return [FusedCase('layer_norm', _compiled(lambda x: fn.layer_norm(x, x.shape[-1:]), rows, {})),
            FusedCase('softmax', _compiled(lambda x: fn.softmax(x, -1), rows, {})),
            FusedCase('residual_gelu', _compiled(lambda x: fn.gelu(x) + x * 0.5, rows, {})),
            FusedCase('adam', _compiled(adam, weights, {}))]


def _compute_cases() -> list[FusedCase]:
    def waves(x: Any) -> Any:
        for i in range(1, 9):
            x = torch.sin(x * i) + torch.atan2(x, 1 + x * x)
        return x

    def powers(x: Any) -> Any:
        for _ in range(4):
            x = x.abs().pow(1.7) + torch.erf(x)
        return x

    def numbers() -> tuple[Any, ...]:
        return (_random(torch.float32, 2048, 4096),)
    return [FusedCase('waves', _compiled(waves, numbers, {})), FusedCase('powers', _compiled(powers, numbers, {}))]


class Block(torch.nn.Module):
    """A transformer's block, as GPT-2 and BERT have it."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.before, self.between = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.projection = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = fn.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.projection(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(fn.gelu(self.up(self.between(x)), approximate='tanh'))


class Network(torch.nn.Module):
    """Blocks behind an embedding, with a head where the network has one."""

    def __init__(self, width: int, heads: int, words: int, causal: bool) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, causal) for _ in range(BLOCKS))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, words, bias=False) if causal else None

    def forward(self, words: Any) -> Any:
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return x if self.head is None else self.head(x[:, -1])  # the next word, as a service asks for


# Width, heads, words, causal, batch and length of: GPT-2 small; BERT large. The batch is large, so that a norm takes
# some 10 us: shorter kernels are not worth a fused launch.
NETWORKS = {'gpt2': (768, 12, 50304, True, 32, 512), 'bert': (1024, 16, 30528, False, 32, 384)}


def network_case(name: str) -> FusedCase:
    width, heads, words, causal, batch, length = NETWORKS[name]

    def make() -> tuple[Any, ...]:
        return (torch.randint(words, (batch, length), device='cuda'),)

    def prepare() -> Callable[[], Any]:
        torch.manual_seed(40)
        network = Network(width, heads, words, causal).cuda().to(torch.bfloat16).eval()
        return _compiled(network, make, TEMPLATES)()
    return FusedCase(name, prepare)
