"""Eager work in a region: what PyTorch enqueues in a with block, on a stream that the library gives."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any, cast

import torch

from gpushare.app import App, Queue, Region
from gpushare.runtime import Runtime
from gpushare.torch._tensors import require_cuda

_lock = threading.Lock()
_pools: weakref.WeakKeyDictionary[App, Any] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def region(app: App, bound_ns: int = 0, *, queue: Queue | None = None, arrival_ns: int = 0, input_size: float = 0,
           wait_s: float = 0, next_within_ns: int = 0) -> Iterator[Region]:
    """Runs the block's eager work in a region of the app: its current stream is that of the region.

    with gpushare.torch.region(engine, arrival_ns=arrival, input_size=len(prompt), wait_s=0.01) as begun:
        logits = model(prompt)
    begun.wait()

    The region's stream waits for what is on the current stream now, and the current stream waits for the block's work,
    so inputs and results need no events. Tensors that the block makes come from one memory pool of the app. A tensor
    that is dropped outside of the block may be written by the next region as soon as the current stream gets there: use
    record_stream for other streams.
    queue: default: the app's own. The other arguments are those of Queue.begin_region, and so are the errors. What the
    block raises ends the region too: what it has enqueued goes on.
    """
    require_cuda(cast(Runtime, app.runtime))
    begun = (app.queue if queue is None else queue).begin_region(
        bound_ns, arrival_ns=arrival_ns, input_size=input_size, wait_s=wait_s, next_within_ns=next_within_ns)
    with begun:
        current = torch.cuda.current_stream()
        stream = torch.cuda.ExternalStream(begun.stream)
        stream.wait_stream(current)
        try:
            with torch.cuda.use_mem_pool(_pool_of(app)), torch.cuda.stream(stream):
                yield begun
        finally:
            current.wait_stream(stream)


def _pool_of(app: App) -> Any:
    with _lock:
        pool = _pools.get(app)
        if pool is None:
            pool = _pools[app] = torch.cuda.MemPool()
            app.runtime.keep(pool)  # tensors of it may outlive the app
        return pool
