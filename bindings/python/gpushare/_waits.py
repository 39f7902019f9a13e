"""Waits in slices of SLICE_NS, so that Ctrl-C ends a wait: Python handles a signal only between two calls of C.

Each slice is a use of the runtime's handle (_use.py), so the close of a runtime ends the waits of other threads
within a slice.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from gpushare import abi
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
    timeout = timeout_ns(timeout_s)
    return timeout if timeout == abi.GPUSHARE_NEVER else min(abi.GPUSHARE_NEVER, now_ns(runtime) + timeout)


def timeout_ns(timeout_s: float | None) -> int:
    """A timeout from the begin of a call on."""
    if timeout_s is None:
        return abi.GPUSHARE_NEVER
    if not timeout_s >= 0:
        raise InvalidArgumentError(Status.INVALID_ARGUMENT, f'timeout_s is {timeout_s}, and it must be at least 0.')
    return int(min(timeout_s, 1e9) * 1e9)


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
