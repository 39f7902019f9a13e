"""An LC service of many graphs: an engine's decode and prefill steps, for instance, as queries of one app."""

from __future__ import annotations

import itertools
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch

from gpushare._use import Use
from gpushare.app import Query
from gpushare.enums import AppClass, Choice, Status
from gpushare.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError
from gpushare.kernel import Kernel
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._capture import captured, raw_graph
from gpushare.torch._in_flight import InFlight
from gpushare.torch._place_captures import PlaceCaptures
from gpushare.torch._registration import register_graph
from gpushare.torch._snapshot import Snapshot
from gpushare.torch._tensors import (
    copy_tensors,
    map_tensors,
    native_events,
    own_workspaces,
    recorded_event,
    require_cuda,
    require_on_gpu,
    room_for,
    warm_up,
)
from gpushare.torch._warm_memory import warm_memory_of, weight_tensors

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gpushare.options import TaskOptions

# How a graph comes to the places: one capture is copied to each, or each has a capture of its own, or it runs on the
# whole device only.
Places = Literal['copied', 'captured', 'whole']

# The options that a query may have and be one call of C.
_RUN_OPTIONS = frozenset(('arrival_ns', 'next_within_ns'))

_numbers = itertools.count(1)


class ServedGraph:
    """One graph of a Server, which Server.add makes.

    name: as the server knows it. kernel: what its queries submit.
    inputs: the tensors that it reads, in place. outputs: its results, in place: each query overwrites them.
    unconfinable: why it runs on the whole device only; '' if it may run in places.
    captures: the captures in each place; None if one capture serves all places.
    """

    def __init__(self, name: str, inputs: Any, outputs: Any, captures: PlaceCaptures | None) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.captures = captures
        self.kernel: Kernel
        self.unconfinable = ''
        self._lock = threading.Lock()  # held while inputs are copied and submitted
        self._memory: Any = None  # what queries in flight use, even after the server was dropped

    def __repr__(self) -> str:
        return f'<gpushare.torch.ServedGraph {self.name!r}>'


class Server:
    """Graphs that serve one kind of request, such as the steps of an engine: one LC app, one queue, one memory pool.

    name: of the app. A graph's kernel is name/graph in profiles and logs. Default: 'server-1' and so on.
    p99_bound: the highest p99 latency of all queries together, as a multiple of their p99 alone.
    places: 'copied': each graph is captured once, and the library copies it to a place when it makes the place. The
    bits are the same in each. 'captured': it is captured in every place at its registration, where cuBLAS chooses
    kernels for the place's SMs; that costs a run of the function and memory for each of about 30 places. 'whole': it
    runs on the whole device only.
    Further options are those of Runtime.create_app, such as p99_alone_ns.

    Queries of one queue never run together, so their graphs share memory for intermediate results: add the largest
    graph first. Submit to server.app's own queue only.

    app: the LC app; app.guarantee() says what was kept. pool: the torch.cuda.MemPool of all captures.

    Threads: any. Queries run in the order of their submits. close() ends it; so does the runtime's close.
    """

    def __init__(self, runtime: Runtime, *, name: str | None = None, p99_bound: float = 1.05,
                 places: Places = 'copied', **app_options: Any) -> None:
        require_cuda(runtime)
        if places not in ('copied', 'captured', 'whole'):
            raise ValueError(f"places is {places!r}, and it must be 'copied', 'captured' or 'whole'.")
        self.name = name or f'server-{next(_numbers)}'
        self.places = places
        self._runtime = runtime
        self._simulated = runtime.device().simulated
        self._graphs: dict[str, ServedGraph] = {}
        self._adding = threading.Lock()
        self._stream = torch.cuda.Stream()  # of all captures: the allocator shares no memory between streams
        self.pool = torch.cuda.MemPool()
        self.app = runtime.create_app(self.name, AppClass.LATENCY_CRITICAL, p99_bound=p99_bound, **app_options)
        self._queue = self.app.queue
        self._in_flight = InFlight(runtime, self.app)
        self._left = self._in_flight.left
        self._calls = Use(1, type(self).__name__)  # calls under way: close() waits for those of other threads
        runtime.keep(self._in_flight.events)

    def __repr__(self) -> str:
        return f'<gpushare.torch.Server {self.name!r} of {len(self._graphs)} graphs>'

    @property
    def graphs(self) -> Mapping[str, ServedGraph]:
        """The graphs by name, in the order in which they were added."""
        return types.MappingProxyType(self._graphs)

    def __getitem__(self, name: str) -> ServedGraph:
        try:
            return self._graphs[name]
        except KeyError:
            raise NotFoundError(Status.NOT_FOUND, f"Server '{self.name}' has no graph {name!r}. It has: "
                                f"{', '.join(self._graphs) or 'none'}.") from None

    # --- graphs ---

    def add(self, name: str, fn: Callable[..., Any] | None = None, inputs: Any = (), *, graph: Any = None,
            outputs: Any = None, weights: Any = None, state: Sequence[Any] = (), measure: bool = False,
            warmup_runs: int = 1) -> ServedGraph:
        """Captures fn(*inputs), or takes a graph of the caller, and registers it. Returns it; self[name] does too.

        fn: returns tensors, or tuples, lists and dicts of them, or None. It runs without gradients, and must not wait
        for the GPU, draw random numbers or depend on values of its inputs in Python.
        inputs: a tensor or a tuple of fn's positional arguments, on the GPU or in pinned memory. The graph reads these
        tensors, so each query takes what is in them. Copies from and to pinned memory belong into fn.
        graph: a torch.cuda.CUDAGraph(keep_graph=True) in the place of fn, captured by the caller; `inputs` and
        `outputs` then name its tensors, for self[name]. Its memory is the caller's.
        weights: as of Service. state: tensors, modules and optimizers that fn changes, such as a cache: what the
        warm-up and the measurement did to them is undone. It is cloned meanwhile, so it needs its memory twice; and
        what queries write meanwhile would be undone too, so it is refused after the first query.
        measure: the registration executes the graph in each place, for about a second, so that a loose bound can give
        part of the GPU's SMs to BE work while a query runs. Queries would disturb it, so add such a graph first.

        Raises AlreadyExistsError for a name that the server has; InvalidArgumentError for tensors that a graph cannot
        read, and for a graph without a cudaGraph_t; UnimplementedError for random numbers; FailedPreconditionError for
        a measurement or `state` after the first query; what fn raises; and what Runtime.register_kernel raises. Where
        only places fail, the graph runs on the whole device, `unconfinable` says why, and Python's log has a warning.
        """
        if (fn is None) == (graph is None):
            raise TypeError(f"Graph '{name}' comes as a function or as a CUDAGraph: pass one of fn and graph.")
        with self._calls:
            return self._add(name, f'{self.name}/{name}', fn, inputs, graph=graph, outputs=outputs, weights=weights,
                             state=state, measure=measure, warmup_runs=warmup_runs)

    def _add(self, name: str, kernel: str, fn: Callable[..., Any] | None, inputs: Any, *, graph: Any = None,
             outputs: Any = None, weights: Any = None, state: Sequence[Any] = (), measure: bool = False,
             warmup_runs: int = 1) -> ServedGraph:
        what = f"Graph '{name}' of '{self.name}'"
        given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        given = map_tensors(require_on_gpu, given)
        with self._adding:
            if name in self._graphs:
                raise AlreadyExistsError(Status.ALREADY_EXISTS, f'{what} exists already.')
            served = self.app.stats().submitted > 0
            if served and len(state) > 0:
                raise FailedPreconditionError(
                    Status.FAILED_PRECONDITION, f'{what} cannot put its state back, because queries may have '
                    'written it meanwhile. Add it before the first query, or let it warm up on a state of its own.')
            if measure and served:
                raise FailedPreconditionError(
                    Status.FAILED_PRECONDITION, f'{what} cannot be measured, because queries may run meanwhile. Add it '
                    'before the first query, or with measure=False.')
            try:
                with Snapshot(state) as snapshot:
                    if graph is None:
                        assert fn is not None
                        added, source = self._capture(name, fn, given, max(1, warmup_runs), what)
                    else:
                        added, source = ServedGraph(name, given, outputs, None), {'graph': raw_graph(graph, what)}
                    reads = fn if weights is None else weights
                    kept = () if reads is None else weight_tensors(reads)
                    source.update(segment_ns=-1, measure_places=measure, warm_memory=warm_memory_of(kept))
                    if self.places == 'whole':
                        source['confinable'] = Choice.NO
                    # A measurement runs the graph on streams of the library. A wait for the whole GPU would break a
                    # capture of another thread.
                    torch.cuda.current_stream().synchronize()
                    added.kernel, added.unconfinable = register_graph(self._runtime, kernel, **source)
                    snapshot.restore()
            finally:
                torch.cuda.current_stream().synchronize()
            added._memory = (added._memory, given, added.outputs, graph, kept, fn, tuple(state), self.pool)
            self._runtime.keep(added._memory)
            self._graphs[name] = added
            return added

    def _capture(self, name: str, fn: Callable[..., Any], given: Any, runs: int,
                 what: str) -> tuple[ServedGraph, dict[str, Any]]:
        """Warms fn up and captures it, unless the registration does. Returns what register_graph needs too."""
        def call() -> Any:
            with torch.no_grad():
                return fn(*given)

        example = warm_up(call, self._stream, runs, what)
        if self.places == 'captured':
            outputs = map_tensors(room_for, example)
            captures = PlaceCaptures(call, outputs, self.pool)
            return ServedGraph(name, given, outputs, captures), {'captures': captures}
        del example
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with own_workspaces(), torch.cuda.stream(self._stream):
            outputs = map_tensors(require_on_gpu, captured(graph, call, self.pool.id))
        added = ServedGraph(name, given, outputs, None)
        added._memory = graph
        return added, {'graph': raw_graph(graph, what)}

    # --- queries ---

    def submit(self, name: str, *inputs: Any, query: Query | None = None, input_size: float = 0,
               wait_events: Sequence[Any] = (), **options: Unpack[TaskOptions]) -> Ticket:
        """Submits a query of a graph. Its results are in self[name].outputs when it is complete.

        It returns at once where the inputs are in place. Else it waits until the graph's query before is complete,
        because the inputs are copied into self[name].inputs; that is done on the current stream, and the query runs
        behind that stream.
        In place the query waits for no stream: where a stream wrote the inputs, record an event behind the writes and
        pass it as wait_events. Do not write them again until the query is complete.
        Results: any stream may read them once the query is complete. The next query of the graph overwrites them and
        waits for no stream either: pass it an event behind the reads, or wait for them.
        arrival_ns (an option): when the request was meant to arrive, on runtime.now_ns()'s clock; 0: now. Its latency
        counts from there. query: of several tasks, from server.app.queue.begin_query.
        input_size: of the request, in any unit that all queries of the server share; 0: unknown. The library learns how
        long a query takes from it; leave it out where the graph says it. Of several tasks begin_query states it.
        wait_events: torch.cuda.Events that the GPU waits for first; at most 8, 7 with inputs.

        Raises what Queue.submit raises; NotFoundError; InvalidArgumentError for inputs unlike the captured ones.
        """
        with self._calls:
            return self._submit(self[name], inputs or None, query, input_size, wait_events, options)

    def run(self, name: str, *inputs: Any, query: Query | None = None, input_size: float = 0,
            wait_events: Sequence[Any] = (), timeout_s: float | None = None, **options: Unpack[TaskOptions]) -> Any:
        """Submits a query as submit() does, waits until it is complete, and returns self[name].outputs.

        What submit() says of inputs in place and of results holds here too: a stream that wrote inputs, or that still
        reads the results before, needs an event in wait_events.
        With inputs in place and nothing to wait for it is one call of C. Raises what submit() raises, TaskError unless
        the query ended with Verdict.OK, and DeadlineExceededError; after a timeout or Ctrl-C the query goes on.
        """
        graph = self._graphs.get(name)
        if graph is None or inputs or wait_events or input_size or (options and not options.keys() <= _RUN_OPTIONS):
            with self._calls:
                graph = self[name]
                self._submit(graph, inputs or None, query, input_size, wait_events, options).wait_ok(timeout_s)
                return graph.outputs
        arrival_ns = next_within_ns = 0
        if options:
            arrival_ns, next_within_ns = options.get('arrival_ns') or 0, options.get('next_within_ns') or 0
        self._queue._run(graph.kernel, b'', query, arrival_ns, next_within_ns, timeout_s, self._calls, self._left, name)
        return graph.outputs

    def _submit(self, graph: ServedGraph, inputs: Any, query: Query | None, input_size: float,
                wait_events: Sequence[Any], options: TaskOptions) -> Ticket:
        """inputs: None: in place."""
        if inputs is None:
            return self._submit_in_place(graph, query, input_size, list(wait_events), options)
        with graph._lock:
            self._in_flight.wait(graph.name, graph.kernel)
            copy_tensors(graph.inputs, inputs, 'the input')
            return self._submit_in_place(graph, query, input_size, [*wait_events, recorded_event()], options)

    def _submit_in_place(self, graph: ServedGraph, query: Query | None, input_size: float, events: list[Any],
                         options: TaskOptions) -> Ticket:
        native = native_events(self._simulated, events)
        if input_size and query is None:
            with self._queue.begin_query(options.pop('arrival_ns', 0), input_size) as sized:
                ticket = self._queue.submit(graph.kernel, query=sized, wait_events=native, **options)
        else:
            ticket = self._queue.submit(graph.kernel, query=query, wait_events=native, **options)
        self._in_flight.add(graph.name, ticket, events)
        return ticket

    # --- end ---

    def remove(self, name: str) -> None:
        """Waits for the queries in flight and gives the graph up, so that another one may be added under its name.

        A call of another thread that comes too late raises FailedPreconditionError or NotFoundError.
        What was learned of its duration ends with it: the new graph is another one.
        """
        with self._calls, self._adding:
            graph = self[name]
            del self._graphs[name]
            graph.kernel.close()  # a call that has the graph already submits it before this or not at all
            self._in_flight.drain()
            self._runtime.unkeep(graph._memory)

    def close(self) -> None:
        """Waits for the queries in flight, then releases the app, the graphs and their memory.

        It waits for calls of other threads too. Later ones raise FailedPreconditionError. Wait for tickets before: one
        that nobody has waited for gives no record afterwards.
        """
        self._calls.close(self._end)

    def _end(self, _: int) -> None:
        if not self._runtime.closed:
            self._in_flight.drain()
        self._in_flight.clear()
        self.app.close()
        for graph in self._graphs.values():
            graph.kernel.close()
            self._runtime.unkeep(graph._memory)
        self._runtime.unkeep(self._in_flight.events)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
