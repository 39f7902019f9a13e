"""Turns: one caller at a time, in the order of the calls, whether it waits in a thread or in asyncio.

    with turns: ...            # a thread waits
    async with turns: ...      # a coroutine waits and its loop goes on

A thread that runs a loop cannot wait behind a coroutine of that loop, which goes on only when the thread does: that
raises.

Threads: any.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import dataclasses
import threading
from types import TracebackType

from gpushare.enums import Status
from gpushare.errors import FailedPreconditionError


class Turns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._loop: asyncio.AbstractEventLoop | None = None  # of the coroutine that has the turn
        self._waiting: collections.deque[_Waiting] = collections.deque()

    def __enter__(self) -> None:
        turn = self._ask(None, _loop_here())
        try:
            turn.result()
        except BaseException:  # Ctrl-C
            self._refuse(turn)
            raise

    async def __aenter__(self) -> None:
        turn = self._ask(asyncio.get_running_loop(), None)
        try:
            await asyncio.wrap_future(turn)
        except BaseException:  # the coroutine was cancelled
            self._refuse(turn)
            raise

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._give()

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None,
                        trace: TracebackType | None) -> None:
        self._give()

    def _ask(self, loop: asyncio.AbstractEventLoop | None,
             blocked: asyncio.AbstractEventLoop | None) -> concurrent.futures.Future[None]:
        """A future that is done when it is the caller's turn.

        loop: of the coroutine that asks. blocked: the loop that stands still while the caller waits.
        """
        turn: concurrent.futures.Future[None] = concurrent.futures.Future()
        with self._lock:
            if self._taken:
                ahead = [self._loop, *(waiting.loop for waiting in self._waiting if not waiting.turn.done())]
                if blocked is not None and blocked in ahead:
                    raise FailedPreconditionError(
                        Status.FAILED_PRECONDITION, 'A coroutine of the event loop of this thread has its turn first, '
                        'and it cannot go on while the thread waits. Use await service.call(...) here.')
                self._waiting.append(_Waiting(turn, loop))
            else:
                self._taken = True
                self._loop = loop
                turn.set_result(None)
        return turn

    def _refuse(self, turn: concurrent.futures.Future[None]) -> None:
        """The caller does not wait any more; it may have got its turn meanwhile."""
        if not turn.cancel() and not turn.cancelled():
            self._give()

    def _give(self) -> None:
        with self._lock:
            while self._waiting:
                next_one = self._waiting.popleft()
                if next_one.turn.set_running_or_notify_cancel():
                    self._loop = next_one.loop
                    next_one.turn.set_result(None)
                    return
            self._taken = False
            self._loop = None


@dataclasses.dataclass(frozen=True)
class _Waiting:
    turn: concurrent.futures.Future[None]
    loop: asyncio.AbstractEventLoop | None  # of the coroutine that waits; None: a thread waits


def _loop_here() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs on this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
