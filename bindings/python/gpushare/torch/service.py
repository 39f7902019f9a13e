"""An LC service: a PyTorch function that answers queries through gpushare."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpushare.app import App, Query
from gpushare.kernel import Kernel
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._place_captures import PlaceCaptures
from gpushare.torch._tensors import copy_of, map_tensors, recorded_event
from gpushare.torch._turns import Turns
from gpushare.torch.server import Places, Server

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gpushare.options import TaskOptions

_numbers = itertools.count(1)


class Service:
    """A function of tensors as a graph, whose calls are LC queries: a Server of one graph.

    fn: takes the tensors of `inputs` and returns tensors, or tuples, lists and dicts of them. It runs without
    gradients, and must not wait for the GPU, draw random numbers or depend on values of its inputs in Python.
    inputs: example inputs on the GPU or in pinned memory, a tensor or a tuple of fn's positional arguments. Each query
    has the same shapes and types; a query's tensors may also be on the CPU. They are copied, unless in_place.
    name: of the app and its kernel; a profile knows the kernel by it. Default: 'service-1' and so on.
    weights: a module, or tensors that each query reads. If they need at most half of the L2 cache, each query reads
    them into it while its first kernels run, because BE work has displaced them. They must keep their addresses.
    Default: fn, if it is a module.
    state: tensors, modules and optimizers that fn changes: what the registration did to them is undone.
    measure: the registration executes the graph in each place, for about a second, so that a loose bound can give
    part of the GPU's SMs to BE work while a query runs.
    places: as of Server: 'captured', so that cuBLAS chooses kernels for each place, 'copied' or 'whole'.
    in_place: `inputs` themselves are what the graph reads: write into them, and call submit() without inputs. The query
    does not wait for the stream that wrote them: record an event behind the writes and pass it as wait_events. Write
    and read the tensors again when the query is complete.
    p99_bound: the highest p99 latency, as a multiple of the p99 of the service alone. Further options are those of
    Runtime.create_app, such as p99_alone_ns.

    `kernel`, `inputs` and `outputs` are those of the graph; `unconfinable` says why it runs on the whole device only,
    and is '' if it may run in places. `captures` are the captures in each place, or None. `app` is the LC app, whose
    guarantee() says what was kept.

    Threads: any may call the service; one query is in flight at a time. close() ends it; so does the
    runtime's close.
    """

    def __init__(self, runtime: Runtime, fn: Callable[..., Any], inputs: Any, *, name: str | None = None,
                 p99_bound: float = 1.05, warmup_runs: int = 3, measure: bool = True, weights: Any = None,
                 state: Sequence[Any] = (), places: Places = 'captured', in_place: bool = False,
                 **app_options: Any) -> None:
        self.name = name or f'service-{next(_numbers)}'
        self._server = Server(runtime, name=self.name, p99_bound=p99_bound, places=places, **app_options)
        self._turns = Turns()
        self._read: list[Any] = []  # event behind the last copy of the results
        try:
            given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
            self._graph = self._server._add(
                self.name, self.name, fn, given if in_place else map_tensors(copy_of, given), weights=weights,
                state=state, measure=measure, warmup_runs=warmup_runs)
        except BaseException:
            self._server.close()
            raise

    @property
    def app(self) -> App:
        return self._server.app

    @property
    def kernel(self) -> Kernel:
        return self._graph.kernel

    @property
    def inputs(self) -> Any:
        """The tensors that the graph reads, as a tuple of fn's arguments."""
        return self._graph.inputs

    @property
    def outputs(self) -> Any:
        """The results, which each query overwrites."""
        return self._graph.outputs

    @property
    def captures(self) -> PlaceCaptures | None:
        return self._graph.captures

    @property
    def unconfinable(self) -> str:
        return self._graph.unconfinable

    def submit(self, *inputs: Any, query: Query | None = None, input_size: float = 0, wait_events: Sequence[Any] = (),
               **options: Unpack[TaskOptions]) -> Ticket:
        """Submits one query; its results are in `outputs` when it is complete. As Server.submit.

        It waits for its turn behind calls, whose results it would overwrite. Where one of them is a coroutine of this
        thread's event loop it raises FailedPreconditionError instead. A call after it overwrites `outputs`: read them
        before, and pass an event behind that read with the next submit.
        """
        with self._turns, self._server._calls:
            return self._ask(inputs or None, query, input_size, options, wait_events)

    def __call__(self, *inputs: Any) -> Any:
        """Answers one query: returns new tensors with the results of fn(*inputs), in order with the current stream.

        It returns when the query is complete. Raises TaskError if it did not end with Verdict.OK, and
        FailedPreconditionError on the thread of an event loop of which a coroutine is in call().
        """
        with self._turns, self._server._calls:
            self._ask(inputs).wait_ok()
            return self._answer()

    async def call(self, *inputs: Any, query: Query | None = None, input_size: float = 0,
                   **options: Unpack[TaskOptions]) -> Any:
        """As a call of the service, for asyncio; with the options of submit(). The loop goes on meanwhile.

        Cancelling it leaves the query alone; the next one waits for it.
        """
        async with self._turns:
            with self._server._calls:  # a close on this thread takes effect at its end
                await self._ask(inputs, query, input_size, options)
                return self._answer()

    def _ask(self, inputs: Any, query: Query | None = None, input_size: float = 0,
             options: TaskOptions | None = None, wait_events: Sequence[Any] = ()) -> Ticket:
        """Submits a query behind the copies of the results before it."""
        events = [*self._read, *wait_events]
        ticket = self._server._submit(self._graph, inputs, query, input_size, events, options or {})
        self._read = []  # later queries run behind this one
        return ticket

    def _answer(self) -> Any:
        result = map_tensors(lambda tensor: tensor.clone(), self.outputs)
        self._read = [recorded_event()]
        return result

    def close(self) -> None:
        """Waits for the query in flight, then releases the app and the memory. Later calls raise."""
        self._server.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
