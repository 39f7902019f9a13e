"""The part of a runtime that apps, kernels and tickets use: its handle, waits, futures and close.

Runtime derives from RuntimeBase and makes these objects. They import RuntimeBase alone, so that no imports form a
circle.

At the end of the interpreter open runtimes are closed first: the library's threads must end while callbacks can
still run. In a child after fork() the package does nothing; every call raises
FailedPreconditionError there.
"""

from __future__ import annotations

import atexit
import collections
import os
import threading
import weakref
from typing import Any

from gpushare import _callbacks, _waits
from gpushare._completions import Completions
from gpushare._handle import Handle
from gpushare._library import check, library
from gpushare.enums import Status
from gpushare.errors import FailedPreconditionError

CLOSE_TIMEOUT_S = 30.0

_open: weakref.WeakSet[RuntimeBase] = weakref.WeakSet()


class RuntimeBase(Handle):
    """Closes a runtime and every object that it made, in an order that is safe with tasks in flight."""

    _release = 'gpushare_runtime_release'

    def __init__(self, handle: int) -> None:
        self._children: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._leftovers: collections.deque[tuple[str, int]] = collections.deque()
        self._lock = threading.Lock()
        self._close_lock = threading.RLock()
        self._closing = False
        self._waiter: Completions | None = None
        self._kept: list[Any] = []
        super().__init__(handle)
        _open.add(self)

    @property
    def closing(self) -> bool:
        """Whether close() has begun."""
        return self._closing or self.closed

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Shuts down, then gives everything back that the runtime made. A second call does nothing.

        Raises DeadlineExceededError if some work was cut off at the timeout, which is on the device's clock, and
        FailedPreconditionError in a callback of a future. Of two threads that close, the second waits for the first.
        """
        waiter = self._waiter
        if waiter is not None and waiter.on_thread() and not self.closed:
            raise FailedPreconditionError(
                Status.FAILED_PRECONDITION, 'A callback of a future cannot close its runtime: the close waits for it.')
        self._close(timeout_s)

    def __del__(self) -> None:
        use = getattr(self, '_use', None)
        if use is None or use.handle is None:
            return
        if not _callbacks.inside():
            try:
                self._close(CLOSE_TIMEOUT_S)
            except Exception:  # no caller is left; or a C callback of the caller runs, which inside() does not know
                pass
        if not self.closed:
            _callbacks.elsewhere(self._close_dropped)

    def _close_dropped(self) -> None:
        self._close(CLOSE_TIMEOUT_S)

    def _close(self, timeout_s: float) -> None:
        if os.getpid() != self._process:  # after fork() the lock may be held by a thread that is not in this process
            self._use.handle = None
            return
        with self._close_lock:
            if self._closing:  # a signal handler calls close() on the thread that is closing
                return
            self._closing = True
            try:
                self._close_once(timeout_s)
            finally:
                self._closing = False

    def _close_once(self, timeout_s: float) -> None:
        if self.closed:
            return
        failure = None
        with self._use as handle:
            status = library().gpushare_runtime_shutdown(handle, _waits.deadline_ns(handle, timeout_s))
        if status == Status.FAILED_PRECONDITION:
            check(status)  # raises: inside a callback nothing can be closed
        try:
            check(status)
        except Exception as error:
            failure = error
        with self._lock:
            waiter = self._waiter
        if waiter is not None:
            waiter.close()
        self._use.end()  # first: with its app a ticket ends that another thread may wait for
        try:
            for child in list(self._children):
                child.close()
            self._release_leftovers()
        finally:
            _open.discard(self)
            super().close()
        self._release_leftovers()  # again: a child may have been dropped meanwhile
        self._kept.clear()
        if failure is not None:
            raise failure

    def keep(self, memory: Any) -> None:
        """Keeps an object alive that tasks in flight use, until unkeep() or close()."""
        self._kept.append(memory)

    def unkeep(self, memory: Any) -> None:
        """Ends keep() for this object."""
        self._kept = [kept for kept in self._kept if kept is not memory]

    def _completions(self) -> Completions:
        with self._lock:
            if self.closed:
                raise self._use.closed_error()
            if self._waiter is None:
                self._waiter = Completions()
            return self._waiter

    def _adopt(self, child: Handle) -> None:
        """Registers a handle that close() must close."""
        self._children.add(child)

    def _release_later(self, release: str, handle: int) -> None:
        """Keeps a handle that has tasks in flight. `release` is the C function that gives it back."""
        self._leftovers.append((release, handle))
        if self.closed:  # a callback dropped the runtime's last reference
            _callbacks.elsewhere(self._release_leftovers)

    def _release_leftovers(self) -> None:
        """Releases the handles of _release_later() that have no tasks in flight any more."""
        for _ in range(len(self._leftovers)):
            try:
                release, handle = self._leftovers.popleft()
            except IndexError:  # another thread took the last one
                return
            if getattr(library(), release)(handle) == Status.FAILED_PRECONDITION:
                self._leftovers.append((release, handle))


def _close_all() -> None:
    for runtime in list(_open):
        try:
            runtime.close()
        except Exception:  # the timeout cut work off; the process ends anyway
            continue
    _callbacks.finish()


atexit.register(_close_all)
