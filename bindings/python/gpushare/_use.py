"""The C handle of an object, and the threads that call C with it.

    with use as handle:           # raises once the object is closed
        library().gpushare_...(handle, ...)
    use.close(release)            # later calls raise; release(handle) runs when no call has the handle any more

A handle must live as long as a call that uses it. `close` waits for the calls of other threads. A call of its own
thread can only be one that a signal handler interrupted, or one that runs the caller's callback: then the end of that
call releases the handle.

Threads: any. It takes no lock, because finalizers close handles. Appending to a list, removing and popping are atomic.
"""

from __future__ import annotations

import time
from _thread import get_ident
from collections.abc import Callable
from types import TracebackType

from gpushare.enums import Status
from gpushare.errors import FailedPreconditionError

# How long a close waits for calls of other threads. After that the last of them releases the handle.
CALLS_TIMEOUT_S = 30.0
NAP_S = 0.0001


class Use:
    """Each use is a with block, which gives the handle."""

    __slots__ = ('_owned', '_owner', '_releases', '_threads', 'handle')

    def __init__(self, handle: int, owner: str) -> None:
        self.handle: int | None = handle
        self._owner = owner
        self._owned = [handle]  # until a close takes it
        self._threads: list[int] = []  # one entry for each call
        self._releases: list[Callable[[], None]] = []

    def __enter__(self) -> int:
        self._threads.append(get_ident())
        # Read after the entry: a close takes the handle away before it looks for calls.
        handle = self.handle
        if handle is None:
            self.__exit__(None, None, None)
            raise self.closed_error()
        return handle

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._threads.remove(get_ident())
        if self._releases and not self._threads:
            self._release()

    def in_use(self) -> bool:
        """Whether a call uses the handle."""
        return bool(self._threads)

    def closed_error(self) -> FailedPreconditionError:
        return FailedPreconditionError(Status.FAILED_PRECONDITION, f'This {self._owner} is closed.')

    def close(self, release: Callable[[int], None]) -> None:
        """Ends the use of the handle. Raises what `release` raises, if it runs here."""
        try:
            handle = self._owned.pop()
        except IndexError:  # another thread closes it
            return
        self.end()
        self._releases.append(lambda: release(handle))
        if not self._threads:
            self._release()

    def end(self) -> None:
        """Takes the handle away, and waits for the calls of other threads. close() then releases it."""
        self.handle = None
        end = time.monotonic() + CALLS_TIMEOUT_S
        while self._used_elsewhere() and time.monotonic() < end:
            time.sleep(NAP_S)

    def _used_elsewhere(self) -> bool:
        own = get_ident()
        return any(thread != own for thread in list(self._threads))

    def _release(self) -> None:
        try:
            release = self._releases.pop()
        except IndexError:  # another call was the last one too
            return
        release()
