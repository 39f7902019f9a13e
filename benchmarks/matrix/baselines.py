"""What users do today, without the library: a CUDA graph of the service and a BE step, launched side by side.

Each way serves the queries in the order of their arrival and keeps the step running meanwhile. A row of the matrix
has them as conditions on its arrivals.
"""

from __future__ import annotations

import contextlib
import gc
import queue
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from clock import Clock, Mark, timed_event
from green import GreenContexts
from matrix_plan import GREEN_SMS
from sleeping import sleep_until

from gpushare.torch._place_captures import _sm_count, backward_on_this_thread
from gpushare.torch._tensors import own_workspaces

OUTSTANDING = 2  # steps on the BE stream
SWITCH_S = 5e-5  # threads that feed the GPU wait less for the interpreter
REPLAYED = 'alone'  # the way without BE, which the others are compared with
DRAIN_S = 20.0  # the longest wait for queries that a way left behind
LC_PRIORITIES = {'alone': 0, 'streams': 0, 'priorities': -5, 'gated': -5}  # of the service's stream; -5 is the highest


def captured(function: Callable[[], Any], stream: Any, sms: int | None = None) -> Any:
    """A graph of the function, for a stream. sms: how many cuBLAS is told, if not all."""
    everything = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with own_workspaces(), _sm_count(everything, sms or everything), backward_on_this_thread(), \
            torch.cuda.graph(graph, stream=stream, capture_error_mode='relaxed'):
        function()
    return graph


class Way:
    """One way to run a service's graph beside a step.

    step: a function, which is captured, or an object whose replay() launches it on the current stream.
    """

    def __init__(self, name: str, service: Callable[[], Any], step: Any,
                 streams: tuple[Any, Any], sms: tuple[int | None, int | None] = (None, None),
                 gated: bool = False) -> None:
        self.name, self.gated = name, gated
        self._lc, self._be = streams
        self._service = captured(service, self._lc, sms[0])
        ready = step is None or hasattr(step, 'replay')
        self._step = step if ready else captured(step, self._be, sms[1])
        self._active = 0
        self._changed = threading.Condition()
        self._failures: list[Exception] = []  # of the step's thread
        self._once()

    def _once(self) -> None:
        """Runs both once. The first launch of a graph is slower; and what cannot run here raises now."""
        for work, stream in ((self._service, self._lc), (self._step, self._be)):
            if work is not None:
                with torch.cuda.stream(stream):
                    work.replay()
        torch.cuda.synchronize()

    def run(self, arrivals: Sequence[int]) -> dict[str, Any]:
        """Latencies in ns by the GPU's clock, and the steps until the last arrival."""
        torch.cuda.synchronize()
        first, ends, steps, stop = Mark(), [], [], threading.Event()
        waited: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threads = [threading.Thread(target=self._count_down, args=(waited,))] if self.gated else []
        if self._step is not None:
            threads.append(threading.Thread(target=self._feed_or_note, args=(steps, stop)))
        for thread in threads:
            thread.start()
        start = time.monotonic_ns() + 20_000_000
        with torch.cuda.stream(self._lc):
            for arrival in arrivals:
                sleep_until(start + arrival)
                if self.gated:
                    with self._changed:
                        self._active += 1
                self._service.replay()
                ends.append(timed_event())
                if self.gated:
                    waited.put(ends[-1])
        last = time.monotonic_ns()
        stop.set()
        waited.put(None)
        for thread in threads:
            thread.join(DRAIN_S)
        torch.cuda.synchronize()
        if self._failures:
            raise self._failures.pop()
        clock = Clock(first, Mark())
        done = [clock.host_ns(end) for end in steps]
        meant = [start + arrival for arrival in arrivals]
        return {'latencies': [clock.host_ns(end) - at for end, at in zip(ends, meant, strict=True)],
                'steps': sum(start <= end < last for end in done), 'window_ns': last - start}

    def _feed_or_note(self, steps: list[Any], stop: threading.Event) -> None:
        try:
            self._feed(steps, stop)
        except Exception as error:
            self._failures.append(error)

    def _feed(self, steps: list[Any], stop: threading.Event) -> None:
        assert self._step is not None
        with torch.cuda.stream(self._be):
            while not stop.is_set():
                if self.gated:
                    with self._changed:
                        if not self._changed.wait_for(lambda: self._active == 0, timeout=0.1):
                            continue
                self._step.replay()
                steps.append(timed_event())
                behind = 1 if self.gated else OUTSTANDING
                if len(steps) >= behind:
                    steps[-behind].synchronize()

    def _count_down(self, waited: queue.SimpleQueue[Any]) -> None:
        """Tells the step's thread when a query is complete."""
        while (event := waited.get()) is not None:
            event.synchronize()
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def rate(self, runs: int) -> float:
        """Nanoseconds of one step alone, of steps back to back."""
        assert self._step is not None
        with torch.cuda.stream(self._be):
            self._step.replay()
            first = timed_event()
            for _ in range(runs):
                self._step.replay()
            last = timed_event()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e6 / runs

    def solo(self, runs: int = 50) -> float:
        """Median nanoseconds of one query alone."""
        spans = []
        with torch.cuda.stream(self._lc):
            for _ in range(runs):
                first = timed_event()
                self._service.replay()
                last = timed_event()
                last.synchronize()
                spans.append(first.elapsed_time(last) * 1e6)
        return float(sorted(spans)[runs // 2])


def ways(service: Callable[[], Any], step: Any, greens: Mapping[str, GreenContexts],
         wanted: Collection[str]) -> tuple[dict[str, Way], dict[str, str]]:
    """The wanted ways by their names, and why others are absent.

    Those in green contexts come last, because their captures may fail. The service's function must leave its answer
    where all find it.
    """
    made, absent = dict[str, Way](), dict[str, str]()
    for name, priority in LC_PRIORITIES.items():
        if name in wanted:
            streams = torch.cuda.Stream(priority=priority), torch.cuda.Stream()
            made[name] = Way(name, service, None if name == 'alone' else step, streams, gated=name == 'gated')
    for name, green in greens.items():
        if name not in wanted:
            continue
        try:
            made[name] = Way(name, service, step, green.streams, green.sms)
        except RuntimeError as error:  # a kernel that does not run in the context
            absent[name] = str(error).splitlines()[0]
            torch.cuda.synchronize()
    return made, absent


class Greens:
    """The green contexts of this process by the names of their conditions, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, GreenContexts] = {}

    def of(self, names: Sequence[str]) -> tuple[dict[str, GreenContexts], dict[str, str]]:
        """Those of the names that are green, and why others could not be made."""
        absent: dict[str, str] = {}
        for name in names:
            if name in GREEN_SMS and name not in self._made:
                try:
                    self._made[name] = GreenContexts(GREEN_SMS[name])
                except RuntimeError as error:
                    absent[name] = str(error)
        return {name: self._made[name] for name in names if name in self._made}, absent


class RowBaselines:
    """The named baselines of a service and a program. `absent` says why some cannot run."""

    def __init__(self, served: Any, be: Any, names: Sequence[str], greens: Greens) -> None:
        self._served, self._be = served, be
        contexts, self.absent = greens.of(names)
        self._ways, failed = ways(served.call, be.plain(), contexts, (REPLAYED, *names))
        self.absent.update(failed)

    def run(self, name: str, arrivals: Sequence[int]) -> dict[str, Any]:
        self._served.clear()
        with undisturbed():
            run = self._ways[name].run(arrivals)
        self._served.check(name, self._served.answer)
        return {'latencies': [round(one) for one in run['latencies']], 'span_ns': run['window_ns'],
                'work': run['steps'] * self._be.work}


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Without collections, which stop every thread for tens of milliseconds."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.setswitchinterval(interval)
