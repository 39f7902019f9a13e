"""BE tasks of one queue, which run one after another, and the memory that they use while they are in flight.

A task that fails also fails the tasks behind it that were submitted before it failed, and the later parts of its pass.

Threads: the caller's, one at a time.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpushare.app import Queue
from gpushare.kernel import Kernel
from gpushare.ticket import Ticket
from gpushare.torch._tensors import native_events

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gpushare.options import TaskOptions


class Chain:
    def __init__(self, queue: Queue, simulated: bool) -> None:
        self._queue = queue
        self._simulated = simulated
        # The newest task.
        self.last: Ticket | None = None
        # The newest task of the pass.
        self._part: Ticket | None = None
        # What tasks in flight use, oldest first, and the tickets of those tasks. Runtime.keep gets the first deque
        # alone: a ticket keeps its app.
        self.memory: collections.deque[Any] = collections.deque()
        self._tickets: collections.deque[Ticket] = collections.deque()

    def begin_pass(self) -> None:
        """The tasks from now on are one whole, such as copies and the step that reads them: it fails if one fails."""
        self._part = None

    def submit(self, kernel: Kernel | None = None, *, event: Any = None, wait_tickets: Sequence[Ticket] = (),
               uses: Sequence[Any] = (), **options: Unpack[TaskOptions]) -> Ticket:
        """Submits a task behind the newest one. It starts behind `event`, and keeps `uses` until it is complete."""
        self._forget_complete()
        held = [*uses] if event is None else [event, *uses]
        if held:
            self.memory.append(held)
        events = [] if event is None else native_events(self._simulated, [event])
        try:
            ticket = self._queue.submit(kernel, wait_events=events, wait_tickets=[*self._before(), *wait_tickets],
                                        **options)
        except Exception:
            if held:
                self.memory.pop()  # no task was submitted that uses it
            raise
        if held:
            self._tickets.append(ticket)
        self.last = self._part = ticket
        return ticket

    def _before(self) -> list[Ticket]:
        """What the next task waits for: the newest task, unless it is of an earlier pass and complete."""
        if self._part is not None and self._part.value:
            return [self._part]
        return [] if self.last is None or not self.last.value or self.last.done() else [self.last]

    def _forget_complete(self) -> None:
        complete = 0
        for number, ticket in enumerate(self._tickets, 1):
            if not ticket.value:  # the caller released it: it is complete where a later task is
                continue
            if not ticket.done():
                break
            complete = number
        for _ in range(complete):
            self._tickets.popleft()
            self.memory.popleft()
