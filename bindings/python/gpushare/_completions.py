"""Resolves the futures of a runtime's tickets, on one thread of its own, and gives event loops what they watch.

A ticket has an eventfd, which the library makes readable when the task is complete. The thread waits for these
eventfds. A Python callback would instead run on the thread that drives the flow, and would delay launches while it
waits for the interpreter's lock. A queue launches its tasks in order. So at most ARMED_MAX awaited
tickets of a queue have an eventfd, which bounds the open file descriptors.

An event loop watches the eventfd of a ticket by itself, so that an `await` is one wake-up and not two:

    watch -> the loop adds a reader -> unwatch behind the end
                                    -> hand_over where the wait ends first: the thread watches from then on

Invariant: a descriptor is open while the thread (_armed) or a loop (_watched) has it, and both may.

Threads: any. Futures are resolved on the thread `gpushare-completions`.
"""

from __future__ import annotations

import collections
import concurrent.futures
import ctypes
import logging
import os
import select
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from gpushare import abi
from gpushare._callbacks import Inside
from gpushare._library import check, library
from gpushare._use import Use
from gpushare.enums import Status
from gpushare.errors import FailedPreconditionError
from gpushare.records import CompletionRecord

RecordFuture: TypeAlias = 'concurrent.futures.Future[CompletionRecord]'

ARMED_MAX = 32  # eventfds of one queue; each needs two file descriptors, one here and one in the library
RETRY_S = 0.01  # until the next attempt, when the process had no file descriptor left


class Awaited(Protocol):
    """The part of a ticket that is used here."""

    @property
    def runtime_use(self) -> Use: ...

    @property
    def c_value(self) -> abi.gpushare_ticket: ...

    def record(self) -> CompletionRecord: ...

    def result(self) -> CompletionRecord: ...


class _Lane:
    """The awaited tickets of one queue: the number with an eventfd, and those that wait for one, oldest first."""

    def __init__(self) -> None:
        self.armed = 0
        self.waiting: collections.deque[tuple[Awaited, RecordFuture]] = collections.deque()


class Completions:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: dict[int, _Lane] = collections.defaultdict(_Lane)
        self._armed: dict[int, tuple[int, Awaited, RecordFuture]] = {}  # by file descriptor
        self._watched: dict[Awaited, tuple[int, int]] = {}  # by a loop: the queue and the file descriptor
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._ready: collections.deque[tuple[Awaited, RecordFuture]] = collections.deque()
        self._closing = False
        self._ended: BaseException | None = None  # set when the thread has ended: the error of every later future
        self._thread = threading.Thread(target=self._run, name='gpushare-completions', daemon=True)
        self._thread.start()

    def add(self, queue: int, ticket: Awaited) -> RecordFuture:
        """A future of the ticket's record. It keeps the ticket until it is resolved."""
        future = _new_future()
        refused: list[tuple[RecordFuture, BaseException]] = []
        with self._lock:
            if self._ended is not None:
                refused = [(future, self._ended)]
            elif ticket in self._watched:
                self._share(ticket, future)
            else:
                lane = self._lanes[queue]
                lane.waiting.append((ticket, future))
                refused = self._arm(queue)
                self._wake_if_starved(lane)
        for _, error in refused:
            future.set_exception(error)
        return future

    def watch(self, queue: int, ticket: Awaited) -> int | None:
        """The eventfd of a ticket without a future, for an event loop. None: the thread must watch it (add)."""
        with self._lock:
            lane = self._lanes[queue]
            if (self._ended is not None or self._closing or ticket in self._watched or lane.waiting
                    or lane.armed >= ARMED_MAX):
                return None
            descriptor = _eventfd_of(ticket)
            if descriptor is not None:
                self._watched[ticket] = queue, descriptor
                lane.armed += 1
            return descriptor

    def unwatch(self, ticket: Awaited) -> None:
        """The task is complete, and the loop has no reader of the eventfd any more."""
        refused: list[tuple[RecordFuture, BaseException]] = []
        with self._lock:
            queue, descriptor = self._watched.pop(ticket)
            if descriptor not in self._armed:
                self._close_armed(queue, descriptor)
                if self._ended is None and (lane := self._lanes[queue]).waiting:
                    refused = self._arm(queue)
                    self._wake_if_starved(lane)
        for future, error in refused:
            _settle(future.set_exception, error)

    def hand_over(self, ticket: Awaited) -> RecordFuture | None:
        """As unwatch, of a task that is not complete: its future from now on. None: it has one, or the thread ended."""
        with self._lock:
            if ticket not in self._watched:
                return None
            queue, descriptor = self._watched[ticket]
            future = None
            try:
                if descriptor not in self._armed and self._ended is None:
                    self._share(ticket, unshared := _new_future())
                    future = unshared
            finally:
                del self._watched[ticket]
                if descriptor not in self._armed:
                    self._close_armed(queue, descriptor)
                    if self._ended is None:
                        self._wake_if_starved(self._lanes[queue])
        return future

    def on_thread(self) -> bool:
        """Whether the caller is the thread that resolves futures."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Resolves what is left and ends the thread. Every task must be complete."""
        with self._lock:
            self._closing = True
            watched = list(self._watched)
        for ticket in watched:  # their loops read the records later, when the runtime is closed
            try:
                ticket.record()
            except Exception:  # the loop gets the same one
                logging.getLogger(__name__).debug('An awaited ticket has no record.', exc_info=True)
        with self._lock:
            if self._ended is None:
                os.eventfd_write(self._wake, 1)
        if not self.on_thread():
            self._thread.join()

    def _arm(self, queue: int) -> list[tuple[RecordFuture, BaseException]]:
        """Gives the queue's oldest tickets an eventfd. Returns the futures for which that failed, with the error."""
        lane = self._lanes[queue]
        refused: list[tuple[RecordFuture, BaseException]] = []
        while lane.waiting and lane.armed < ARMED_MAX:
            ticket, future = lane.waiting[0]
            try:
                descriptor = _eventfd_of(ticket)
            except Exception as error:
                lane.waiting.popleft()
                refused.append((future, error))
                continue
            if descriptor is None:
                break
            lane.waiting.popleft()
            try:
                self._epoll.register(descriptor, select.EPOLLIN)
            except Exception as error:
                os.close(descriptor)
                refused.append((future, error))
                continue
            self._armed[descriptor] = (queue, ticket, future)
            lane.armed += 1
        return refused

    def _wake_if_starved(self, lane: _Lane) -> None:
        """The thread's poll sees a new eventfd by itself; only the next attempt to get one needs the thread."""
        if lane.waiting and not lane.armed:
            os.eventfd_write(self._wake, 1)

    def _share(self, ticket: Awaited, future: RecordFuture) -> None:
        """The thread watches what a loop watches."""
        queue, descriptor = self._watched[ticket]
        self._epoll.register(descriptor, select.EPOLLIN)
        self._armed[descriptor] = queue, ticket, future

    def _close_armed(self, queue: int, descriptor: int) -> None:
        os.close(descriptor)
        self._lanes[queue].armed -= 1

    def _run(self) -> None:
        try:
            with Inside():  # this thread runs callbacks of futures, and the close of a runtime waits for it
                self._serve()
        except BaseException as error:  # a future that is never resolved would block its waiter for ever
            self._abandon(error)
            raise
        finally:
            self._epoll.close()
            os.close(self._wake)

    def _abandon(self, error: BaseException) -> None:
        """Fails every future, and those that add() makes later."""
        with self._lock:
            self._ended = error
            left = [future for _, _, future in self._armed.values()] + [future for _, future in self._ready]
            left += [future for lane in self._lanes.values() for _, future in lane.waiting]
            watched = {descriptor for _, descriptor in self._watched.values()}
            for descriptor in self._armed.keys() - watched:
                os.close(descriptor)
            self._armed.clear()
            self._ready.clear()
            self._lanes.clear()
        for future in left:
            if not future.done():
                _settle(future.set_exception, error)

    def _serve(self) -> None:
        while True:
            with self._lock:
                if self._closing:  # every task is complete: nothing needs an eventfd
                    for lane in self._lanes.values():
                        self._ready.extend(lane.waiting)
                        lane.waiting.clear()
                starved = any(lane.waiting and not lane.armed for lane in self._lanes.values())
                if self._closing and not self._armed and not self._ready:
                    self._ended = FailedPreconditionError(Status.FAILED_PRECONDITION, 'This Runtime is closed.')
                    return
            events = self._epoll.poll(0 if self._ready else RETRY_S if starved else -1)
            refused = []
            with self._lock:
                for descriptor, _ in events:
                    if descriptor == self._wake:
                        os.eventfd_read(self._wake)
                        continue
                    queue, ticket, future = self._armed.pop(descriptor)
                    self._epoll.unregister(descriptor)
                    if ticket not in self._watched:
                        self._close_armed(queue, descriptor)
                    self._ready.append((ticket, future))
                for queue in list(self._lanes):
                    refused += self._arm(queue)
            for future, error in refused:
                _settle(future.set_exception, error)
            while self._ready:
                ticket, future = self._ready[0]
                _resolve(ticket, future)
                self._ready.popleft()
            del refused
            ticket = future = error = None  # type: ignore[assignment]  # a thread that waits keeps no ticket alive


def _new_future() -> RecordFuture:
    """One that runs cannot be cancelled. Cancelling it would not stop the task."""
    future: RecordFuture = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    return future


def _eventfd_of(ticket: Awaited) -> int | None:
    """None: the process has no file descriptor left, or the runtime no callback slot."""
    descriptor = ctypes.c_int()
    with ticket.runtime_use as handle:
        status = library().gpushare_ticket_eventfd(handle, ticket.c_value, ctypes.byref(descriptor))
        if status == Status.RESOURCE_EXHAUSTED:
            return None
        check(status)
    return descriptor.value


def _resolve(ticket: Awaited, future: RecordFuture) -> None:
    try:
        record = ticket.result()
    except BaseException as error:  # even a SystemExit that left an enqueue function: the thread must go on
        _settle(future.set_exception, error)
    else:
        _settle(future.set_result, record)


def _settle(settle: Callable[[Any], None], value: Any) -> None:
    try:
        settle(value)
    except BaseException:  # raised by a callback of the future, which has its result by now
        logging.getLogger(__name__).exception('A callback of a future raised an exception.')
