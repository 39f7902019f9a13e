"""Waits in slices of SLICE_NS, so that Ctrl-C ends a wait: Python handles a signal only between two calls of C.

Each slice is a use of the runtime's handle (_use.py), so the close of a runtime ends the waits of other threads
within a slice.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from gpushare import _library, abi
from gpushare._library import check, library
from gpushare._use import Use
from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError

SLICE_NS = 100_000_000


def now_ns(runtime: int) -> int:
    time = ctypes.c_int64()
    check(library().gpushare_now_ns(runtime, ctypes.byref(time)))
    return time.value


def deadline_ns(runtime: int, timeout_s: float | None) -> int:
    """The time on the device's clock at which a timeout ends. None: never."""
    if timeout_s is None:
        return abi.GPUSHARE_NEVER
    if not timeout_s >= 0:
        raise InvalidArgumentError(Status.INVALID_ARGUMENT, f'timeout_s is {timeout_s}, and it must be at least 0.')
    return min(abi.GPUSHARE_NEVER, now_ns(runtime) + int(min(timeout_s, 1e9) * 1e9))


def wait(use: Use, call: Callable[[int, int], int], timeout_s: float | None) -> None:
    """Repeats a C call that takes the runtime and a deadline, slice by slice, until it is done or it is too late."""
    deadline = None
    while True:
        with use as runtime:
            if deadline is None:
                deadline = deadline_ns(runtime, timeout_s)
            until = min(deadline, now_ns(runtime) + SLICE_NS)
            status = call(runtime, until)
        if status != Status.DEADLINE_EXCEEDED or until >= deadline:
            check(status)
            return


def ticket_wait(runtime: int, ticket: int, deadline: int) -> int:
    """Waits for one slice. The status: DEADLINE_EXCEEDED at its end too."""
    if _library.steps is not None:
        return _library.steps.wait(runtime, ticket, deadline, SLICE_NS)
    until = min(deadline, now_ns(runtime) + SLICE_NS)
    status: int = library().gpushare_ticket_wait(runtime, abi.gpushare_ticket(ticket), until)
    return status


def wait_for_ticket(use: Use, ticket: int, timeout_s: float | None, done: Callable[[int], None]) -> None:
    """Waits until the task is complete, and calls `done` with the runtime: once the use ends, a close may free it."""
    deadline = None
    while True:
        with use as runtime:
            if deadline is None:
                deadline = deadline_ns(runtime, timeout_s)
            status = ticket_wait(runtime, ticket, deadline)
            if status == Status.OK:
                return done(runtime)
            if status != Status.DEADLINE_EXCEEDED or now_ns(runtime) >= deadline:
                check(status)
