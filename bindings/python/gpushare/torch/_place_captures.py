"""Captures a function once for each place, when the library calls its capture callback.

Each capture has a memory pool of its own, or all share the one that is given. The pools live as long as PlaceCaptures:
nothing that may run beside a graph may use the memory that it reads and writes. Where PyTorch has the setting, cuBLAS
plans for the number of SMs of the place.

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

    pool: the torch.cuda.MemPool of all captures, which other graphs may use that never run beside them. Default: each
    capture has one of its own.

    It does not warm up: run `function` a few times before, so that libraries make their handles. It holds the memory of
    the captures: keep it until the runtime is closed (Runtime.keep does).
    """

    def __init__(self, function: Callable[[], Any], outputs: Any, pool: Any = None) -> None:
        self._function = function
        self._outputs = outputs  # the results of every place are copied into it
        self._shared_pool = pool
        self._sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
        self._pools: list[Any] = []
        # The number of SMs of each captured place, in the order of the captures: the whole device first.
        self.place_sms: list[int] = []
        # How many captures have begun. Less than two: no other place than the whole device was tried.
        self.begun = 0

    def begin_again(self) -> None:
        """Forgets the captures of a registration that failed."""
        self._pools.clear()
        self.place_sms.clear()
        self.begun = 0

    def __call__(self, stream: int, sm_count: int) -> None:
        """Enqueues the function on a stream that is being captured."""
        self.begun += 1
        pool = torch.cuda.MemPool() if self._shared_pool is None else self._shared_pool
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
