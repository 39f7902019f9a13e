"""Callbacks: functions of the caller that the library or a thread of the package calls.

A callback cannot shut a runtime down, because the shutdown waits until the callback has returned. But garbage
collection may drop a runtime inside a callback. `elsewhere` then closes the runtime on another thread.

Threads: any. elsewhere() is called by finalizers, so it takes no lock.
"""

from __future__ import annotations

import _thread
import collections
import threading
from collections.abc import Callable
from types import TracebackType

_local = threading.local()

# Functions that elsewhere() has not completed. finish() runs them at the end of the interpreter.
_unfinished: collections.deque[Callable[[], None]] = collections.deque()


class Inside:
    """A with block around the call of a callback. inside() is true in it."""

    def __enter__(self) -> None:
        _local.depth = getattr(_local, 'depth', 0) + 1

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        _local.depth -= 1


def inside() -> bool:
    """Whether this thread is inside a callback."""
    return getattr(_local, 'depth', 0) > 0


def elsewhere(function: Callable[[], None]) -> None:
    """Runs a function soon, on another thread. finish() may run it a second time."""
    _unfinished.append(function)

    def run() -> None:
        try:
            function()
        except Exception:  # no caller is left that could handle it
            pass
        finally:
            _unfinished.remove(function)

    try:
        _thread.start_new_thread(run, ())  # threading.Thread takes a lock that this thread may hold already
    except RuntimeError:  # the interpreter ends, or the process has too many threads: finish() runs it
        pass


def finish() -> None:
    """Runs every function of elsewhere() that has not completed."""
    for function in list(_unfinished):
        try:
            function()
        except Exception:  # the timeout cut work off; the process ends anyway
            continue
