"""What queries in flight use: the events that they wait for, and the newest query of each graph.

The queries of a server are of one queue, which completes them in order.

Threads: any.
"""

from __future__ import annotations

import collections
import threading
import time
from typing import Any

from gpushare.app import App
from gpushare.enums import Drive
from gpushare.kernel import Kernel
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket

NAP_S = 0.0001  # between two looks at whether queries without a ticket are complete


def drain(runtime: Runtime, app: App) -> None:
    """Waits until the tasks of the app that are in flight now are complete. Later ones do not delay it.

    Where later ones are submitted meanwhile, the app's tasks must complete in order.
    """
    submitted = app.stats().submitted
    while True:
        stats = app.stats()
        if stats.queue_depth == 0 or stats.submitted - stats.queue_depth >= submitted:
            return
        if runtime.drive == Drive.POLL:
            runtime.poll()
        else:
            time.sleep(NAP_S)


class InFlight:
    """`events` must live as long as a query may wait for them: Runtime.keep holds it."""

    def __init__(self, runtime: Runtime, app: App) -> None:
        self._runtime = runtime
        self._app = app
        self._lock = threading.Lock()
        # The events of each query that waits for some, oldest first, and the tickets of those queries.
        self.events: collections.deque[list[Any]] = collections.deque()
        self._tickets: collections.deque[Ticket] = collections.deque()
        # The newest query of each graph that has a ticket.
        self._newest: dict[str, Ticket] = {}
        # A new object for each run() of a graph that left its query in flight, without a ticket: Queue._run adds it
        # before it ends its use of the kernel. The object is done with when a wait has seen it.
        self.left: dict[str, object] = {}
        self._seen: dict[str, object] = {}

    def add(self, graph: str, ticket: Ticket, events: list[Any]) -> None:
        """A query was submitted, which waits for the events."""
        with self._lock:
            self._newest[graph] = ticket
            if events:
                self._prune()
                self.events.append(events)
                self._tickets.append(ticket)

    def wait(self, graph: str, kernel: Kernel) -> None:
        """Waits until no query of the graph is in flight that was when it was called."""
        running = kernel._use.in_use()  # a run() may be under way, whose query has no ticket
        left = self.left.get(graph)  # read after that: a run() that is over by then has left its object
        with self._lock:
            newest = self._newest.get(graph)
        unseen = left is not self._seen.get(graph)
        if newest is None and not running and not unseen:
            return
        if newest is not None and newest.value and not running and not unseen:
            newest.wait_complete()
        else:
            self.drain()
        if left is not None:
            self._seen[graph] = left
        with self._lock:
            if self._newest.get(graph) is newest:  # another thread may have submitted one
                self._newest.pop(graph, None)

    def drain(self) -> None:
        """Waits until no task of the app is in flight that was when it was called."""
        drain(self._runtime, self._app)

    def clear(self) -> None:
        """No query is in flight."""
        with self._lock:
            self.events.clear()
            self._tickets.clear()
            self._newest.clear()

    def _prune(self) -> None:
        """Drops the events of complete queries. Whether one is, without its ticket only a later one says."""
        complete = 0
        for number, ticket in enumerate(self._tickets, 1):
            if ticket.value:
                if not ticket.done():
                    break
                complete = number
        for _ in range(complete):
            self.events.popleft()
            self._tickets.popleft()
