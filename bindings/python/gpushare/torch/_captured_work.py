"""What Training and BestEffort share: a function as a CUDA graph, which runs as tasks of a BE app of its own.

The function is captured once, by PyTorch, in a memory pool of its own; the library makes a copy of the graph for each
place. So the graph gives the same bits in every place.

Threads: any. The registration runs on the caller's.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpushare.enums import AppClass
from gpushare.kernel import Kernel
from gpushare.runtime import Runtime
from gpushare.torch._capture import captured
from gpushare.torch._chain import Chain
from gpushare.torch._graph_random import GraphRandom
from gpushare.torch._in_flight import drain
from gpushare.torch._registration import register_graph
from gpushare.torch._ring import InputRing, RingMemory
from gpushare.torch._snapshot import Snapshot
from gpushare.torch._tensors import own_workspaces, require_cuda, run_eagerly
from gpushare.torch.memory_pool import MemoryPool, allocated_in


class CapturedWork:
    """A captured function with its app, kernel and memory.

    state: what the function changes (_snapshot.py): it is as it was before when the registration ends.
    generators: what it draws random numbers from, beside the GPU's default generator (_graph_random.py).
    pool: where the registration and the graph allocate.
    app: the BE app, whose `name` is the kernel's too. outputs: what the function returned; each run overwrites it.
    """

    def __init__(self, runtime: Runtime, function: Callable[[], Any], name: str, *, state: Sequence[Any],
                 generators: Sequence[Any], pool: MemoryPool | None, warmup_runs: int, measure: bool,
                 kernel_options: dict[str, Any] | None, app_options: dict[str, Any]) -> None:
        require_cuda(runtime)
        self.name = name
        self._runtime = runtime
        self._simulated = runtime.device().simulated
        self._lock = threading.Lock()
        self._pool = pool
        # Why the graph runs on the whole device only; '' if it can run in a place.
        self.unconfinable = ''
        stream = torch.cuda.Stream()
        try:
            self._random = GraphRandom(generators, f"{type(self).__name__} '{self.name}'")
            with allocated_in(pool):
                snapshot = Snapshot(state)
            with self._random, snapshot:
                with allocated_in(pool):
                    self._warm_up(function, stream, warmup_runs)
                self._capture(function, stream)
                measured = {'measure_nodes': measure, 'measure_places': measure}
                self._kernel = self._register({**measured, **(kernel_options or {})})
                snapshot.restore()
                self._random.restart()
        finally:
            torch.cuda.current_stream().synchronize()
        self.app = runtime.create_app(name, AppClass.BEST_EFFORT, **app_options)
        self._chain = Chain(self.app.queue, self._simulated)
        self._ring: InputRing | None = None
        # Tasks in flight use this memory even after the object was dropped. A class that derives from this adds to it.
        # The pools come first: a list drops its last entries first, and a pool that has no graph gives its memory back.
        self._memory: list[Any] = [pool, self._graph_pool, self.outputs, tuple(state), function, self._chain.memory,
                                   self._random.memory, self._graph]
        runtime.keep(self._memory)

    def _warm_up(self, function: Callable[[], Any], stream: Any, runs: int) -> None:
        try:
            run_eagerly(self._random.counted(function), stream, max(1, runs))
        finally:
            stream.synchronize()  # a function that raised may leave earlier runs running

    def _capture(self, function: Callable[[], Any], stream: Any) -> None:
        # keep_graph: the library instantiates the graph itself, once for each place.
        self._graph = torch.cuda.CUDAGraph(keep_graph=True)
        stream.wait_stream(torch.cuda.current_stream())
        pool: Any = contextlib.nullcontext() if self._pool is None else self._pool.capture()
        with pool as self._graph_pool, own_workspaces(), torch.cuda.stream(stream):
            pool_id = None if self._graph_pool is None else self._graph_pool.id
            self.outputs = captured(self._graph, function, pool_id, self._random)
        if self._random.draws:
            stream.synchronize()  # the capture begins with writes of the generators' tensors
        # The registration may execute the graph, on a stream of its own. A wait for the whole GPU would break a
        # capture of another thread.
        torch.cuda.current_stream().synchronize()

    def _register(self, options: dict[str, Any]) -> Kernel:
        kernel, self.unconfinable = register_graph(
            self._runtime, self.name, graph=int(self._graph.raw_cuda_graph()), **options)
        return kernel

    def _use_ring(self, memory: RingMemory) -> InputRing:
        """Makes the ring that fills the inputs of the graph."""
        self._ring = InputRing(self.app, self._chain, memory, self._simulated)
        self._memory.append(self._ring.memory)
        return self._ring

    def wait(self, timeout_s: float | None = None) -> None:
        """Waits for everything that is submitted. Then what the function reads and writes may be read and written."""
        with self._lock:
            last = self._chain.last
        if last is not None:
            last.wait(timeout_s)

    def close(self) -> None:
        """Waits for everything that is submitted, then releases the app and the memory."""
        with self._lock:
            if not self._runtime.closed and not self.app.closed:
                # Not for the newest task alone: a batch that was refused halfway may have left copies behind it.
                drain(self._runtime, self.app)
            if self._ring is not None:
                self._ring.close()
            self.app.close()
            self._kernel.close()
            self._runtime.unkeep(self._memory)

    def __exit__(self, *_: object) -> None:
        self.close()
