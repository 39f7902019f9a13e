"""The calls of a step by ctypes: what gpushare._steps does, for an interpreter that cannot load that extension.

_native.Steps says what each function takes and gives.

Threads: any.
"""

from __future__ import annotations

import ctypes
from typing import Any

from gpushare import abi
from gpushare._library import library
from gpushare._use import Use
from gpushare.enums import Status, Verdict

_TASK_SIZE = ctypes.sizeof(abi.gpushare_task_options)
_RECORD_SIZE = ctypes.sizeof(abi.gpushare_completion_record)


def run(runtime: Use, queue: Use, kernel: Use, calls: Use | None, arguments: bytes, query: int, arrival_ns: int,
        next_within_ns: int, timeout_ns: int, slice_ns: int, left: dict[str, object] | None, name: str,
        runtime_handle: int, /) -> tuple[int, int, int, bytes | None] | None:
    if calls is not None:
        with calls:
            return run(runtime, queue, kernel, None, arguments, query, arrival_ns, next_within_ns, timeout_ns,
                       slice_ns, left, name, runtime_handle)
    slices = _Slices(timeout_ns, slice_ns)
    verdict, ticket = ctypes.c_int32(), abi.gpushare_ticket()
    record = None
    try:
        with queue as queue_handle, kernel as kernel_handle:
            struct = _task(kernel_handle, arguments, query, arrival_ns, next_within_ns)
            well = False
            try:
                slices.next(runtime_handle)
                status = library().gpushare_run_lc(queue_handle, ctypes.byref(struct), slices.until_ns,
                                                   ctypes.byref(verdict), ctypes.byref(ticket))
                if status == Status.OK and ticket.value:
                    status, record = _record(runtime_handle, ticket)
                well = status == Status.OK and verdict.value == Verdict.OK
            finally:
                if not well and left is not None:
                    left[name] = object()
        if status == Status.DEADLINE_EXCEEDED and ticket.value and not slices.is_last():
            status, record = _wait(runtime, ticket, slices)
    except BaseException:  # Ctrl-C, or a close: the caller never gets the ticket
        _release(runtime, ticket)
        raise
    ended = verdict.value if record is None else record.verdict
    if status == Status.OK and ended == Verdict.OK:
        _release(runtime, ticket)
        return None
    return status, ticket.value, ended, None if record is None else bytes(record)


def submit(queue: Use, kernel: Use, best_effort: int, arguments: bytes, query: int, arrival_ns: int,
           next_within_ns: int, block_tasks: int, events: tuple[int, ...], /) -> int:
    call = library().gpushare_submit_be if best_effort else library().gpushare_submit_lc
    ticket = abi.gpushare_ticket()
    with queue as queue_handle, kernel as kernel_handle:
        struct = _task(kernel_handle, arguments, query, arrival_ns, next_within_ns)
        struct.block_tasks = block_tasks
        if events:
            struct.wait_events = (ctypes.c_void_p * len(events))(*events)
            struct.wait_event_count = len(events)
        status = call(queue_handle, ctypes.byref(struct), ctypes.byref(ticket))
    return -status if status != Status.OK else ticket.value


def wait(runtime: Use, ticket: int, timeout_ns: int, slice_ns: int, /) -> tuple[int, bytes] | int:
    return _ending(*_wait(runtime, abi.gpushare_ticket(ticket), _Slices(timeout_ns, slice_ns)))


def record(runtime: Use, ticket: int, /) -> tuple[int, bytes] | int:
    with runtime as handle:
        return _ending(*_record(handle, abi.gpushare_ticket(ticket)))


def poll(runtime: Use, ticket: int, /) -> int:
    complete = ctypes.c_int32()
    with runtime as handle:
        status = library().gpushare_ticket_poll(handle, abi.gpushare_ticket(ticket), ctypes.byref(complete))
    return -status if status != Status.OK else complete.value


def drop(runtime: Use, ticket: int, /) -> None:
    with runtime as handle:
        library().gpushare_ticket_release(handle, abi.gpushare_ticket(ticket))


def mark(runtime: Use, ticket: int, streams: tuple[int, ...], /) -> int:
    one = abi.gpushare_token_stream
    values = (one * len(streams))(*map(one, streams))
    with runtime as handle:
        return int(library().gpushare_token_stream_mark(handle, values, len(streams), abi.gpushare_ticket(ticket)))


class _Slices:
    """A wait in slices, so that Ctrl-C ends it: Python handles a signal only between two calls of C. Each slice is a
    use of the runtime's handle, so the close of a runtime ends the waits of other threads within a slice."""

    def __init__(self, timeout_ns: int, slice_ns: int) -> None:
        self.timeout_ns = timeout_ns
        self.slice_ns = slice_ns
        self.deadline_ns: int | None = None  # known from the first slice on
        self.until_ns = 0

    def next(self, runtime: int) -> None:
        time = ctypes.c_int64()
        if library().gpushare_now_ns(runtime, ctypes.byref(time)) != Status.OK:
            time.value = 0
        if self.deadline_ns is None:
            self.deadline_ns = min(abi.GPUSHARE_NEVER, time.value + self.timeout_ns)
        self.until_ns = min(self.deadline_ns, time.value + self.slice_ns)

    def is_last(self) -> bool:
        return self.deadline_ns is not None and self.until_ns >= self.deadline_ns


def _task(kernel: int, arguments: bytes, query: int, arrival_ns: int, next_within_ns: int) -> abi.gpushare_task_options:
    struct = abi.gpushare_task_options(_TASK_SIZE)
    struct.kernel = kernel
    if query:
        struct.query.value = query
    if arrival_ns:
        struct.arrival_ns = arrival_ns
    if next_within_ns:
        struct.next_within_ns = next_within_ns
    if arguments:
        struct.arguments = ctypes.cast(ctypes.c_char_p(arguments), ctypes.c_void_p)
        struct.arguments_size_bytes = len(arguments)
    return struct


def _wait(runtime: Use, ticket: abi.gpushare_ticket, slices: _Slices) -> tuple[int, Any]:
    """The status, and the record of a complete task."""
    while True:
        with runtime as handle:
            slices.next(handle)
            status = library().gpushare_ticket_wait(handle, ticket, slices.until_ns)
            if status == Status.OK:
                return _record(handle, ticket)  # here, while a close of the runtime waits for this use
        if status != Status.DEADLINE_EXCEEDED or slices.is_last():
            return status, None


def _record(runtime: int, ticket: abi.gpushare_ticket) -> tuple[int, Any]:
    struct = abi.gpushare_completion_record(_RECORD_SIZE)
    status = library().gpushare_ticket_record(runtime, ticket, ctypes.byref(struct))
    return status, struct if status == Status.OK else None


def _ending(status: int, record: Any) -> tuple[int, bytes] | int:
    return status if record is None else (record.verdict, bytes(record))


def _release(runtime: Use, ticket: abi.gpushare_ticket) -> None:
    """Gives back a ticket that the caller never gets. With its runtime it ended."""
    if ticket.value and runtime.handle is not None:
        drop(runtime, ticket.value)
