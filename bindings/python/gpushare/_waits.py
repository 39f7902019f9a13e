"""Waits in slices of SLICE_NS, so that Ctrl-C ends a wait: Python handles a signal only between two calls of C.

A handle must live as long as a call that uses it. So the close of a runtime ends the waits of other threads before
it releases the handle.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from types import TracebackType

from gpushare import abi
from gpushare._library import check, library
from gpushare.enums import Status
from gpushare.errors import FailedPreconditionError, InvalidArgumentError

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


class Waits:
    """The threads that wait for one runtime. Each wait is a with block."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._threads: list[int] = []
        self._ended = False

    def __enter__(self) -> None:
        with self._changed:
            self.check()
            self._threads.append(threading.get_ident())

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        with self._changed:
            self._threads.remove(threading.get_ident())
            self._changed.notify_all()

    def check(self) -> None:
        if self._ended:
            raise FailedPreconditionError(Status.FAILED_PRECONDITION, 'This Runtime is closed.')

    def end(self) -> None:
        """Ends the waits of other threads, each within SLICE_NS, and refuses new ones.

        It does not wait for its own thread: that one waits only if a signal handler interrupted it and closes the
        runtime. Its next slice then fails.
        """
        own = threading.get_ident()
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: all(thread == own for thread in self._threads))


def wait(waits: Waits, runtime: int, call: Callable[[int], int], timeout_s: float | None) -> None:
    """Repeats a C call that takes a deadline, slice by slice, until it is done or the timeout has passed."""
    with waits:
        deadline = deadline_ns(runtime, timeout_s)
        while True:
            until = min(deadline, now_ns(runtime) + SLICE_NS)
            status = call(until)
            if status != Status.DEADLINE_EXCEEDED or until >= deadline:
                check(status)
                return
            waits.check()
