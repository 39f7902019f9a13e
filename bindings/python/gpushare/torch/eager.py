"""Eager BE work: an unmodified loop whose work for the GPU is held between launches while LC work runs.

  the loop -> PyTorch -> CUDA driver -> gate (native/eager_gate.h) -> GPU

In front of a launch the gate looks whether a region of the BE app is open and the library leaves room. That costs less
than a microsecond and no Python. At most outstanding_ns are launched and not complete, so that is what an LC query
waits for: nothing evicts a launch.

The gate stands at one of two points:

  launches     the driver's launches on the loop's stream, by CUPTI (native/launch_hook.h): whatever makes them
  operations   PyTorch's operations, by a dispatch mode: some microseconds of Python each

Threads: the one that entered, and those of its backward passes.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch

from gpushare import _library, abi
from gpushare._library import check, library
from gpushare.app import App, Queue
from gpushare.enums import AppClass, Status
from gpushare.errors import Error, UnavailableError
from gpushare.runtime import Runtime
from gpushare.torch._tensors import require_cuda
from gpushare.torch.memory_pool import MemoryPool, allocated_in

Where = Literal['auto', 'launches', 'operations']

_LIBRARY = ('gpushare_region_begin', 'gpushare_region_end', 'gpushare_region_room', 'gpushare_ticket_wait',
            'gpushare_ticket_release')
_DRIVER = ('cuEventCreate', 'cuEventDestroy_v2', 'cuEventRecord', 'cuEventQuery', 'cuStreamWaitEvent',
           'cuStreamIsCapturing', 'cuThreadExchangeStreamCaptureMode')
_CUPTI = ('cuptiSubscribe', 'cuptiEnableCallback', 'cuptiUnsubscribe')
_NON_BLOCKING = 1  # cudaStreamNonBlocking
_numbers = itertools.count(1)
# Streams of ended loops. They are never destroyed: PyTorch's allocator may still have memory of them.
_idle_streams: dict[int, list[Any]] = {}  # by device


class EagerGate:
    """Holds the loop back while LC work runs, and counts what it did."""

    def __init__(self, runtime: Runtime, app: App, stream: Any, outstanding_ns: int, launches: bool) -> None:
        self._steps = _extension()
        calls = _addresses(library(), _LIBRARY), _driver_calls(), _cupti_calls() if launches else ()
        self._closed = False
        # What it stands in front of: the driver's launches, or PyTorch's operations.
        self.gates = 'launches' if launches else 'operations'
        self._queues: tuple[Queue, ...] = (app.create_queue(), app.create_queue())
        try:
            with runtime._use as handle, self._queues[0]._use as first, self._queues[1]._use as second:
                self._gate = self._steps.gate_open(handle, first, second, stream.cuda_stream, outstanding_ns, *calls)
        except BaseException:
            self._close_queues()
            raise

    @property
    def operations(self) -> int:
        """What went through the gate: launches of kernels and graphs, copies and fills, or PyTorch's operations."""
        return self._counts()[0]

    @property
    def regions(self) -> int:
        """Regions of the BE app that had them."""
        return self._counts()[1]

    @property
    def refusals(self) -> int:
        """Regions that the library refused: it left room, and not for them."""
        return self._counts()[2]

    @property
    def on_credit(self) -> int:
        """Operations that are longer than LC apps tolerate, and had the credit of their tail accounts."""
        return self._counts()[3]

    @property
    def measured(self) -> int:
        """Operations that ran alone once, because nothing was known of them."""
        return self._counts()[4]

    @property
    def held_s(self) -> float:
        """How long operations waited: for LC work to end, and for earlier operations to complete."""
        return self._counts()[5] / 1e9

    def close(self) -> None:
        """Ends the open region, and waits for the regions. Raises the error that opened the gate for good, if any."""
        if self._closed:
            return
        self._closed = True
        status = self._steps.gate_close(self._gate)
        self._close_queues()
        _raise_for(status)

    def _close_queues(self) -> None:
        for queue in self._queues:
            queue.close()

    def _counts(self) -> tuple[int, int, int, int, int, int]:
        counts: tuple[int, int, int, int, int, int] = self._steps.gate_counts(self._gate)
        return counts

    def _dispatch(self) -> Callable[..., Any]:
        """A __torch_dispatch__ with this gate in front of each operation on the GPU."""
        enter, launched, gate = self._steps.gate_operation, self._steps.gate_launched, self._gate

        def dispatch(_: Any, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
            size = _size_on_gpu(given, named)
            if size < 0:
                return function(*given, **named) if named else function(*given)
            follows = enter(gate, (id(function) ^ size << 20) & 0xffffffffffffffff)
            if follows < 0:
                _raise_for(-follows)
            result = function(*given, **named) if named else function(*given)
            if follows:
                launched(gate)
            return result

        return dispatch


@contextlib.contextmanager
def eager_be(runtime: Runtime, *, outstanding_ns: int = 200_000, name: str | None = None,
             pool: MemoryPool | None = None, gates: Where = 'auto', **app_options: Any) -> Iterator[EagerGate]:
    """What PyTorch launches in the block runs as BE work, each launch when LC work leaves room.

    outstanding_ns: the device time of what is launched and not complete, which an LC query may have to wait for. It is
    less where the LC apps tolerate less. A single operation that takes longer is launched when nothing else is
    outstanding.
    name: of the app; default: 'eager-1' and so on. pool: what the block allocates comes from it.
    gates: 'launches' of the driver on the block's stream, 'operations' of PyTorch, or 'auto': the former if CUPTI can
    be had, which a profiler may use.

    It begins behind the current stream's work, and the current stream waits for it. Work on other streams is not held.
    """
    if outstanding_ns < 2:
        raise ValueError(f'outstanding_ns is {outstanding_ns}, and it must be at least 2.')
    if gates not in ('auto', 'launches', 'operations'):
        raise ValueError(f"gates is {gates!r}, and it must be 'auto', 'launches' or 'operations'.")
    require_cuda(runtime)
    around = torch.cuda.current_stream()
    with contextlib.ExitStack() as ends:
        app = runtime.create_app(name or f'eager-{next(_numbers)}', AppClass.BEST_EFFORT, **app_options)
        ends.callback(app.close)
        stream = _take_stream()
        ends.callback(_idle_streams.setdefault(torch.cuda.current_device(), []).append, stream)
        stream.wait_stream(around)
        gate = _open(runtime, app, stream, outstanding_ns, gates)
        ends.callback(around.wait_stream, stream)
        ends.callback(gate.close)
        ends.enter_context(allocated_in(pool))
        ends.enter_context(torch.cuda.stream(stream))
        if gate.gates == 'operations':
            ends.enter_context(_dispatch_mode(gate._dispatch()))
        yield gate


def _open(runtime: Runtime, app: App, stream: Any, outstanding_ns: int, gates: Where) -> EagerGate:
    if gates == 'operations':
        return EagerGate(runtime, app, stream, outstanding_ns, launches=False)
    try:
        return EagerGate(runtime, app, stream, outstanding_ns, launches=True)
    except (RuntimeError, OSError, AttributeError) as error:
        if gates == 'launches' or isinstance(error, Error):
            raise
        logging.getLogger(__name__).warning(
            'The gate of an eager loop stands in front of operations, which costs more than in front of launches: %s',
            error)
        return EagerGate(runtime, app, stream, outstanding_ns, launches=False)


def _extension() -> Any:
    library()
    if _library.steps is None or not hasattr(_library.steps, 'gate_open'):
        raise UnavailableError(
            Status.UNAVAILABLE, 'eager_be needs the extension gpushare._steps, which was not built or is older.')
    return _library.steps


def _raise_for(status: int) -> None:
    """The gate's threads have the library's message of the error, and this one may be another."""
    if status == Status.UNAVAILABLE:
        raise UnavailableError(Status.UNAVAILABLE, 'The device is lost.')
    check(status)


def _dispatch_mode(dispatch: Callable[..., Any]) -> Any:
    mode = type('Gated', (torch.utils._python_dispatch.TorchDispatchMode,), {'__torch_dispatch__': dispatch})
    return mode()


def _size_on_gpu(given: Any, named: dict[str, Any] | None) -> int:
    """The elements of an operation's first tensor on the GPU, alone or first in a list; 0: it makes one there; -1: it
    is none of the GPU's."""
    for value in given:
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if isinstance(first, torch.Tensor) and first.is_cuda:
            return int(first.numel())
    return 0 if named and str(named.get('device', '')).startswith('cuda') else -1


def _take_stream() -> Any:
    """A stream that nobody else has: those of torch.cuda.Stream() are handed out in turn."""
    with contextlib.suppress(KeyError, IndexError):
        return _idle_streams[torch.cuda.current_device()].pop()
    torch.cuda.init()
    stream = ctypes.c_void_p()
    # By the runtime, which makes PyTorch's context this thread's: the driver's events need it.
    status = _of_cuda('cudart').cudaStreamCreateWithFlags(ctypes.byref(stream), _NON_BLOCKING)
    if status != 0:
        raise UnavailableError(Status.UNAVAILABLE, f'The CUDA runtime makes no stream (status {status}).')
    return torch.cuda.ExternalStream(stream.value or 0)


def _addresses(functions: abi.Functions | ctypes.CDLL, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(ctypes.cast(getattr(functions, name), ctypes.c_void_p).value or 0 for name in names)


def _of_cuda(name: str) -> Any:
    """A library of the CUDA version that PyTorch is built with, and has loaded."""
    return ctypes.CDLL(f'lib{name}.so.{torch.version.cuda.partition(".")[0]}')


def _driver_calls() -> tuple[int, ...]:
    return _addresses(ctypes.CDLL('libcuda.so.1'), _DRIVER)


def _cupti_calls() -> tuple[int, ...]:
    """PyTorch has loaded CUPTI, for its profiler. OSError: it is of a build without it."""
    return _addresses(_of_cuda('cupti'), _CUPTI)
