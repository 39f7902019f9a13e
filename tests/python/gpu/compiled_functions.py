"""Functions of which torch.compile makes many different kernels: what record_launches.py records.

    for case in cases(): case.run()    # compiles it, and calls it once on tensors of its own
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn

Function = Callable[..., Any]
SHAPES = ((512, 1000), (257, 4096))
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
TEMPLATES = {'mode': 'max-autotune-no-cudagraphs'}


@dataclasses.dataclass(frozen=True)
class Case:
    """A function, what makes its inputs, and options of torch.compile."""

    name: str
    function: Function
    inputs: Callable[[], tuple[Any, ...]]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    backward: bool = False

    def run(self) -> None:
        torch.manual_seed(40)
        inputs = self.inputs()
        result = torch.compile(self.function, dynamic=False, **self.options)(*inputs)
        if self.backward:
            result.float().sum().backward()
        torch.cuda.synchronize()


def rotary(x: Any) -> Any:
    first, second = x.chunk(2, -1)
    angles = torch.arange(first.shape[-1], device=x.device).float() / 64
    return torch.cat([first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], -1)


POINTWISE: dict[str, Function] = {
    'gelu': fn.gelu,
    'silu_gate': lambda x: fn.silu(x) * x.roll(1, 0),
    'trigonometry': lambda x: torch.sin(x) + torch.cos(2 * x) * torch.atan2(x, 1 + x * x),
    'exp_log': lambda x: torch.log1p(torch.exp(-x.abs())) + torch.erf(x),
    'sigmoid_tanh': lambda x: torch.sigmoid(x) * torch.tanh(x),
    'clamp_where': lambda x: torch.where(x > 0.1, x.clamp(-1, 1), x * x),
    'power': lambda x: x.abs().pow(1.7) + torch.rsqrt(x.abs() + 1),
    'rounding': lambda x: x.round() + x.floor() - x.ceil() + torch.fmod(x, 0.3),
    'bits': lambda x: (x * 1000).to(torch.int32).bitwise_xor(0x5A5A) >> 3,
    'integers': lambda x: (x * 1000).to(torch.int64) // 7 % 13,
    'casts': lambda x: x.to(torch.float64).sqrt().to(torch.float16).to(torch.int8),
    'transpose_add': lambda x: x.t().contiguous() + 1,
    'cat': lambda x: torch.cat([x, x.flip(0), x * 2], 1),
    'stack': lambda x: torch.stack([x, x + 1], -1),
    'pad': lambda x: fn.pad(x, (3, 5, 2, 1), value=0.5),
    'roll_flip': lambda x: x.roll((3, 7), (0, 1)).flip(1),
    'strides': lambda x: x[::2, 1::3] * 3,
    'rotary': rotary,
    'mask': lambda x: x.masked_fill(torch.ones_like(x, dtype=torch.bool).tril(), -1.0),
    'dropout': lambda x: fn.dropout(x, 0.3),
    'random': lambda x: x + torch.rand_like(x),
    'gather_rows': lambda x: x[torch.arange(x.shape[0], device=x.device) * 7 % x.shape[0]],
    'scatter_ones': lambda x: torch.zeros(64, dtype=torch.int64, device=x.device).scatter_add(
        0, (x.flatten()[:65536] * 1e3).to(torch.int64) % 64, torch.ones(65536, dtype=torch.int64, device=x.device)),
}

REDUCTIONS: dict[str, Function] = {
    'softmax': lambda x: fn.softmax(x, -1),
    'softmax_outer': lambda x: fn.softmax(x, 0),
    'log_softmax': lambda x: fn.log_softmax(x, -1),
    'layer_norm': lambda x: fn.layer_norm(x, x.shape[-1:]),
    'rms_norm': lambda x: x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6),
    'residual_norm': lambda x: fn.layer_norm(x + x.flip(0), x.shape[-1:]) * 2,
    'var_mean': lambda x: torch.var_mean(x, 0),
    'sum_inner': lambda x: (x * x).sum(-1),
    'sum_outer': lambda x: (x * x).sum(0),
    'sum_all': lambda x: (x * x).sum(),
    'maximum': lambda x: x.max(-1),
    'argmin_outer': lambda x: x.argmin(0),
    'product': lambda x: x.prod(-1),
    'any_all': lambda x: ((x > 2).any(-1), (x > -3).all(0)),
    'cumsum': lambda x: x.cumsum(-1),
    'cumprod': lambda x: (x / 2).cumprod(-1),
    'logsumexp': lambda x: x.logsumexp(-1),
    'norm': lambda x: x.norm(dim=-1),
    'cross_entropy': lambda x: fn.cross_entropy(x.float(), torch.arange(x.shape[0], device=x.device) % x.shape[1]),
    'kl': lambda x: fn.kl_div(fn.log_softmax(x, -1), fn.softmax(x.flip(0), -1), reduction='batchmean'),
    'standardise': lambda x: (x - x.mean(0)) / (x.std(0) + 1e-3),
    'quantise': lambda x: (x / (x.abs().amax(-1, keepdim=True) / 127)).round().to(torch.int8),
    'sort': lambda x: x[:, :128].sort(-1),
    'histogram': lambda x: (x.flatten()[:, None] > torch.linspace(-2, 2, 8, device=x.device)).sum(0),
}

IMAGES: dict[str, Function] = {
    'max_pool': lambda x: fn.max_pool2d(x, 3, 2, 1),
    'avg_pool': lambda x: fn.avg_pool2d(x, 3, 1, 1),
    'adaptive_pool': lambda x: fn.adaptive_avg_pool2d(x, 7),
    'nearest': lambda x: fn.interpolate(x, scale_factor=2),
    'bilinear': lambda x: fn.interpolate(x, scale_factor=1.5, mode='bilinear'),
    'pixel_shuffle': lambda x: fn.pixel_shuffle(x, 2),
    'unfold': lambda x: fn.unfold(x, 3),
    'group_norm': lambda x: fn.silu(fn.group_norm(x, 4)),
    'batch_norm': lambda x: fn.relu(fn.batch_norm(x, None, None, training=True)),
    'instance_norm': fn.instance_norm,
    'channels_last': lambda x: x.to(memory_format=torch.channels_last) + 1,
}

PRODUCTS: dict[str, Function] = {
    'mm': torch.mm,
    'mm_relu': lambda a, b: fn.relu(a @ b),
    'mm_gelu_bias': lambda a, b: fn.gelu(a @ b + 1),
    'mm_transposed': lambda a, b: a @ b.t().contiguous().t(),
}


def cases() -> list[Case]:
    """In an order in which every part of a few has all kinds."""
    return [*_elementwise(), *_products(), *_attention()]


def _elementwise() -> list[Case]:
    found = []
    for (name, function), dtype, shape in itertools.product((POINTWISE | REDUCTIONS).items(), DTYPES, SHAPES):
        found.append(Case(f'{name} {dtype} {shape}', function, _made(shape, dtype)))
    for (name, function), dtype in itertools.product(IMAGES.items(), DTYPES):
        found.append(Case(f'{name} {dtype}', function, _made((8, 16, 56, 56), dtype)))
    for name in ('gelu', 'sigmoid_tanh', 'softmax', 'log_softmax', 'layer_norm', 'residual_norm', 'rms_norm'):
        for dtype in DTYPES:
            found.append(Case(f'{name} backward {dtype}', (POINTWISE | REDUCTIONS)[name],
                              _made(SHAPES[0], dtype, True), backward=True))
    return found


def _products() -> list[Case]:
    found = []
    for (name, function), dtype in itertools.product(PRODUCTS.items(), DTYPES):
        def made(dtype: torch.dtype = dtype) -> tuple[Any, ...]:
            return (torch.randn(640, 512, device='cuda').to(dtype), torch.randn(512, 768, device='cuda').to(dtype))
        found.append(Case(f'{name} {dtype}', function, made, TEMPLATES))
    for dtype in DTYPES[1:]:
        def batches(dtype: torch.dtype = dtype) -> tuple[Any, ...]:
            return tuple(torch.randn(16, 256, 256, device='cuda').to(dtype) for _ in range(2))

        def images(dtype: torch.dtype = dtype) -> tuple[Any, ...]:
            return (torch.randn(8, 32, 28, 28, device='cuda').to(dtype),
                    torch.randn(64, 32, 3, 3, device='cuda').to(dtype))
        found += [Case(f'bmm {dtype}', torch.bmm, batches, TEMPLATES),
                  Case(f'conv {dtype}', lambda x, w: fn.relu(fn.conv2d(x, w, padding=1)), images, TEMPLATES)]
    return found


def _attention() -> list[Case]:
    from torch.nn.attention.flex_attention import flex_attention

    def causal(score: Any, _batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return torch.where(query >= key, score, -float('inf'))

    found = []
    for dtype, head in itertools.product(DTYPES[1:], (64, 128)):
        def made(dtype: torch.dtype = dtype, head: int = head) -> tuple[Any, ...]:
            return tuple(torch.randn(2, 8, 512, head, device='cuda', dtype=dtype, requires_grad=True)
                         for _ in range(3))
        found += [Case(f'attention {dtype} {head}', flex_attention, made, backward=True),
                  Case(f'causal attention {dtype} {head}',
                       lambda q, k, v: flex_attention(q, k, v, score_mod=causal), made, backward=True)]
    return found


def _made(shape: tuple[int, ...], dtype: torch.dtype, gradient: bool = False) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.randn(shape, device='cuda').to(dtype).requires_grad_(gradient),)
