"""What networks.py and vision.py share: the type of a service, and a training step that records its losses.

A service is (function, input): the function takes the input on the GPU and gives a tensor, without gradients.
A step is a training step with autograd and an optimizer that keeps its own losses on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Service = tuple[Callable[[Any], Any], Any]
LOSSES_MAX = 8192  # of a step; later losses overwrite the last one


class Step:
    """One training step on a fixed batch. It writes its loss into `losses` and counts itself, both on the GPU."""

    def __init__(self, net: Any, optimizer: Any, loss: Callable[[], Any]) -> None:
        self.net, self.optimizer, self.loss = net, optimizer, loss
        self.losses = torch.zeros(LOSSES_MAX, device='cuda')
        self.count = torch.zeros((), dtype=torch.int64, device='cuda')

    def __call__(self) -> Any:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        place = self.count.clamp(max=LOSSES_MAX - 1).reshape(1)
        self.losses.scatter_(0, place, loss.detach().float().reshape(1))
        self.count += 1
        return loss.detach()

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.net, self.optimizer, self.losses, self.count)


def autocast_step(net: Any, loss: Callable[[], Any], rate: float = 1e-4) -> Step:
    """A step in bf16 autocast with an Adam that can be captured."""
    def call() -> Any:
        with torch.autocast('cuda', dtype=torch.bfloat16, cache_enabled=False):
            return loss()

    return Step(net, torch.optim.Adam(net.parameters(), lr=rate, capturable=True), call)
