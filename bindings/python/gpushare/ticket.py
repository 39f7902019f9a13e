"""A ticket: what a submit returns for its task. It can be waited for, awaited, cancelled and dropped."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import os
import threading
from collections.abc import Generator
from typing import Any

from gpushare import _waits, abi
from gpushare._handle import Handle
from gpushare._library import check, library
from gpushare._runtime_base import RuntimeBase
from gpushare._structs import init
from gpushare._use import Use
from gpushare.enums import Status, Verdict
from gpushare.errors import FailedPreconditionError, InvalidArgumentError, TaskError
from gpushare.records import CompletionRecord

_future_lock = threading.Lock()
_record_lock = threading.RLock()  # reentrant: drop() may free objects whose finalizers wait for tickets


class Ticket:
    """One submitted task. A task whose ticket is dropped goes on, and its record is lost.

    wait(), await and future() give the completion record of a task that ended with Verdict.OK, and raise
    TaskError for every other verdict. record() gives the record whatever the verdict.
    """

    __slots__ = ('_ended', '_enqueued', '_future', '_process', '_queue', '_record', '_runtime', '_value')

    def __init__(self, runtime: RuntimeBase, queue: Handle, value: int, enqueued: Any = None) -> None:
        self._runtime = runtime
        self._queue = queue
        self._value = value
        self._enqueued = enqueued
        self._ended: abi.gpushare_completion_record | None = None  # as C gave it
        self._record: CompletionRecord | None = None
        self._future: concurrent.futures.Future[CompletionRecord] | None = None
        self._process = os.getpid()

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
        return self._runtime.handle

    @property
    def runtime_use(self) -> Use:
        """The runtime's handle, for a with block."""
        return self._runtime._use

    def done(self) -> bool:
        """Whether the task is complete. With Drive.POLL it does not drive the flow."""
        if self._ended is not None:
            return True
        complete = ctypes.c_int32()
        with self._runtime._use as handle:
            check(library().gpushare_ticket_poll(handle, self.c_value, ctypes.byref(complete)))
        return bool(complete.value)

    def wait(self, timeout_s: float | None = None) -> CompletionRecord:
        """Waits until the task is complete; Ctrl-C ends the wait. The timeout is on the device's clock.

        Raises DeadlineExceededError after the timeout, and TaskError as result() does.
        """
        self.wait_complete(timeout_s)
        return self.result()

    def wait_ok(self, timeout_s: float | None = None) -> None:
        """As wait(), but makes no record of a task that ended with Verdict.OK: for a loop of short steps."""
        self.wait_complete(timeout_s)
        if self._ended is None or self._ended.verdict != Verdict.OK or self._enqueued is not None:
            self.result()

    def wait_complete(self, timeout_s: float | None = None) -> None:
        """As wait(), but returns for every verdict and raises no TaskError."""
        if self._ended is None:
            _waits.wait_for_ticket(self._runtime._use, self._value, timeout_s, self._read_record)

    def record(self) -> CompletionRecord:
        """The completion record of the task, which must be complete."""
        if self._ended is None:
            with self._runtime._use as runtime:
                self._read_record(runtime)
        with _record_lock:  # threads that ask at once get the same object
            if self._record is None:
                assert self._ended is not None
                self._record = CompletionRecord.from_c(self._ended)
        return self._record

    def _read_record(self, runtime: int) -> None:
        """Keeps what the library says of the complete task, which a release of the ticket would end."""
        struct = init(abi.gpushare_completion_record)
        check(library().gpushare_ticket_record(runtime, self.c_value, ctypes.byref(struct)))
        self._ended = struct
        if self._enqueued is not None:
            self._enqueued.drop()  # a complete task never calls its enqueue function

    def result(self) -> CompletionRecord:
        """The record of a complete task. Raises TaskError unless the verdict is OK.

        An exception that left the task's enqueue function is the __cause__ of that TaskError.
        """
        record = self.record()
        raised = None if self._enqueued is None else self._enqueued.error
        if record.verdict != Verdict.OK or raised is not None:
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
            if status == Status.FAILED_PRECONDITION and os.getpid() == self._process:
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

    def _check_usable(self) -> None:
        """Raises if the ticket cannot be used, with FailedPreconditionError if its runtime is being closed."""
        try:
            self.done()
        except InvalidArgumentError:
            if self._runtime.closing:
                raise FailedPreconditionError(Status.FAILED_PRECONDITION, 'This Runtime is closed.') from None
            raise

    def __await__(self) -> Generator[Any, None, CompletionRecord]:
        return asyncio.wrap_future(self.future()).__await__()

    def release(self) -> None:
        """Releases the ticket now and not by garbage collection. A record that was read before stays."""
        if self._value and not self._runtime.closed and os.getpid() == self._process:
            with self._runtime._use as handle:
                check(library().gpushare_ticket_release(handle, self.c_value))
        self._value = 0

    def __del__(self) -> None:
        try:
            self.release()
        except Exception:  # the library has ended this ticket, or the interpreter ends
            self._value = 0

    def __repr__(self) -> str:
        return f'<gpushare.Ticket {self._value}>'
