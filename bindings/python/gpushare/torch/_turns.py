"""Turns: one caller at a time, in the order of the calls, whether it waits in a thread or in asyncio.

    with turns: ...            # a thread waits
    async with turns: ...      # a coroutine waits and its loop goes on

Threads: any.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import threading
from types import TracebackType


class Turns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: collections.deque[concurrent.futures.Future[None]] = collections.deque()

    def __enter__(self) -> None:
        turn = self._ask()
        try:
            turn.result()
        except BaseException:  # Ctrl-C
            self._refuse(turn)
            raise

    async def __aenter__(self) -> None:
        turn = self._ask()
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

    def _ask(self) -> concurrent.futures.Future[None]:
        """A future that is done when it is the caller's turn."""
        turn: concurrent.futures.Future[None] = concurrent.futures.Future()
        with self._lock:
            if self._taken:
                self._waiting.append(turn)
            else:
                self._taken = True
                turn.set_result(None)
        return turn

    def _refuse(self, turn: concurrent.futures.Future[None]) -> None:
        """The caller does not wait any more; it may have got its turn meanwhile."""
        if not turn.cancel() and not turn.cancelled():
            self._give()

    def _give(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._taken = False
