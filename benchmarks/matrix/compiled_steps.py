"""Training steps by torch.compile whose products are a library's, or templates of TorchInductor.

Equal parts of a network share a compilation: the layers of GPT-2, the bottlenecks of ResNet-50, of which there are
eight kinds. GPT-2's last product and its loss are one function. The optimizers, ResNet-50's first convolution and its
classifier run eagerly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networks
import torch
import torch._inductor.config
import vision
from forms import Form
from steps import Step, autocast_step
from torch.nn import functional

import gpushare.triton

RECOMPILATIONS_MAX = 64  # of one function's code: eight kinds of a bottleneck in three forms
# Of the forms of a product, those with blocks of 64 or 128 at 64 of the inner dimension: four instead of twenty.
SHORT_SEARCH = {'test_configs.autotune_choice_desc_regex': r'BLOCK_K=64, BLOCK_M=(64|128), BLOCK_N=(64|128)\b'}
SEARCHES: dict[str, dict[str, Any]] = {'short': SHORT_SEARCH, 'full': {}}
# services.py runs with torch.use_deterministic_algorithms. From PyTorch 2.10 on TorchInductor then times no form of a
# product and takes the first: GPT-2's step took 18.6 ms with templates, in a process without it 13.7 ms. A step still
# has one compilation, so that its instances give the same bits.
TIMED = {'deterministic': False}

Options = dict[str, Any] | None  # of torch.compile


def gpt2(options: Options) -> Step:
    """The matrix's GPT-2 small: 8 sequences of 512 tokens."""
    net = networks.Gpt2(512).cuda()
    tokens = torch.randint(0, 50257, (8, 513), device='cuda')
    for layer in net.layers:
        layer.compile(dynamic=False, options=options)

    @torch.compile(dynamic=False, options=options)
    def of_last(x: Any, expected: Any) -> Any:
        logits = functional.linear(net.norm(x), net.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), expected.flatten())

    def loss() -> Any:
        return of_last(net.layers(net.tokens(tokens[:, :-1]) + net.positions.weight), tokens[:, 1:])

    return autocast_step(net, loss)


def resnet50(options: Options) -> Step:
    """The matrix's ResNet-50: 32 images."""
    step = vision.resnet50_b32()
    for layer in (step.net.layer1, step.net.layer2, step.net.layer3, step.net.layer4):
        for bottleneck in layer:
            bottleneck.compile(dynamic=False, options=options)
    return step


STEPS: dict[str, Callable[[Options], Step]] = {'gpt2': gpt2, 'resnet50': resnet50}


def made(step: str, form: Form, search: str) -> Step:
    """A new instance of the step in the form. Instances of a form have the same weights and share its compilation."""
    gpushare.triton.enable(twins=True)
    torch._dynamo.config.recompile_limit = RECOMPILATIONS_MAX
    torch.manual_seed(11)
    timed = {name: value for name, value in TIMED.items() if hasattr(torch._inductor.config, name)}
    templates = {**gpushare.triton.gemm_templates(), **SEARCHES[search]} if form.templates else {}
    return STEPS[step]({**timed, **templates} or None)


def kernels_us(step: Callable[[], Any], runs: int = 2) -> list[tuple[str, float]]:
    """Names and times of the kernels of some runs, by PyTorch's profiler. Different codes may share a name."""
    step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(runs):
            step()
        torch.cuda.synchronize()
    return [(event.name, event.device_time) for event in profile.events()
            if event.device_type == torch.autograd.DeviceType.CUDA and event.device_time > 0]
