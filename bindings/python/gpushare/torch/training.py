"""BE training: a training step with autograd and optimizer as a CUDA graph that runs when LC work leaves room."""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpushare.enums import AppClass
from gpushare.kernel import Kernel
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._capture import captured
from gpushare.torch._registration import register_graph
from gpushare.torch._snapshot import Snapshot
from gpushare.torch._tensors import native_events, own_workspaces, recorded_event, require_cuda, warm_up

_numbers = itertools.count(1)


class Training:
    """A training step as BE work.

    step: a function that runs zero_grad(), forward, backward() and optimizer.step() on tensors that keep their
    addresses. It must not wait for the GPU, draw random numbers on it or change shapes; Adam needs capturable=True.
    state: the modules and optimizers (anything with a state_dict) and tensors that the step changes. The registration
    runs steps to warm up and to measure, and then restores the state. Without it these steps stay part of the training.
    name: of the app and its kernel; a profile knows the kernel by it. Default: 'training-1' and so on.
    measure: the registration executes the step, twice as a whole and for up to a second in places. The durations of its
    kernels decide where it is cut into segments, and its speed on part of the SMs becomes known.
    kernel_options are those of Runtime.register_kernel, such as segment_ns; app_options those of Runtime.create_app.

    The step is captured once, by PyTorch, in a memory pool of its own; the library makes a copy of the graph for
    each place. So a step that moves between places gives the same bits. What the step returns is in `outputs`,
    which each step overwrites.

    Threads: any. close() waits for the submitted steps; the runtime's close ends what is left.
    """

    def __init__(self, runtime: Runtime, step: Callable[[], Any], *, state: Sequence[Any] = (), name: str | None = None,
                 warmup_runs: int = 3, measure: bool = True, kernel_options: dict[str, Any] | None = None,
                 **app_options: Any) -> None:
        require_cuda(runtime)
        self.name = name or f'training-{next(_numbers)}'
        self._runtime = runtime
        self._simulated = runtime.device().simulated
        self._lock = threading.Lock()
        self._last: Ticket | None = None
        # The events that steps in flight wait for, oldest first, and the tickets of those steps.
        self._events: collections.deque[Any] = collections.deque()
        self._event_tickets: collections.deque[Ticket] = collections.deque()
        # Why the graph runs on the whole device only; '' if it can run in a place.
        self.unconfinable = ''
        stream = torch.cuda.Stream()
        try:
            with Snapshot(state) as snapshot:
                self._warm_up(step, stream, warmup_runs)
                self._capture(step, stream)
                measured = {'measure_nodes': measure, 'measure_places': measure}
                self._kernel = self._register({**measured, **(kernel_options or {})})
                snapshot.restore()
        finally:
            torch.cuda.current_stream().synchronize()
        # Steps in flight use this memory even after the training was dropped.
        self._memory = (self._graph, self.outputs, tuple(state), step, self._events)
        runtime.keep(self._memory)
        self.app = runtime.create_app(self.name, AppClass.BEST_EFFORT, **app_options)

    def _warm_up(self, step: Callable[[], Any], stream: Any, runs: int) -> None:
        try:
            warm_up(step, stream, max(1, runs), f"Training '{self.name}'")
        finally:
            stream.synchronize()  # a step that raised may leave earlier ones running

    def _capture(self, step: Callable[[], Any], stream: Any) -> None:
        # keep_graph: the library instantiates the graph itself, once for each place.
        self._graph = torch.cuda.CUDAGraph(keep_graph=True)
        stream.wait_stream(torch.cuda.current_stream())
        with own_workspaces(), torch.cuda.stream(stream):
            self.outputs = captured(self._graph, step)
        # The registration may execute the step, on a stream of its own. A wait for the whole GPU would break a
        # capture of another thread.
        torch.cuda.current_stream().synchronize()

    def _register(self, options: dict[str, Any]) -> Kernel:
        kernel, self.unconfinable = register_graph(
            self._runtime, self.name, graph=int(self._graph.raw_cuda_graph()), **options)
        return kernel

    def submit(self, n: int = 1) -> list[Ticket]:
        """Submits n steps, which run one after another. Returns their tickets. A step that fails also
        fails the submitted steps behind it.

        The first starts behind the work that is on the current stream now, such as the copy of a batch. When
        the app is full (tasks_max), ResourceExhaustedError is raised, and the steps before it stay submitted.
        """
        if n < 1:
            raise ValueError(f'n is {n}, and it must be at least 1.')
        with self._lock:
            while self._event_tickets and self._event_tickets[0].done():
                self._event_tickets.popleft()
                self._events.popleft()
            event = recorded_event()
            self._events.append(event)
            tickets: list[Ticket] = []
            for number in range(n):
                events = native_events(self._simulated, [event]) if number == 0 else []
                try:
                    self._last = self.app.submit(self._kernel, wait_events=events, wait_tickets=self._previous())
                except Exception:
                    if number == 0:
                        self._events.pop()  # no step was submitted that waits for it
                    raise
                tickets.append(self._last)
                if number == 0:
                    self._event_tickets.append(self._last)
            return tickets

    def _previous(self) -> list[Ticket]:
        """The newest step unless it is complete. The next step waits for it, and so fails if it fails."""
        last = self._last
        return [] if last is None or not last.value or last.done() else [last]

    def wait(self, timeout_s: float | None = None) -> None:
        """Waits for every submitted step. Then parameters and outputs may be read and inputs written."""
        with self._lock:
            last = self._last
        if last is not None:
            last.wait(timeout_s)

    def close(self) -> None:
        """Waits for every submitted step, then releases the app and the memory."""
        with self._lock:
            if self._last is not None and not self._runtime.closed:
                self._last.wait_complete()
            self.app.close()
            self._kernel.close()
            self._runtime.unkeep(self._memory)

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
