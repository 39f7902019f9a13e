"""Captures a function once for each place, when the library calls its capture callback.

Each capture has a memory pool of its own, which lives as long as PlaceCaptures: nothing else may use the memory that
a graph reads and writes. Where PyTorch has the setting, cuBLAS plans for the number of SMs of the place.

Threads: the one that registers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gpushare.torch._tensors import copy_tensors, own_workspaces


class PlaceCaptures:
    """The `capture` of a kernel: runs `function` in each place and copies its result into `outputs`.

    It holds the memory of the captures: keep it until the runtime is closed (Runtime.keep does).
    """

    def __init__(self, function: Callable[[], Any], outputs: Any) -> None:
        self._function = function
        self._outputs = outputs  # the results of every place are copied into it
        self._sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
        self._pools: list[Any] = []
        # The number of SMs of each captured place, by its index in completion records.
        self.place_sms: list[int] = []

    def __call__(self, stream: int, sm_count: int) -> None:
        """Enqueues the function on a stream that is being captured."""
        pool = torch.cuda.MemPool()
        self._pools.append(pool)
        with own_workspaces(), _sm_count(self._sms, sm_count), torch.cuda.use_mem_pool(pool), \
                torch.cuda.stream(torch.cuda.ExternalStream(stream)), backward_on_this_thread():
            copy_tensors(self._outputs, self._function(), 'the result')
        self.place_sms.append(sm_count)


@contextlib.contextmanager
def _sm_count(device_sms: int, place_sms: int) -> Iterator[None]:
    """Around a capture: cuBLAS chooses kernels for `place_sms` SMs."""
    carve_out = getattr(torch._C, '_set_sm_carveout_experimental', None)
    if carve_out is None or place_sms >= device_sms:
        yield
        return
    before = torch._C._get_sm_carveout_experimental()
    carve_out(device_sms - place_sms)
    try:
        yield
    finally:
        carve_out(before)


def backward_on_this_thread() -> Any:
    """Around a capture: autograd runs backward passes on this thread, whose allocations go to the capture's pool."""
    return torch.autograd.set_multithreading_enabled(False)
