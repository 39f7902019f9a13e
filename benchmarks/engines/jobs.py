"""BE jobs as people write them: LoRA fine-tuning, a compiled training step, batch inference, an eager training loop.

Jobs such as 'gpt2_twins' are a compiled step in one of the forms of ../matrix/forms.py, which are compared.

A job is a function of no arguments with `state`, what a step changes; `health` says what its results say. All but
`eager` can be captured.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import forms
import llama
import networks
import torch
from plan import EAGER
from steps import LOSSES_MAX, Step
from torch import nn
from torch.nn import functional

LORA_RANK, LORA_BATCH, LORA_LENGTH = 16, 4, 512
IMAGES, PATCHES, PATCH = 64, 197, 768  # a batch, tokens of an image, numbers of a patch


class Lora(nn.Module):
    """A frozen linear layer with a trained product of two thin ones beside it."""

    def __init__(self, frozen: nn.Linear, rank: int) -> None:
        super().__init__()
        weight = frozen.weight
        self.frozen = frozen
        self.thin = nn.Parameter(torch.randn(rank, weight.shape[1], device=weight.device, dtype=weight.dtype) / rank)
        self.wide = nn.Parameter(torch.zeros(weight.shape[0], rank, device=weight.device, dtype=weight.dtype))

    def forward(self, x: Any) -> Any:
        return self.frozen(x) + functional.linear(functional.linear(x, self.thin), self.wide)


class LoraStep(Step):
    """Its state is what it trains, and not the frozen weights."""

    @property
    def state(self) -> tuple[Any, ...]:
        trained = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        return (trained, self.optimizer, self.losses, self.count)


def lora(name: str = '1b', device: str = 'cuda') -> Step:
    """Fine-tuning of a 1.1 B decoder on 4 sequences of 512 tokens: adapters at the projections of its attention."""
    net = llama.made(name, LORA_LENGTH, device, torch.bfloat16, seed=11)
    for layer in net.layers:
        layer.qkv, layer.out = Lora(layer.qkv, LORA_RANK), Lora(layer.out, LORA_RANK)
    tokens = torch.randint(0, net.shape.vocabulary, (LORA_BATCH, LORA_LENGTH + 1), device=device)

    def loss() -> Any:
        return functional.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
    return LoraStep(net, torch.optim.AdamW(trained, lr=1e-4, capturable=True), loss)


def compiled(whole: bool) -> Step:
    """GPT-2 small of the matrix by torch.compile: as a whole, or its block, which compiles once for all twelve."""
    with contextlib.suppress(ModuleNotFoundError):  # a baseline runs without the library
        importlib.import_module('gpushare.triton').enable()
    torch.manual_seed(11)
    step = networks.gpt2()
    for module in [step.net] if whole else step.net.layers:
        module.compile()
    return step


def eager() -> Step:
    torch.manual_seed(11)
    return networks.gpt2()


class Images:
    """Batch inference of a ViT-L with random weights in fp16: 24 layers of 1024, 16 heads.

    Its "losses" are sums of its results: equal ones, as the images are the same.
    """

    def __init__(self) -> None:
        torch.manual_seed(11)
        with torch.device('cuda'):
            self.net = nn.Sequential(nn.Linear(PATCH, 1024),
                                     *(networks.Block(1024, 16, causal=False, norm_first=True) for _ in range(24)),
                                     nn.LayerNorm(1024)).half().eval().requires_grad_(False)
            self.head = nn.Linear(1024, 1000).half().requires_grad_(False)
        self.batch = torch.randn(IMAGES, PATCHES, PATCH, device='cuda').half()
        self.results = torch.zeros(IMAGES, 1000, device='cuda', dtype=torch.half)
        self.losses = torch.zeros(LOSSES_MAX, device='cuda')
        self.count = torch.zeros((), dtype=torch.int64, device='cuda')
        self()
        self.count.zero_()
        self._expected = self.results.clone()

    def __call__(self) -> Any:
        with torch.no_grad():
            self.results.copy_(self.head(self.net(self.batch)[:, 0]))
            place = self.count.clamp(max=LOSSES_MAX - 1).reshape(1)
            self.losses.scatter_(0, place, self.results.float().sum().reshape(1))
            self.count += 1
        return self.results

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.results, self.losses, self.count)

    def differing(self) -> int:
        """Numbers of the last results that are not those of the first, eager call."""
        return int((self.results.view(torch.int16) != self._expected.view(torch.int16)).sum().item())


def health(job: Any) -> dict[str, Any]:
    """What the job's results say of it; `right` is the judgement."""
    torch.cuda.synchronize()
    count = int(job.count.item())
    losses = job.losses[:min(count, LOSSES_MAX - 1)]
    found = {'steps': count, 'first_loss': round(losses[0].item(), 4) if count else None,
             'last_loss': round(losses[-1].item(), 4) if count else None,
             'right': bool(losses.isfinite().all().item())}
    if isinstance(job, Images):
        found['differ'] = job.differing()
        found['right'] = found['right'] and found['differ'] == 0
    return found


def formed(name: str, search: str) -> Step:
    """A step in a form, such as 'gpt2_twins'."""
    import compiled_steps  # it needs the library, which a baseline runs without
    step, form = forms.split(name)
    return compiled_steps.made(step, forms.chosen(form)[0], search)


def makers(compile_whole: bool) -> dict[str, Callable[[], Any]]:
    return {'lora': lora, 'gpt2c': lambda: compiled(compile_whole), 'vit': Images, 'eager': eager}


def made(name: str, compile_whole: bool = False, search: str = 'short') -> Any:
    """A new job."""
    return formed(name, search) if forms.split(name)[0] else makers(compile_whole)[name]()


def kernel_options(name: str) -> dict[str, Any]:
    """Of the job's registration: only a form with twins makes them."""
    return {'node_twins': forms.has_twins(name)}


CAPTURED = tuple(name for name in makers(False) if name not in EAGER)
