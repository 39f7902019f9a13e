"""Apps, their queues, and what is submitted to a queue: tasks, queries and regions."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from gpushare import _by_ctypes, _library, _native, _waits, abi
from gpushare._callbacks import Inside
from gpushare._handle import Handle, make
from gpushare._library import check, library
from gpushare._runtime_base import RuntimeBase
from gpushare._structs import bytes_of, init, int64_of
from gpushare._use import Use
from gpushare.enums import AppClass, AppFieldBit, Status, TaskKind
from gpushare.errors import described
from gpushare.kernel import Kernel
from gpushare.options import AppOptions, TaskOptions
from gpushare.records import AppGuarantee, AppStats, CompletionRecord
from gpushare.ticket import Ticket

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The options that submit() gives to C without a struct.
_DIRECT = frozenset(('arrival_ns', 'next_within_ns', 'block_tasks'))


class App(Handle):
    """An owner of work, latency-critical or best-effort. Made by Runtime.create_app, which got `name` and `app_class`.

    runtime: the runtime that it belongs to.
    """

    _release = 'gpushare_app_release'

    def __init__(self, runtime: RuntimeBase, name: str, app_class: AppClass, options: AppOptions,
                 worst_cases: Sequence[tuple[int, int]] = ()) -> None:
        self.name = name
        self.app_class = AppClass(app_class)
        self.runtime = runtime
        self._own_handle: _QueueHandle | None = None
        self._own_queue: weakref.ref[Queue] | None = None
        self._lock = threading.Lock()
        struct = init(abi.gpushare_app_options, {**options, 'name': name, 'app_class': app_class})
        if worst_cases:
            points = [abi.gpushare_worst_case(sms=sms, worst_ns=int64_of('worst_ns', worst_ns))
                      for sms, worst_ns in worst_cases]
            struct.worst_cases = (abi.gpushare_worst_case * len(points))(*points)
            struct.worst_case_count = len(points)
        with runtime._use as owner:
            handle = make(library().gpushare_app_create, owner, ctypes.byref(struct))
        super().__init__(handle, runtime)

    def __repr__(self) -> str:
        return f'<gpushare.App {self.name!r}, {self.app_class.name}>'

    @property
    def id(self) -> int:
        """The number that records, events and metrics use."""
        with self._use as handle:
            return int(library().gpushare_app_id(handle))

    def create_queue(self) -> Queue:
        """A new FIFO of the app's tasks. Tasks of different queues are ordered only by tickets and events."""
        return Queue(self)

    @property
    def queue(self) -> Queue:
        """The queue that submit() uses. The first use makes it."""
        with self._lock:
            if self._own_handle is None or self._own_handle.closed:
                self._own_handle, self._own_queue = _QueueHandle(self), None
            queue = self._own_queue() if self._own_queue is not None else None
            if queue is None:
                queue = _OwnQueue(self, self._own_handle)
                self._own_queue = weakref.ref(queue)
            return queue

    def submit(self, kernel: Kernel | None = None, *, arguments: bytes = b'', query: Query | None = None,
               wait_tickets: Sequence[Ticket] = (), wait_events: Sequence[int] = (),
               enqueue: Callable[[int], None] | None = None, **options: Unpack[TaskOptions]) -> Ticket:
        """Queue.submit on the app's own queue."""
        return self.queue.submit(kernel, arguments=arguments, query=query, wait_tickets=wait_tickets,
                                 wait_events=wait_events, enqueue=enqueue, **options)

    def run(self, kernel: Kernel, *, arguments: bytes = b'', query: Query | None = None, arrival_ns: int = 0,
            next_within_ns: int = 0, timeout_s: float | None = None) -> None:
        """Queue.run on the app's own queue."""
        self.queue.run(kernel, arguments=arguments, query=query, arrival_ns=arrival_ns, next_within_ns=next_within_ns,
                       timeout_s=timeout_s)

    def update(self, *, target_ns: int | None = None, p99_bound: float | None = None, p50_bound: float | None = None,
               p99_alone_ns: int | None = None, weight: float | None = None, priority: int | None = None) -> None:
        """Changes what the app states, as after a model swap. What is left out stays; 0 is none or unknown.

        target_ns, p99_bound, p50_bound, p99_alone_ns and priority (-100 to 100, a higher one goes first) are of an
        LC app, weight is of a BE app. What was measured stays. The tail account and the window of guarantee() begin
        anew where the promise changes.
        """
        stated = {'target_ns': target_ns, 'p99_bound': p99_bound, 'p50_bound': p50_bound,
                  'p99_alone_ns': p99_alone_ns, 'weight': weight, 'priority': priority}
        stated = {name: value for name, value in stated.items() if value is not None}
        fields = sum(AppFieldBit[name.upper()] for name in stated)
        struct = init(abi.gpushare_app_update_options, {'fields': fields, **stated})
        with self._use as handle:
            check(library().gpushare_app_update(handle, ctypes.byref(struct)))

    def reserve_capsms(self, capsms: int, packed: bool = False) -> None:
        """Reserves CapSMs for an LC app, or bounds those of a BE app. 0 removes the reservation or bound."""
        struct = init(abi.gpushare_reservation_options, {'capsms': capsms, 'packed': packed})
        with self._use as handle:
            check(library().gpushare_reserve_capsm(handle, ctypes.byref(struct)))

    def begin_token_stream(self, arrival_ns: int = 0) -> TokenStream:
        """Begins the token stream of a request of an LC app, which arrived at arrival_ns (now_ns() of the runtime)."""
        value = abi.gpushare_token_stream()
        with self._use as handle:
            check(library().gpushare_token_stream_begin(handle, int64_of('arrival_ns', arrival_ns),
                                                        ctypes.byref(value)))
        return TokenStream(self, value.value)

    def stats(self) -> AppStats:
        """The app's counters since its creation."""
        struct = init(abi.gpushare_app_stats)
        with self._use as handle:
            check(library().gpushare_app_stats_get(handle, ctypes.byref(struct)))
        return AppStats.from_c(struct)

    def guarantee(self) -> AppGuarantee:
        """The app's bounds beside what was measured: latencies of an LC app, and why BE work was held.

        p99_over_alone and late_share are NaN where nobody knows them, as without a p99_alone_ns.
        """
        struct = init(abi.gpushare_app_guarantee)
        with self._use as handle:
            check(library().gpushare_app_guarantee_get(handle, ctypes.byref(struct)))
        if not struct.p99_over_alone_known:
            struct.p99_over_alone = math.nan
        if not struct.late_share_known:
            struct.late_share = math.nan
        return AppGuarantee.from_c(struct)

    def close(self) -> None:
        """Releases the app and its own queue. Tasks in flight go on."""
        if self._own_handle is not None:
            self._own_handle.close()
        super().close()


class _QueueHandle(Handle):
    """A queue in C. Several Queue objects may share it."""

    _release = 'gpushare_queue_release'

    def __init__(self, app: App) -> None:
        app.runtime._release_leftovers()
        with app._use as owner:
            # The queue keeps the runtime alive, so a use of the queue is one of this handle. Read before the queue is
            # made: it raises where another thread closes the runtime, and nobody would release the queue.
            self._runtime_handle = app.runtime.handle
            handle = make(library().gpushare_queue_create, owner)
        super().__init__(handle, app.runtime)


class Queue(_QueueHandle):
    """A FIFO of an app's tasks. Made by App.create_queue. It keeps its app alive, and its tickets keep it alive.

    `app`, `app_class` and `runtime` are those that it belongs to.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.app_class = app.app_class
        self.runtime = app.runtime
        self._best_effort = int(app.app_class != AppClass.LATENCY_CRITICAL)
        super().__init__(app)

    def __repr__(self) -> str:
        return f'<gpushare.Queue of {self.app!r}>'

    def submit(self, kernel: Kernel | None = None, *, arguments: bytes = b'', query: Query | None = None,
               wait_tickets: Sequence[Ticket] = (), wait_events: Sequence[int] = (),
               enqueue: Callable[[int], None] | None = None, **options: Unpack[TaskOptions]) -> Ticket:
        """Submits one task and returns at once. Threads: any.

        kernel: what runs, for the kinds KERNEL, GRAPH and LIBRARY.
        arguments: the packed arguments of the kernel; copied.
        wait_tickets: tasks that must end with Verdict.OK first. wait_events: cudaEvent_t that the device waits
        for; they must live until the task is complete.
        enqueue: a function that enqueues OPAQUE work on a stream; its argument is the address of a cudaStream_t. It
        runs once, on a thread that launches, and must not call gpushare. If it raises, the task fails.
        """
        if kernel is not None and not isinstance(kernel, Kernel):
            raise TypeError(f'kernel is {kernel!r}, and it must be a Kernel, which register_kernel makes.')
        bytes_of('arguments', arguments)
        if (kernel is None or wait_tickets or enqueue is not None or len(wait_events) > _native.EVENTS_MAX
                or (options and not options.keys() <= _DIRECT)):
            return self._submit_any(kernel, arguments, query, wait_tickets, wait_events, enqueue, options)
        arrival_ns = next_within_ns = block_tasks = 0
        if options:
            arrival_ns, next_within_ns, block_tasks = (
                int64_of(name, options.get(name) or 0) for name in ('arrival_ns', 'next_within_ns', 'block_tasks'))
        value = (_library.steps or _by_ctypes).submit(
            self._use, kernel._use, self._best_effort, arguments, 0 if query is None else query._value, arrival_ns,
            next_within_ns, block_tasks, tuple(wait_events) if wait_events else ())
        if value < 0:
            check(-value)
        return Ticket(self.runtime, self, value)

    def _submit_any(self, kernel: Kernel | None, arguments: bytes, query: Query | None, wait_tickets: Sequence[Ticket],
                    wait_events: Sequence[int], enqueue: Callable[[int], None] | None, options: TaskOptions) -> Ticket:
        """As submit(), for every option."""
        struct = init(abi.gpushare_task_options, options)
        if arguments:
            struct.arguments = ctypes.cast(ctypes.c_char_p(arguments), ctypes.c_void_p)
            struct.arguments_size_bytes = len(arguments)
        if query is not None:
            struct.query = query.c_value
        if wait_tickets:
            tickets = (abi.gpushare_ticket * len(wait_tickets))(*(ticket.c_value for ticket in wait_tickets))
            struct.wait_tickets = tickets
            struct.wait_ticket_count = len(wait_tickets)
        if wait_events:
            struct.wait_events = (ctypes.c_void_p * len(wait_events))(*wait_events)
            struct.wait_event_count = len(wait_events)
        enqueued = None
        if enqueue is not None:
            enqueued = _Enqueue(enqueue)
            struct.kind = TaskKind.OPAQUE
            struct.enqueue, struct.enqueue_user = _enqueue, enqueued.key
        submit = library().gpushare_submit_be if self._best_effort else library().gpushare_submit_lc
        value = abi.gpushare_ticket()
        try:
            with self._use as handle:
                if kernel is None:
                    check(submit(handle, ctypes.byref(struct), ctypes.byref(value)))
                else:
                    with kernel._use as struct.kernel:
                        check(submit(handle, ctypes.byref(struct), ctypes.byref(value)))
        except Exception:
            if enqueued is not None:
                enqueued.drop()
            raise
        return Ticket(self.runtime, self, value.value, enqueued)

    def run(self, kernel: Kernel, *, arguments: bytes = b'', query: Query | None = None, arrival_ns: int = 0,
            next_within_ns: int = 0, timeout_s: float | None = None) -> None:
        """Submits one task of an LC app and waits until it is complete: submit() and wait() for a loop of short steps.

        It makes neither a ticket nor a record, and is one call of C. Ctrl-C ends the wait. Raises what submit() and
        wait() raise: TaskError, with the record, unless the task ended with Verdict.OK. After DeadlineExceededError
        and after Ctrl-C the task goes on.

        next_within_ns: the app's next query is submitted within this time of the end of this one, at most 100 ms, so
        that BE work stays out of the gap; NO_NEXT: none follows. submit() takes it too (docs/engines.md).
        """
        self._run(kernel, arguments, query, arrival_ns, next_within_ns, timeout_s, None, None, '')

    def _run(self, kernel: Kernel, arguments: bytes, query: Query | None, arrival_ns: int, next_within_ns: int,
             timeout_s: float | None, calls: Use | None, left: dict[str, object] | None, name: str) -> None:
        """As run(). calls, left and name: as of _native.Steps.run."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f'kernel is {kernel!r}, and it must be a Kernel, which register_kernel makes.')
        bytes_of('arguments', arguments)
        if arrival_ns:
            arrival_ns = int64_of('arrival_ns', arrival_ns)
        if next_within_ns:
            next_within_ns = int64_of('next_within_ns', next_within_ns)
        timeout_ns = abi.GPUSHARE_NEVER if timeout_s is None else _waits.timeout_ns(timeout_s)
        ended = (_library.steps or _by_ctypes).run(
            self.runtime._use, self._use, kernel._use, calls, arguments, 0 if query is None else query._value,
            arrival_ns, next_within_ns, timeout_ns, _waits.SLICE_NS, left, name, self._runtime_handle)
        if ended is None:
            return
        status, value, verdict, record = ended
        ticket = Ticket(self.runtime, self, value)
        check(status)
        assert record is not None
        ticket._keep((verdict, record))
        ticket.result()

    def begin_query(self, arrival_ns: int = 0, input_size: float = 0) -> Query:
        """Begins a query of an LC app. Its tasks are submitted with query=. End it by end() or a with block.

        input_size: the size of the query's input, in any unit. The library predicts the query's duration from it.
        """
        struct = init(abi.gpushare_query_options, {'arrival_ns': arrival_ns, 'input_size': input_size})
        value = abi.gpushare_query()
        with self._use as handle:
            check(library().gpushare_query_begin_with(handle, ctypes.byref(struct), ctypes.byref(value)))
        return Query(self, value.value)

    def begin_region(self, bound_ns: int = 0, *, arrival_ns: int = 0, input_size: float = 0, wait_s: float = 0,
                     next_within_ns: int = 0) -> Region:
        """Begins a region: a stream on which the caller enqueues any work, for at most bound_ns of device time.

        bound_ns: 0 is what the last regions of the queue took, and 10 ms at first. Of an LC app the region is a query:
        arrival_ns, input_size and next_within_ns are as of a query and a task. wait_s: how long to wait, by the
        device's clock, where the region may not start now; then UnavailableError is raised. Ctrl-C does not end
        that wait.
        """
        struct = init(abi.gpushare_region_options, {
            'bound_ns': bound_ns, 'arrival_ns': arrival_ns, 'input_size': input_size,
            'wait_ns': int(wait_s * 1e9), 'next_within_ns': next_within_ns})
        value, stream = abi.gpushare_ticket(), ctypes.c_void_p()
        with self._use as handle:
            check(library().gpushare_region_begin(handle, ctypes.byref(struct), ctypes.byref(value),
                                                  ctypes.byref(stream)))
        return Region(Ticket(self.runtime, self, value.value), stream.value or 0)


class _OwnQueue(Queue):
    """The app's own queue. The app holds its handle and not this object: a cycle would keep a dropped app alive."""

    def __init__(self, app: App, shared: _QueueHandle) -> None:
        self.app = app
        self.app_class = app.app_class
        self.runtime = app.runtime
        self._best_effort = int(app.app_class != AppClass.LATENCY_CRITICAL)
        self._use = shared._use
        self._shared = shared
        self._runtime_handle = shared._runtime_handle

    def __del__(self) -> None:
        """The handle is the app's."""

    def close(self) -> None:
        self._shared.close()


class _Enqueue:
    """A Python function that a launching thread calls once. `waiting` keeps it alive until then."""

    waiting: dict[int, _Enqueue] = {}

    def __init__(self, function: Callable[[int], None]) -> None:
        self.function = function
        self.error: BaseException | None = None
        self.key = id(self)
        _Enqueue.waiting[self.key] = self

    def drop(self) -> None:
        _Enqueue.waiting.pop(self.key, None)


def _run_enqueue(stream: int | None, user: int) -> None:
    with Inside():
        _call_enqueue(stream or 0, user)


def _call_enqueue(stream: int, user: int) -> None:
    enqueued = _Enqueue.waiting.pop(user)
    try:
        enqueued.function(stream)
    except BaseException as error:  # no exception may pass through C; Ticket.result raises this one
        enqueued.error = error
        library().gpushare_enqueue_fail(described(error).encode('utf-8', 'replace').replace(b'\0', b''))


_enqueue = abi.gpushare_enqueue_callback(_run_enqueue)


class Query:
    """One LC request of several tasks. Its latency counts from its arrival until all of them are complete.

    Made by Queue.begin_query(). It ends by end(), a with block or garbage collection.
    """

    def __init__(self, queue: Queue, value: int) -> None:
        self._queue = queue
        self._value = value
        self._process = os.getpid()

    @property
    def value(self) -> int:
        """The number that C knows the query by. 0 after end()."""
        return self._value

    @property
    def c_value(self) -> abi.gpushare_query:
        """The query as a C struct, for functions of gpushare.abi."""
        return abi.gpushare_query(self._value)

    def end(self) -> None:
        """Ends the query: it gets no more tasks. Submitted tasks go on."""
        if self._value and os.getpid() == self._process:
            with self._queue.runtime._use as handle:
                check(library().gpushare_query_end(handle, self.c_value))
        self._value = 0

    def __enter__(self) -> Query:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.end()

    def __del__(self) -> None:
        try:
            self.end()
        except Exception:  # the runtime is closed
            self._value = 0


class TokenStream:
    """The tokens that one LC request gets. Its marks say which tasks give it one (docs/engines.md).

    Made by App.begin_token_stream(). It ends by end(), a with block or garbage collection.
    """

    def __init__(self, app: App, value: int) -> None:
        self._app = app
        self._value = value
        self._lost = False  # the library has ended it
        self._process = os.getpid()

    @property
    def value(self) -> int:
        """The number that C knows the stream by. 0 after end()."""
        return self._value

    @property
    def ended(self) -> bool:
        """Whether end() was called, or a mark found that the library had ended the stream, as it ends idle ones."""
        return self._lost or not self._value

    def mark(self, ticket: Ticket) -> None:
        """The task of the ticket gives the stream a token. mark_tokens() marks many streams in one call."""
        mark_tokens([self], ticket)

    def end(self) -> None:
        """Ends the stream, unless the library has ended it already. Marks whose tasks have not ended count no more."""
        if self._value and not self._lost and os.getpid() == self._process:
            with self._app.runtime._use as handle:
                status = library().gpushare_token_stream_end(handle, abi.gpushare_token_stream(self._value))
                if status != Status.INVALID_ARGUMENT:
                    check(status)
        self._value = 0

    def __enter__(self) -> TokenStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.end()

    def __del__(self) -> None:
        try:
            self.end()
        except Exception:  # the runtime is closed, or the library ended the stream
            self._value = 0


def mark_tokens(streams: Sequence[TokenStream], ticket: Ticket) -> None:
    """The task of the ticket gives each of the streams a token, when it ends well.

    A stream that the library has ended, because the app had too many and this one was idle, gets none: its `ended`
    says so, and the others are marked. InvalidArgumentError for a stream of which end() was called, a stale ticket or
    a BE task's: none is marked.
    Before the task ends, where a bound counts tokens: a later mark is in the statistics, and no plan learns of it.
    """
    live = [stream for stream in streams if not stream._lost]
    status = _mark(live, ticket)
    if status == Status.OK:
        return
    if status != Status.INVALID_ARGUMENT or not all(stream.value for stream in live):
        check(status)
    check(_mark([], ticket))  # whether it is the ticket's fault
    for stream in live:
        status = _mark([stream], ticket)
        if status == Status.INVALID_ARGUMENT:
            stream._lost = True
        else:
            check(status)


def _mark(streams: Sequence[TokenStream], ticket: Ticket) -> int:
    return (_library.steps or _by_ctypes).mark(ticket.runtime_use, ticket.value,
                                               tuple([stream._value for stream in streams]))


class Region:
    """Work of the caller on a stream of the library. It ends by end(), a with block or garbage collection.

    Made by Queue.begin_region(). `ticket` completes when the region has ended and its stream has done the work.
    """

    def __init__(self, ticket: Ticket, stream: int) -> None:
        self.ticket = ticket
        # A cudaStream_t; 0 on simulated devices.
        self.stream = stream
        self._open = True

    def end(self) -> Ticket:
        """Ends the region: nothing more is enqueued. The ticket completes when the stream has done its work."""
        if self._open:
            with self.ticket.runtime_use as handle:
                check(library().gpushare_region_end(handle, self.ticket.c_value))
            self._open = False
        return self.ticket

    def wait(self, timeout_s: float | None = None) -> CompletionRecord:
        """Ends the region and waits for its work."""
        return self.end().wait(timeout_s)

    def __enter__(self) -> Region:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.end()

    def __del__(self) -> None:
        try:
            self.end()
        except Exception:  # the runtime is closed, and the region ended with it
            self._open = False
