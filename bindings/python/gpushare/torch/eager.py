"""Eager BE work: an unmodified loop whose operations are held between launches while LC work runs.

  operation -> dispatch mode -> gate: a region of the BE app is open, or is begun when the library allows it
            -> PyTorch launches it on a stream of the gate; the region ends behind it

A region has as many operations as are expected to take its bound. Two queues take turns, so that the GPU has work
while the next region begins, and at most two regions are outstanding. What is launched is not evicted: an LC query
waits for it, at most outstanding_ns where the operations take as long as expected.

Threads: the one that entered, and those of its backward passes.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gpushare.app import App, Queue, Region
from gpushare.enums import AppClass, Status
from gpushare.errors import ResourceExhaustedError, UnavailableError
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._tensors import require_cuda
from gpushare.torch.memory_pool import MemoryPool, allocated_in

_PAUSE_S = 50e-6  # between two attempts to begin a region: the resolution of a sleep
_SHORTER = (1, 4, 16)  # parts of a bound that are tried, because an LC app may leave less time than it
_LEARN = 0.1  # weight of a new region in the expected time of an operation
_numbers = itertools.count(1)


class _Lane:
    """A queue and its last region, which must be complete before the next one."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.ticket: Ticket | None = None
        self.operations = 0
        self.event: Any = None  # the end of the region waits for it


class EagerGate:
    """Holds operations back until a region is open. Counts them: operations, regions, refusals."""

    def __init__(self, runtime: Runtime, app: App, stream: Any, outstanding_ns: int) -> None:
        self._runtime = runtime
        self._stream = stream
        self._bound_ns = outstanding_ns // 2
        self._lanes = (_Lane(app.create_queue()), _Lane(app.create_queue()))
        self._lock = threading.Lock()
        self._region: Region | None = None
        self._left = 0  # operations that still fit into the open region
        self._ends_ns = 0  # when it ends although they were not launched: the loop does something else
        self._operation_ns = self._bound_ns / 4.0  # expected time of one
        self.operations = 0
        self.regions = 0
        # Attempts to begin a region that the library refused, because LC work ran or was to be expected.
        self.refusals = 0

    def operation(self) -> None:
        """Before each operation on the GPU."""
        with self._lock:
            if self._region is not None and (self._left <= 0 or time.monotonic_ns() > self._ends_ns):
                self._end()
            if self._region is None:
                self._begin()
            self._left -= 1
            self.operations += 1
            self._lanes[0].operations += 1

    def close(self) -> None:
        """Ends the open region, waits for all of them and gives the queues back."""
        with self._lock:
            if self._region is not None:
                self._end()
            for lane in self._lanes:
                if lane.ticket is not None:
                    lane.ticket.wait_complete()
                lane.queue.close()

    def _begin(self) -> None:
        self._lanes = self._lanes[::-1]
        lane = self._lanes[0]
        if lane.ticket is not None:
            lane.ticket.wait_complete()
            self._learn(lane)
        bound_ns = self._begun(lane)
        lane.operations = 0
        self._left = max(1, int(bound_ns / self._operation_ns))
        self._ends_ns = time.monotonic_ns() + bound_ns
        self.regions += 1

    def _begun(self, lane: _Lane) -> int:
        """Begins a region as soon as the library allows one. Returns its bound."""
        while True:
            for part in _SHORTER:
                bound_ns = max(1, self._bound_ns // part)
                try:
                    self._region = lane.queue.begin_region(bound_ns)
                    return bound_ns
                except UnavailableError:
                    self.refusals += 1
            if self._runtime.stats().device_lost:
                raise UnavailableError(Status.UNAVAILABLE, 'The device is lost.')
            time.sleep(_PAUSE_S)

    def _end(self) -> None:
        region, lane = self._region, self._lanes[0]
        assert region is not None
        if region.stream:
            lane.event = torch.cuda.Event()
            lane.event.record(self._stream)
            torch.cuda.ExternalStream(region.stream).wait_event(lane.event)
        while True:
            try:
                lane.ticket = region.end()
                break
            except ResourceExhaustedError:  # too many launches are in flight
                time.sleep(_PAUSE_S)
        self._region = None

    def _learn(self, lane: _Lane) -> None:
        assert lane.ticket is not None
        record = lane.ticket.record()
        took_ns = record.end_ns - record.start_ns
        if took_ns > 0 and lane.operations:
            self._operation_ns += _LEARN * (took_ns / lane.operations - self._operation_ns)


@contextlib.contextmanager
def eager_be(runtime: Runtime, *, outstanding_ns: int = 200_000, name: str | None = None,
             pool: MemoryPool | None = None, **app_options: Any) -> Iterator[EagerGate]:
    """PyTorch's operations in the block run as BE work, each launched when LC work leaves room.

    outstanding_ns: the device time of operations that are launched and not complete, which an LC query may have to
    wait for. A single operation that takes longer is launched all the same.
    name: of the app; default: 'eager-1' and so on. pool: what the block allocates comes from it.

    It begins behind the current stream's work, and the current stream waits for it. Operations of other threads, and of
    libraries that do not go through PyTorch's dispatcher, are not held.
    """
    if outstanding_ns < 2:
        raise ValueError(f'outstanding_ns is {outstanding_ns}, and it must be at least 2.')
    require_cuda(runtime)
    app = runtime.create_app(name or f'eager-{next(_numbers)}', AppClass.BEST_EFFORT, **app_options)
    around, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    stream.wait_stream(around)
    gate = EagerGate(runtime, app, stream, outstanding_ns)
    try:
        with allocated_in(pool), torch.cuda.stream(stream), _dispatch_mode(gate.operation):
            yield gate
    finally:
        try:
            gate.close()
        finally:
            around.wait_stream(stream)
            app.close()


def _dispatch_mode(before: Callable[[], None]) -> Any:
    """A dispatch mode that calls `before` in front of each operation on the GPU."""
    def dispatch(_: Any, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        named = named or {}
        if _is_on_gpu(given, named):
            before()
        return function(*given, **named)

    mode = type('Gated', (torch.utils._python_dispatch.TorchDispatchMode,), {'__torch_dispatch__': dispatch})
    return mode()


def _is_on_gpu(given: Any, named: dict[str, Any]) -> bool:
    """Whether an operation has a tensor on the GPU, alone or first in a list, or makes one there."""
    for value in given:
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if isinstance(first, torch.Tensor) and first.is_cuda:
            return True
    return str(named.get('device', '')).startswith('cuda')
