"""Functions of the caller that the library, or a thread of the package, calls.

A runtime cannot be shut down inside one: the shutdown would wait for the function. Garbage collection may drop
a runtime there, so that `elsewhere` closes it on a thread of its own.

Threads: any. elsewhere() is called by finalizers, so it takes no lock.
"""

from __future__ import annotations

import _thread
import collections
import threading
from collections.abc import Callable
from types import TracebackType

_local = threading.local()

# What threads of elsewhere() have not finished. finish() does it at the end of the interpreter.
_unfinished: collections.deque[Callable[[], None]] = collections.deque()


class Inside:
    """A with block around a call of the caller's function. What the block drops is dropped inside."""

    def __enter__(self) -> None:
        _local.depth = getattr(_local, 'depth', 0) + 1

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        _local.depth -= 1


def inside() -> bool:
    """Whether this thread is inside a function of the caller."""
    return getattr(_local, 'depth', 0) > 0


def elsewhere(function: Callable[[], None]) -> None:
    """Runs a function soon, on a thread that is not inside a callback. It may be called again at the end."""
    _unfinished.append(function)

    def run() -> None:
        try:
            function()
        except Exception:  # nobody is left to handle it
            pass
        finally:
            _unfinished.remove(function)

    try:
        _thread.start_new_thread(run, ())  # threading.Thread takes a lock that the finalizer's thread may hold
    except RuntimeError:  # the interpreter ends, or the process has too many threads: finish() runs it
        pass


def finish() -> None:
    """Runs what is not finished."""
    for function in list(_unfinished):
        try:
            function()
        except Exception:  # work was cut off, and the process ends
            continue
