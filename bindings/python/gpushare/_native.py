"""Finds gpushare._steps, the C form of a step's calls (bindings/python/native). Without it the package uses ctypes.

It is the file that GPUSHARE_PYTHON_STEPS names, where an empty text means none; else the one beside this file, which
a wheel carries.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import logging
import os
import pathlib
from typing import TYPE_CHECKING, Any, Protocol

from gpushare import abi

if TYPE_CHECKING:
    from gpushare._use import Use

_FILE = '_steps.abi3.so'
_BOUND = ('gpushare_run_lc', 'gpushare_now_ns', 'gpushare_ticket_wait', 'gpushare_ticket_release',
          'gpushare_ticket_record', 'gpushare_ticket_poll', 'gpushare_submit_lc', 'gpushare_submit_be',
          'gpushare_token_stream_mark')
EVENTS_MAX = 8  # of one task


class Steps(Protocol):
    """A `use` is entered for the call, as a with block does. A status is one of the library's."""

    def bind(self, *addresses_and_record_size: int) -> None: ...

    def run(self, runtime: Use, queue: Use, kernel: Use, calls: Use | None, arguments: bytes, query: int,
            arrival_ns: int, next_within_ns: int, timeout_ns: int, slice_ns: int, left: dict[str, object] | None,
            name: str, runtime_handle: int, /) -> tuple[int, int, int, bytes | None] | None:
        """gpushare_run_lc, and the waits behind its first slice. None: the task ended with Verdict.OK; else the
        status, the ticket, which is the caller's unless it is 0, the verdict and the record of a complete task. An
        exception leaves no ticket.

        calls: used throughout. left: left[name] is a new object where the task may go on when the kernel is no longer
        used. runtime_handle: that of the queue's runtime."""

    def submit(self, queue: Use, kernel: Use, best_effort: int, arguments: bytes, query: int, arrival_ns: int,
               next_within_ns: int, block_tasks: int, events: tuple[int, ...], /) -> int:
        """gpushare_submit_lc or _be: the ticket, or the negated status. At most EVENTS_MAX events."""

    def wait(self, runtime: Use, ticket: int, timeout_ns: int, slice_ns: int, /) -> tuple[int, bytes] | int:
        """gpushare_ticket_wait: verdict and record of the complete task, or the status."""

    def record(self, runtime: Use, ticket: int, /) -> tuple[int, bytes] | int:
        """gpushare_ticket_record: the same."""

    def poll(self, runtime: Use, ticket: int, /) -> int:
        """gpushare_ticket_poll: 1, 0, or the negated status."""

    def drop(self, runtime: Use, ticket: int, /) -> None:
        """gpushare_ticket_release, whatever its status."""

    def mark(self, runtime: Use, ticket: int, streams: tuple[int, ...], /) -> int:
        """gpushare_token_stream_mark: the status."""

    def pool_open(self, limit_bytes: int, malloc: int, free: int, get_last_error: int, /) -> tuple[int, int, int]:
        """A memory pool with a limit (native/memory_pool.h): its number, and the addresses of its alloc and free. The
        arguments are addresses of functions of the CUDA runtime."""

    def pool_state(self, pool: int, /) -> tuple[int, int]:
        """The bytes that the pool has, and how many allocations its limit refused."""

    def pool_close(self, pool: int, /) -> None:
        """The number may be used again once the pool's memory is freed."""

    def gate_open(self, runtime: int, first: int, second: int, stream: int, outstanding_ns: int,
                  library: tuple[int, ...], driver: tuple[int, ...], cupti: tuple[int, ...], /) -> object:
        """The gate of an eager loop (native/gate_calls.h) with two queues of its app. The tuples are addresses."""

    def gate_operation(self, gate: object, key: int, /) -> int:
        """Before an operation. 0; 1: gate_launched must follow it; below 0: a status with its sign changed."""

    def gate_launched(self, gate: object, /) -> None: ...

    def gate_counts(self, gate: object, /) -> tuple[int, int, int, int, int, int]:
        """Operations, regions, refusals, operations on credit, operations measured alone, ns that they waited."""

    def gate_close(self, gate: object, /) -> int:
        """The status that opened the gate for good, or 0."""


def load(functions: abi.Functions) -> Steps | None:
    """The module, bound to the loaded library. None: there is none, or it does not fit this interpreter."""
    given = os.environ.get('GPUSHARE_PYTHON_STEPS')
    path = given if given is not None else str(pathlib.Path(__file__).parent / _FILE)
    if not path or (given is None and not os.path.isfile(path)):
        return None
    # A file that is given by its path is loaded whatever its suffix, and a free-threaded Python would crash in it.
    if '.abi3.so' not in importlib.machinery.EXTENSION_SUFFIXES:
        return None
    try:
        steps = _module_of(path)
        steps.bind(*(ctypes.cast(getattr(functions, name), ctypes.c_void_p).value for name in _BOUND),
                   ctypes.sizeof(abi.gpushare_completion_record))
    except (ImportError, AttributeError, TypeError) as error:
        logging.getLogger(__name__).warning('The package uses ctypes for each step: %s', error)
        return None
    return steps  # type: ignore[no-any-return]


def _module_of(path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader('gpushare.steps', path)
    spec = importlib.util.spec_from_file_location('gpushare.steps', path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
