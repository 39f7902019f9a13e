"""Waits in short slices, so that Ctrl-C ends a wait: a signal is handled only between two calls of C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from gpushare import abi
from gpushare._library import check, library
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


def wait(runtime: int, call: Callable[[int], int], timeout_s: float | None) -> None:
    """Repeats a call that takes a deadline until it is done or the timeout has passed."""
    deadline = deadline_ns(runtime, timeout_s)
    while True:
        until = min(deadline, now_ns(runtime) + SLICE_NS)
        status = call(until)
        if status != Status.DEADLINE_EXCEEDED or until >= deadline:
            check(status)
            return
