"""Keeps steps submitted: as many as `outstanding`, each with the next batch, until something ends it.

Between two submits it waits in a call of C, without the interpreter's lock, for half of what is outstanding. So it
takes the lock once every outstanding / 2 steps, for some 50 us a step.

Threads: run() belongs to one thread; stop() may be called from any.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable
from typing import Any

from gpushare.enums import Verdict
from gpushare.errors import ResourceExhaustedError
from gpushare.ticket import Ticket


class Feeder:
    def __init__(self, submit: Callable[[Any], Ticket], batches: Iterable[Any], outstanding: int,
                 count: Callable[[], None], tell: Callable[[], None]) -> None:
        if outstanding < 1:
            raise ValueError(f'outstanding is {outstanding}, and it must be at least 1.')
        self._submit = submit
        self._batches = batches
        self._outstanding = outstanding
        self._count = count  # called for each step that ended well, in order
        self._tell = tell  # called after it, until something fails
        self._stop = threading.Event()
        self._tickets: collections.deque[Ticket] = collections.deque()

    def stop(self) -> None:
        """No further step is submitted."""
        self._stop.set()

    def run(self) -> int:
        """Feeds until the batches end or stop() is called, then waits for the steps. Returns how many it submitted.

        Raises what a step, `tell` or the batches raise, when the steps that were submitted are complete.
        """
        submitted = 0
        try:
            for batch in self._batches:
                if self._stop.is_set():
                    break
                self._add(batch)
                submitted += 1
                if len(self._tickets) >= self._outstanding:
                    self._collect((self._outstanding + 1) // 2)
                if self._stop.is_set():  # before the next batch, which may take long
                    break
            self._collect(len(self._tickets))
        except Exception:
            self._drain()
            raise
        return submitted

    def _add(self, batch: Any) -> None:
        while True:
            try:
                self._tickets.append(self._submit(batch))
                return
            except ResourceExhaustedError:
                if not self._tickets:  # other tasks fill the app, or its tasks_max is too small for one step
                    raise
                self._collect(1)

    def _collect(self, count: int) -> None:
        """Waits for the oldest steps at once, and counts them."""
        if count:
            self._tickets[count - 1].wait_complete()
        for _ in range(count):
            self._tickets[0].wait_ok()
            self._tickets.popleft()
            self._count()
            self._tell()

    def _drain(self) -> None:
        """Waits for what was submitted before something failed. The first exception says more than later ones."""
        for ticket in self._tickets:
            try:
                ticket.wait_complete()
                if ticket.record().verdict == Verdict.OK:
                    self._count()
            except Exception:
                continue
