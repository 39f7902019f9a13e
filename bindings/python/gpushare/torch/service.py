"""An LC service: a PyTorch function that answers queries through gpushare."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import torch

from gpushare.enums import AppClass, TaskKind
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._place_captures import PlaceCaptures
from gpushare.torch._tensors import (
    copy_tensors,
    map_tensors,
    native_events,
    recorded_event,
    require_cuda,
    require_on_gpu,
    warm_up,
)
from gpushare.torch._warm_memory import warm_memory_of, weight_tensors

_numbers = itertools.count(1)


class Service:
    """A function of tensors, captured in each place, whose calls are LC queries.

    fn: takes the tensors of `inputs` and returns tensors, or tuples, lists and dicts of them. It runs without
    gradients, and must not wait for the GPU, draw random numbers or depend on values of its inputs in Python.
    inputs: example inputs on the GPU, a tensor or a tuple of fn's positional arguments. Each query has the same
    shapes and types; a query's tensors may also be on the CPU.
    name: of the app and its kernel; a profile knows the kernel by it. Default: 'service-1' and so on.
    weights: a module, or tensors that each query reads. If they need at most half of the L2 cache, each query reads
    them into it while its first kernels run, because BE work has displaced them. They must keep their addresses.
    Default: fn, if it is a module.
    measure: the registration executes the graph in each place, for about a second, so that a loose bound can give
    part of the GPU's SMs to BE work while a query runs.
    p99_bound: the highest p99 latency, as a multiple of the p99 of the service alone. Further options are those of
    Runtime.create_app, such as p99_alone_ns.

    Threads: any may call the service; one query is in flight at a time. close() ends it; so does the
    runtime's close.
    """

    def __init__(self, runtime: Runtime, fn: Callable[..., Any], inputs: Any, *, name: str | None = None,
                 p99_bound: float = 1.05, warmup_runs: int = 3, measure: bool = True, weights: Any = None,
                 **app_options: Any) -> None:
        require_cuda(runtime)
        self.name = name or f'service-{next(_numbers)}'
        self._runtime = runtime
        self._simulated = runtime.device().simulated
        self._lock = threading.Lock()
        self._pending: Ticket | None = None  # a query whose wait was interrupted
        self._events: list[Any] = []  # the query in flight waits for them
        self._read: Any = None  # event behind the last copy of the results
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        self._inputs = map_tensors(lambda tensor: require_on_gpu(tensor).detach().clone(), tuple(given))

        def call() -> Any:
            with torch.no_grad():
                return fn(*self._inputs)

        example = warm_up(call, torch.cuda.Stream(), max(1, warmup_runs), f"Service '{self.name}'")
        self._outputs = map_tensors(torch.empty_like, example)
        self.captures = PlaceCaptures(call, self._outputs)
        kept = weight_tensors(fn if weights is None else weights)
        self._kernel = runtime.register_kernel(  # segment_ns=-1: the graph is not cut into segments
            self.name, kind=TaskKind.GRAPH, capture=self.captures, segment_ns=-1, measure_places=measure,
            warm_memory=warm_memory_of(kept))
        # Graphs in flight use this memory even after the service was dropped.
        self._memory = (self._inputs, self._outputs, self.captures, self._events, kept)
        runtime.keep(self._memory)
        self.app = runtime.create_app(self.name, AppClass.LATENCY_CRITICAL, p99_bound=p99_bound, **app_options)

    def __call__(self, *inputs: Any) -> Any:
        """Answers one query: returns new tensors with the results of fn(*inputs), in order with the current stream.

        It returns when the query is complete. Raises TaskError if it did not end with Verdict.OK.
        """
        with self._lock:
            self._finish_pending()
            copy_tensors(self._inputs, inputs, 'the input')
            self._events[:] = [event for event in (self._read, recorded_event()) if event is not None]
            self._pending = self.app.submit(
                self._kernel, wait_events=native_events(self._simulated, self._events))
            self._pending.wait_ok()
            self._pending = None
            result = map_tensors(lambda tensor: tensor.clone(), self._outputs)
            self._read = recorded_event()
            return result

    def _finish_pending(self) -> None:
        """Waits for a query whose wait was interrupted: it still uses the inputs."""
        if self._pending is not None:
            self._pending.wait_complete()
            self._pending = None

    def close(self) -> None:
        """Waits for the query in flight, then releases the app and the memory."""
        with self._lock:
            if not self._runtime.closed:
                self._finish_pending()
            self.app.close()
            self._kernel.close()
            self._runtime.unkeep(self._memory)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
