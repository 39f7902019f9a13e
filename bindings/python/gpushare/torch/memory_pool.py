"""Memory for BE work that ends before the GPU's does: allocations beyond a limit fail, and LC work keeps the rest.

PyTorch bounds a process (set_per_process_memory_fraction), not one pool. So the pool has an allocator of its own,
which counts and refuses (native/memory_pool.h); PyTorch's caching allocator is in front of it. What PyTorch takes
from it are segments: 2 MiB for small tensors, 20 MiB for those up to 10 MiB, larger ones rounded up to 2 MiB.

Each thread in use() and each graph has a MemPool of its own in front of that allocator. What a capture frees is used
again at each launch, so nothing else may get it: not eager work, not another graph.

Threads: any. No lock is held while code of the caller runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from gpushare import _library
from gpushare.enums import Status
from gpushare.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from gpushare.torch._place_captures import backward_on_this_thread

_CUDA_CALLS = ('cudaMalloc', 'cudaFree', 'cudaGetLastError')
# PyTorch's allocators by their functions. They stay: segments that PyTorch frees late are freed by them.
_allocators: dict[tuple[int, int], Any] = {}


class MemoryPool:
    """At most limit_bytes of the current GPU for the BE work that gets this pool.

    with pool.use():
        net, optimizer = ...       # allocations of this thread, and of backward passes in it
    training = Training(runtime, step, pool=pool, ...)

    `limit_bytes` is the limit. An allocation that does not fit raises ResourceExhaustedError, which says what the pool
    has. Several trainings may share a pool, and threads may use it at once. Its memory is given back when the pool and
    everything that is in it are dropped.
    """

    def __init__(self, limit_bytes: int) -> None:
        if not 0 < limit_bytes < 2**62:
            raise InvalidArgumentError(
                Status.INVALID_ARGUMENT, f'limit_bytes is {limit_bytes}, and it must be at least 1 byte.')
        _library.library()
        steps = _library.steps
        if steps is None or not hasattr(steps, 'pool_open'):
            raise UnavailableError(
                Status.UNAVAILABLE, 'MemoryPool needs the extension gpushare._steps, which was not built or is older.')
        self.limit_bytes = limit_bytes
        self._steps = steps
        self._lock = threading.Lock()  # guards _idle
        self._idle: list[Any] = []  # MemPools of use() that no thread is in
        self._inside = threading.local()
        try:
            self._number, alloc, free = steps.pool_open(limit_bytes, *_cuda_runtime())
        except RuntimeError as error:
            raise ResourceExhaustedError(Status.RESOURCE_EXHAUSTED, str(error)) from None
        weakref.finalize(self, steps.pool_close, self._number)
        if (alloc, free) not in _allocators:
            _allocators[alloc, free] = torch._C._cuda_customAllocator(alloc, free)
        self._allocator = _allocators[alloc, free]
        with self.use():
            torch.empty(1, device='cuda')
        if self.used_bytes == 0:
            raise UnimplementedError(
                Status.UNIMPLEMENTED, f'This version or configuration of PyTorch ({torch.__version__}) does not use '
                'the allocator of a pool, so the pool has no limit.')

    @property
    def used_bytes(self) -> int:
        """What PyTorch has taken for the pool, with what it keeps for later tensors."""
        return self._steps.pool_state(self._number)[0]

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """Allocations of this thread come from the pool. Backward passes run on this thread meanwhile."""
        if self._is_inside():
            yield
            return
        with self._lock:
            memory = self._idle.pop() if self._idle else None
        if memory is None:
            memory = torch.cuda.MemPool(self._allocator)
        self._inside.value = True
        try:
            with self._explained(), torch.cuda.use_mem_pool(memory), backward_on_this_thread():
                yield
        finally:
            self._inside.value = False
            with self._lock:
                self._idle.append(memory)

    @contextlib.contextmanager
    def capture(self) -> Iterator[Any]:
        """Around a capture outside use(): gives a MemPool of its own, which must live as long as the graph."""
        if self._is_inside():
            raise FailedPreconditionError(
                Status.FAILED_PRECONDITION, 'A graph cannot be captured inside use() of its MemoryPool, whose later '
                'work would get its memory. Leave the block first.')
        with self._explained():
            yield torch.cuda.MemPool(self._allocator)

    def _is_inside(self) -> bool:
        """Whether this thread is in use()."""
        return getattr(self._inside, 'value', False)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raises ResourceExhaustedError in place of PyTorch's exception for an allocation that the limit refused."""
        before = self._steps.pool_state(self._number)[1]
        try:
            yield
        except torch.OutOfMemoryError as error:
            used, refusals = self._steps.pool_state(self._number)
            if refusals == before:
                raise  # another pool, or the GPU is full
            raise ResourceExhaustedError(
                Status.RESOURCE_EXHAUSTED, f'A MemoryPool of {self.limit_bytes} bytes, of which PyTorch has taken '
                f'{used}, has no room for what BE work allocates. {error}') from error


@contextlib.contextmanager
def allocated_in(pool: MemoryPool | None) -> Iterator[None]:
    """pool.use(); without a pool, nothing."""
    if pool is None:
        yield
        return
    with pool.use():
        yield


def _cuda_runtime() -> list[int]:
    """The addresses of _CUDA_CALLS in the CUDA runtime that PyTorch has loaded."""
    torch.cuda.init()
    runtime = ctypes.CDLL(f'libcudart.so.{torch.version.cuda.partition(".")[0]}')
    return [ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value or 0 for name in _CUDA_CALLS]
