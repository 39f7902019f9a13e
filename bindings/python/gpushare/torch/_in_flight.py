"""What queries in flight use: the events that they wait for, and the newest query of each graph.

The queries of a server are of one queue, which completes them in order.

Threads: the caller's lock guards the calls, but lost() may come from any thread.
"""

from __future__ import annotations

import collections
import time
from typing import Any

from gpushare.app import App
from gpushare.enums import Drive
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket

NAP_S = 0.0001  # between two looks at whether queries without a ticket are complete


class InFlight:
    """`events` must live as long as a query may wait for them: Runtime.keep holds it."""

    def __init__(self, runtime: Runtime, app: App) -> None:
        self._runtime = runtime
        self._app = app
        # The events of each query that waits for some, oldest first, and the tickets of those queries.
        self.events: collections.deque[list[Any]] = collections.deque()
        self._tickets: collections.deque[Ticket] = collections.deque()
        # The newest query of each graph. None: it has no ticket, because its wait was interrupted.
        self._newest: dict[str, Ticket | None] = {}

    def add(self, graph: str, ticket: Ticket, events: list[Any]) -> None:
        """A query was submitted, which waits for the events."""
        self._newest[graph] = ticket
        if events:
            self._prune()
            self.events.append(events)
            self._tickets.append(ticket)

    def lost(self, graph: str) -> None:
        """A query of the graph may be in flight without a ticket."""
        self._newest[graph] = None

    def wait(self, graph: str) -> None:
        """Waits until no query of the graph is in flight."""
        if graph not in self._newest:
            return
        ticket = self._newest[graph]
        if ticket is not None and ticket.value:
            ticket.wait_complete()
        else:
            self.drain()
        self._newest.pop(graph, None)

    def drain(self) -> None:
        """Waits until no task of the app is in flight."""
        while self._app.stats().queue_depth > 0:
            if self._runtime.drive == Drive.POLL:
                self._runtime.poll()
            else:
                time.sleep(NAP_S)

    def clear(self) -> None:
        """No query is in flight."""
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
