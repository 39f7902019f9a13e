"""Steps through gpushare: each graph of the engine is a kernel of one app, and a step is submitted and awaited.

`Library` registers the graphs and makes an app for each run; `ByServer` does the same by a gpushare.torch.Server, whose
app begins anew with the promise of each run. A step is a query. With `one_query` a query begins
with the first request of a busy period and ends with the last one, so that no gap between steps looks like an idle
server. With stated gaps each step says whether another one follows.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import torch
from bare import Log
from batching import Step
from engine import Engine

import gpushare
import gpushare.torch

NEXT_WITHIN_NS = 300_000  # the host's gap between two steps, at most
REGION_NS = 50_000_000  # bound of an eager prefill
REGION_WAIT_S = 10.0


@dataclasses.dataclass(frozen=True)
class Promise:
    """What the engine's app asks for, and what it says of itself: p99 and median of a step alone."""

    p99_bound: float
    p99_alone_ns: int = 0
    solo_ns: int = 0


class Library:
    """A runner through the library. `open` makes the app of a run, so that its promise is new.

    whole: the graphs run on the whole device only.
    """

    def __init__(self, engine: Engine, latency: str, gaps: str, whole: bool = False) -> None:
        self._engine, self._whole = engine, whole
        graphs = engine.graphs()
        self.runtime = gpushare.Runtime(device='cuda', latency=gpushare.Latency[latency.upper()])
        torch.cuda.synchronize()
        free, began = torch.cuda.mem_get_info()[0], time.monotonic()
        self.unconfinable: dict[str, str] = {}
        self._kernels = {name: self._register(name, graph) for name, graph in graphs.items()}
        torch.cuda.synchronize()
        self.registered_s = time.monotonic() - began
        self.registered_bytes = free - torch.cuda.mem_get_info()[0]
        self.clock_offset = min(self.runtime.now_ns() - time.monotonic_ns() for _ in range(100))
        self._gaps = _gap_options(gaps)
        self._app: Any = None
        self._queue: Any = None
        self._query: Any = None
        self._one_query = False
        self.log = Log()

    def _register(self, name: str, graph: Any) -> Any:
        # segment_ns=-1: LC graphs are not cut.
        options = {'kind': gpushare.TaskKind.GRAPH, 'graph': int(graph.raw_cuda_graph()), 'segment_ns': -1}
        try:
            if not self._whole:
                return self.runtime.register_kernel(f'engine-{name}', **options)
        except gpushare.UnimplementedError as error:  # a kernel of it cannot be moved to a place
            self.unconfinable[name] = error.message
        return self.runtime.register_kernel(f'engine-{name}', **options, confinable=gpushare.Choice.NO)

    def open(self, promise: Promise, one_query: bool = False) -> None:
        self._app = self.runtime.create_app('engine', gpushare.AppClass.LATENCY_CRITICAL, **dataclasses.asdict(promise))
        self._queue, self._one_query = self._app.create_queue(), one_query
        self.log = Log()

    def warm_up(self) -> None:
        """Runs each kernel twice: the first launch of a graph is slower."""
        self.open(Promise(1.05))
        for kernel in self._kernels.values():
            for _ in range(2):
                self._queue.run(kernel)
        self.close_app()

    @property
    def app(self) -> Any:
        """Of the run."""
        return self._app

    def guarantee(self) -> dict[str, Any]:
        """What the library says that the app got."""
        got = self._app.guarantee()
        return {'p99_us': got.p99_ns / 1e3, 'late_share': round(got.late_share, 4),
                'tail_credit': round(got.tail_credit, 2), 'late_for_be': got.queries_late_for_be}

    def close_app(self) -> None:
        self.idle()
        self._queue.close()
        self._app.close()

    # --- the runner ---

    def run(self, step: Step, follows: bool) -> list[int]:
        form = self._engine.form(step)
        form.write(step)
        kernel = self._kernels.get(step.name)
        if kernel is None:
            self._region(form.function)
        else:
            self._run(step.name, kernel, self._gaps[follows])
        tokens = form.read()
        self.log.add(step, form, tokens)
        return tokens

    def _run(self, name: str, kernel: Any, gaps: dict[str, int]) -> None:
        self._queue.run(kernel, query=self._query, **gaps)

    def _region(self, function: Any) -> None:
        """An eager prefill: a region, which is refused while its place is taken."""
        until = time.monotonic() + REGION_WAIT_S
        while True:
            try:
                region = self._queue.begin_region(REGION_NS)
                break
            except gpushare.UnavailableError:
                if time.monotonic() > until:
                    raise
        with region, torch.cuda.stream(torch.cuda.ExternalStream(region.stream)):
            function()
        region.wait()

    def busy(self) -> None:
        if self._one_query:
            self._query = self._queue.begin_query()

    def idle(self) -> None:
        if self._query is not None:
            self._query.end()
            self._query = None

    def close(self) -> None:
        self.runtime.close()


class ByServer(Library):
    """The same by a gpushare.torch.Server."""

    def __init__(self, engine: Engine, latency: str, gaps: str, whole: bool = False) -> None:
        self._server: Any = None
        super().__init__(engine, latency, gaps, whole)

    def _register(self, name: str, graph: Any) -> Any:
        if self._server is None:
            places = 'whole' if self._whole else 'copied'
            self._server = gpushare.torch.Server(self.runtime, name='engine', places=places)
        added = self._server.add(name, graph=graph)
        if added.unconfinable:
            self.unconfinable[name] = added.unconfinable
        return added.kernel

    def open(self, promise: Promise, one_query: bool = False) -> None:
        self._app, self._one_query = self._server.app, one_query
        self._queue = self._app.queue
        # Another promise in between: what a run has earned and lost, such as tail credit, is none of the next one's.
        self._app.update(p99_bound=promise.p99_bound + 1)
        self._app.update(p99_bound=promise.p99_bound, p99_alone_ns=promise.p99_alone_ns)
        self.log = Log()

    def close_app(self) -> None:
        """The app is the server's. The query of a busy period ends."""
        self.idle()

    def _run(self, name: str, kernel: Any, gaps: dict[str, int]) -> None:
        if gaps:  # the server's run is one call of C only without options
            super()._run(name, kernel, gaps)
        else:
            self._server.run(name, query=self._query)

    def close(self) -> None:
        self._server.close()
        super().close()


def made(engine: Engine, through: str, latency: str, gaps: str, whole: bool) -> Library:
    """By a server, unless `through` is 'kernels'."""
    return (Library if through == 'kernels' else ByServer)(engine, latency, gaps, whole)


def _gap_options(gaps: str) -> tuple[dict[str, int], dict[str, int]]:
    """The options of a step that none follows, and of one that another follows."""
    if gaps != 'stated':
        return {}, {}
    return {'next_within_ns': gpushare.NO_NEXT}, {'next_within_ns': NEXT_WITHIN_NS}
