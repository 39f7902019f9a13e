"""A ticket: what a submit returns for its task. It can be waited for, awaited, cancelled and dropped."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Generator
from typing import Any

from gpushare import _by_ctypes, _callbacks, _library, _waits, abi
from gpushare._completions import Completions
from gpushare._handle import Handle
from gpushare._library import check, library
from gpushare._runtime_base import RuntimeBase
from gpushare._use import Use
from gpushare.enums import Status, Verdict
from gpushare.errors import FailedPreconditionError, InvalidArgumentError, TaskError
from gpushare.records import CompletionRecord

_future_lock = threading.Lock()
_OK = int(Verdict.OK)
_record_lock = threading.RLock()  # reentrant: drop() may free objects whose finalizers wait for tickets


class Ticket:
    """One submitted task. A task whose ticket is dropped goes on, and its record is lost.

    wait(), await and future() give the completion record of a task that ended with Verdict.OK, and raise
    TaskError for every other verdict. record() gives the record whatever the verdict.
    """

    __slots__ = ('_ended', '_enqueued', '_future', '_queue', '_record', '_runtime', '_value', '_verdict')

    def __init__(self, runtime: RuntimeBase, queue: Handle, value: int, enqueued: Any = None) -> None:
        self._runtime = runtime
        self._queue = queue
        self._value = value
        self._enqueued = enqueued
        self._ended: bytes | None = None  # the record as C gave it
        self._verdict = 0  # of the record
        self._record: CompletionRecord | None = None
        self._future: concurrent.futures.Future[CompletionRecord] | None = None

    @property
    def value(self) -> int:
        """The number that records and event logs use. 0 after release()."""
        return self._value

    @property
    def c_value(self) -> abi.gpushare_ticket:
        """The ticket as a C struct, for functions of gpushare.abi."""
        return abi.gpushare_ticket(self._value)

    @property
    def runtime_handle(self) -> int:
        """The C handle of the runtime, for functions of gpushare.abi."""
        return self._runtime.handle

    @property
    def runtime_use(self) -> Use:
        """The runtime's handle, for a with block."""
        return self._runtime._use

    def done(self) -> bool:
        """Whether the task is complete. With Drive.POLL it does not drive the flow."""
        if self._ended is not None:
            return True
        complete = (_library.steps or _by_ctypes).poll(self._runtime._use, self._value)
        if complete < 0:
            check(-complete)
        return complete > 0

    def wait(self, timeout_s: float | None = None) -> CompletionRecord:
        """Waits until the task is complete; Ctrl-C ends the wait. The timeout is on the device's clock.

        Raises DeadlineExceededError after the timeout, and TaskError as result() does.
        """
        if self._ended is None:
            self.wait_complete(timeout_s)
        return self.result()

    def wait_ok(self, timeout_s: float | None = None) -> None:
        """As wait(), but makes no record of a task that ended with Verdict.OK: for a loop of short steps."""
        if self._ended is None:
            self.wait_complete(timeout_s)
        if self._verdict != _OK or self._enqueued is not None:
            self.result()

    def wait_complete(self, timeout_s: float | None = None) -> None:
        """As wait(), but returns for every verdict and raises no TaskError."""
        if self._ended is None:
            timeout_ns = abi.GPUSHARE_NEVER if timeout_s is None else _waits.timeout_ns(timeout_s)
            self._keep((_library.steps or _by_ctypes).wait(self._runtime._use, self._value, timeout_ns,
                                                           _waits.SLICE_NS))

    def record(self) -> CompletionRecord:
        """The completion record of the task, which must be complete."""
        if self._record is None:
            if self._ended is None:
                self._keep((_library.steps or _by_ctypes).record(self._runtime._use, self._value))
            with _record_lock:  # threads that ask at once get the same object
                if self._record is None:
                    assert self._ended is not None
                    self._record = CompletionRecord.from_bytes(self._ended)
        return self._record

    def _keep(self, ending: tuple[int, bytes] | int) -> None:
        """Keeps what the library says of the complete task, which a release of the ticket would end."""
        if isinstance(ending, int):
            check(ending)
            return
        self._verdict, self._ended = ending
        if self._enqueued is not None:
            self._enqueued.drop()  # a complete task never calls its enqueue function

    def result(self) -> CompletionRecord:
        """The record of a complete task. Raises TaskError unless the verdict is OK.

        An exception that left the task's enqueue function is the __cause__ of that TaskError.
        """
        record = self._record or self.record()
        raised = None if self._enqueued is None else self._enqueued.error
        if self._verdict != _OK or raised is not None:
            raise TaskError(record, raised) from raised
        return record

    def cancel(self) -> bool:
        """Asks the library not to run the task, or to evict it. Returns False if it is complete or cannot be evicted.

        A task that is cancelled in time ends with Verdict.CANCELLED.
        """
        if self._ended is not None:
            return False
        with self._runtime._use as handle:
            status = library().gpushare_ticket_cancel(handle, self.c_value)
            if status == Status.FAILED_PRECONDITION and os.getpid() == self._runtime._process:
                return False
            check(status)
        return True

    def future(self) -> concurrent.futures.Future[CompletionRecord]:
        """A future of the record. Its callbacks run on a thread of the package and may submit.

        It cannot be cancelled; cancel() cancels the task. With Drive.POLL another thread must drive the flow.
        """
        if self._future is None:
            self._check_usable()
            with _future_lock:  # two threads must not make two eventfds of one ticket
                if self._future is None:
                    self._future = self._runtime._completions().add(self._queue.handle, self)
        return self._future

    def _check_usable(self) -> bool:
        """Whether the task is complete. Raises if the ticket cannot be used, with FailedPreconditionError if its
        runtime is being closed."""
        try:
            return self.done()
        except InvalidArgumentError:
            if self._runtime.closing:
                raise FailedPreconditionError(Status.FAILED_PRECONDITION, 'This Runtime is closed.') from None
            raise

    def __await__(self) -> Generator[Any, None, CompletionRecord]:
        """Gives the loop's other work a turn in every case. A cancelled wait leaves the task alone."""
        complete = self._check_usable()
        if self._future is None:
            completions = self._runtime._completions()  # raises where the runtime is closed
            if complete:
                self.record()  # before the other work, which may close the runtime
                yield
                return self.result()
            if (yield from self._await_here(asyncio.get_running_loop(), completions)):
                return self.result()
        return (yield from asyncio.wrap_future(self.future()).__await__())

    def _await_here(self, loop: asyncio.AbstractEventLoop, completions: Completions) -> Generator[Any, None, bool]:
        """Waits with a reader of the running loop. False: another one watches the ticket, or too many are watched."""
        with _future_lock:
            descriptor = completions.watch(self._queue.handle, self) if self._future is None else None
        if descriptor is None:
            return False
        ready = loop.create_future()
        added = False
        try:
            loop.add_reader(descriptor, _note_ready, loop, descriptor, ready)
            added = True
            yield from ready
        except BaseException as error:
            if added and (not ready.done() or ready.cancelled()):
                loop.remove_reader(descriptor)
            if isinstance(error, GeneratorExit):  # from a finalizer, perhaps, whose thread has a lock
                _callbacks.elsewhere(lambda: self._hand_over(completions))
            else:
                self._hand_over(completions)
            raise
        completions.unwatch(self)
        return True

    def _hand_over(self, completions: Completions) -> None:
        """The wait ended before the task: the package's thread watches it, for those who ask later."""
        with _future_lock:
            self._future = completions.hand_over(self) or self._future

    def release(self) -> None:
        """Releases the ticket now and not by garbage collection. A record that was read before stays."""
        runtime = self._runtime
        if self._value and not runtime.closed and os.getpid() == runtime._process:
            with runtime._use as handle:
                check(library().gpushare_ticket_release(handle, self.c_value))
        self._value = 0

    def __del__(self) -> None:
        try:
            if self._value and self._runtime._use.handle is not None:
                (_library.steps or _by_ctypes).drop(self._runtime._use, self._value)
        except Exception:  # the runtime is closed, or the interpreter ends
            pass

    def __repr__(self) -> str:
        return f'<gpushare.Ticket {self._value}>'


def _note_ready(loop: asyncio.AbstractEventLoop, descriptor: int, ready: asyncio.Future[None]) -> None:
    loop.remove_reader(descriptor)
    if not ready.done():
        ready.set_result(None)
