"""The engine's host loop: one thread takes arrivals, runs steps and hands out tokens. Needs no PyTorch.

The loop is the same for every way to run a step, and for a virtual clock, which gives the load without a GPU.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from batching import Batching, Line, Prefill, Step
from sleeping import sleep_until
from traffic import Request

HOST_NS = 40_000  # between two steps, in virtual time: what the loop computes


class Runner(Protocol):
    """How a step runs. `run` returns its tokens when the host knows them."""

    def run(self, step: Step, follows: bool) -> Sequence[int]:
        """follows: another step is known to run right after this one."""

    def busy(self) -> None:
        """A request has arrived, and none was active."""

    def idle(self) -> None:
        """The last active request is complete."""


class Clock(Protocol):
    def now_ns(self) -> int: ...

    def sleep_until(self, instant_ns: int) -> None: ...


class HostClock:
    def now_ns(self) -> int:
        return time.monotonic_ns()

    def sleep_until(self, instant_ns: int) -> None:
        sleep_until(instant_ns)


@dataclasses.dataclass
class Run:
    """What one run of the requests gave. Times are in ns from the begin of the run."""

    lines: list[Line]  # in order of their ends
    steps: list[tuple[str, int, int]]  # name, begin, end
    window_ns: int
    start_ns: int  # on the host's clock


def serve(requests: Sequence[Request], prompts: Mapping[int, Sequence[int]], batching: Batching, runner: Runner,
          clock: Clock | None = None) -> Run:
    """Serves requests that arrive in order, open loop: each at its own time, whatever the engine does."""
    clock = clock or HostClock()
    steps: list[tuple[str, int, int]] = []
    start, arrived, active = clock.now_ns(), 0, False
    now = start
    while True:
        while arrived < len(requests) and start + requests[arrived].arrival_ns <= now:
            request = requests[arrived]
            batching.arrive(request, prompts.get(request.number, ()))
            arrived += 1
        if batching.busy != active:
            active = batching.busy
            (runner.busy if active else runner.idle)()
        step = batching.next()
        if step is None:
            if arrived == len(requests):
                return Run(batching.done, steps, now - start, start)
            clock.sleep_until(start + requests[arrived].arrival_ns)
            now = clock.now_ns()
            continue
        began = clock.now_ns()
        tokens = runner.run(step, batching.follows(step))
        now = clock.now_ns()
        batching.finish(step, tokens, now - start)
        steps.append((step.name, began - start, now - start))


class Simulated:
    """A runner and a clock of virtual time: each step takes what its name says."""

    def __init__(self, times_ns: Mapping[str, float], host_ns: float = HOST_NS) -> None:
        self._times, self._host, self._now = times_ns, host_ns, 0.0

    def now_ns(self) -> int:
        return int(self._now)

    def sleep_until(self, instant_ns: int) -> None:
        self._now = max(self._now, instant_ns)

    def run(self, step: Step, follows: bool) -> Sequence[int]:
        self._now += self._times[step.name] + self._host
        return [0] if isinstance(step, Prefill) else [0] * len(step.rows)

    def busy(self) -> None:
        """Nothing depends on it."""

    def idle(self) -> None:
        """Nothing depends on it."""


def simulated(requests: Sequence[Request], new: Callable[[], Batching], times_ns: Mapping[str, float]) -> Run:
    virtual = Simulated(times_ns)
    return serve(requests, {}, new(), virtual, virtual)
