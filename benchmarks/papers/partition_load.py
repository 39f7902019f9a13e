"""The load of partitions.py: periodic jobs and BE tasks in one loop, on a GPU's clock or on the simulated one."""

from __future__ import annotations

import collections
import contextlib
import gc
import heapq
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import gpushare

MS = 1_000_000
SPIN_NS = 150_000  # before a release: a sleep ends late by about 60 us
UNFINISHED_MAX = 8  # jobs of an app, beyond which it releases none
DEPTH = 3  # BE tasks that an app keeps pending
SLOWEST = 5  # how many of an app's slowest jobs a row has, with what each one waited for
JITTER = 0.1  # of a period, the most by which a release is later than it might be
DRAIN_S = 10.0


class Clock:
    """The device's clock, and waits on it. `idle` runs while there is time."""

    def __init__(self, runtime: gpushare.Runtime) -> None:
        self._runtime, self._virtual = runtime, runtime.device().virtual_time

    def now(self) -> int:
        return self._runtime.now_ns()

    def advance(self, until_ns: int, idle: Callable[[], None]) -> None:
        while (left := until_ns - self.now()) > 0:
            if self._virtual:
                self._runtime.poll_until(self.now() + min(left, MS))
                idle()
                continue
            if left > SPIN_NS / 2:
                idle()
                left = until_ns - self.now()
            if left > 2 * SPIN_NS:
                time.sleep(min(left - SPIN_NS, MS) / 1e9)


class Feeder:
    """Keeps tasks of a BE app pending. submits: what it submits in turns, a step in all; in_block_tasks: its work is
    counted in them, else in steps."""

    def __init__(self, app: gpushare.App, submits: Sequence[Callable[[gpushare.App, int], gpushare.Ticket]],
                 in_block_tasks: bool) -> None:
        self.app, self._submits, self._in_block_tasks = app, submits, in_block_tasks
        self._next = 0
        self._pending: collections.deque[gpushare.Ticket] = collections.deque()

    def feed(self) -> None:
        while self._pending and self._pending[0].done():
            self._pending.popleft()
        while len(self._pending) < max(DEPTH, len(self._submits)):
            self._pending.append(self._submits[self._next](self.app, 1))
            self._next = (self._next + 1) % len(self._submits)

    def work(self) -> float:
        """Block tasks or steps so far."""
        stats = self.app.stats()
        return float(stats.block_tasks) if self._in_block_tasks else stats.completed / len(self._submits)

    def drop(self) -> None:
        self._pending.clear()


class LcApp:
    """A periodic app and what became of its jobs in a window."""

    def __init__(self, name: str, period_ns: int, deadline_ns: int, app: gpushare.App,
                 submit: Callable[[gpushare.App, int], gpushare.Ticket]) -> None:
        self.name, self.period_ns, self.deadline_ns, self.app = name, period_ns, deadline_ns, app
        self._submit = submit
        self.begin()

    def begin(self) -> None:
        self.pending: collections.deque[gpushare.Ticket] = collections.deque()
        self.responses: list[int] = []
        self.slowest: list[tuple[int, int, dict[str, int]]] = []  # a heap, the quickest first
        self.whole_device = 0  # jobs that ran on all SMs
        self.jobs = self.skipped = self.failed = 0

    def release(self, times: int = 1) -> None:
        self.reap()
        if len(self.pending) >= UNFINISHED_MAX:
            self.skipped += 1
            return
        self.pending.append(self._submit(self.app, times))
        self.jobs += 1

    def reap(self) -> None:
        while self.pending and self.pending[0].done():
            record = self.pending.popleft().record()
            if record.verdict != gpushare.Verdict.OK:
                self.failed += 1
                continue
            self.responses.append(record.complete_ns - record.submit_ns)
            slow = (self.responses[-1], len(self.responses), parts_of(record))
            if len(self.slowest) < SLOWEST:
                heapq.heappush(self.slowest, slow)
            else:
                heapq.heappushpop(self.slowest, slow)
            self.whole_device += record.place == 0

    def row(self) -> dict[str, Any]:
        ordered = sorted(self.responses)
        return {'jobs': self.jobs, 'missed': sum(one > self.deadline_ns for one in ordered), 'skipped': self.skipped,
                'failed': self.failed + len(self.pending), 'deadline_ns': self.deadline_ns,
                'period_ns': self.period_ns, 'p50_ns': at(ordered, 0.5), 'p99_ns': at(ordered, 0.99),
                'longest_ns': ordered[-1] if ordered else 0, 'on_all_sms': self.whole_device,
                'slowest': [parts for _, _, parts in sorted(self.slowest, reverse=True)]}


def parts_of(record: gpushare.CompletionRecord) -> dict[str, int]:
    """What a job's response consists of, in ns. Devices without timestamps tell no start and no end."""
    start, end = record.start_ns or record.launch_ns, record.end_ns or record.complete_ns
    return {'launch': record.launch_ns - record.submit_ns, 'begin': start - record.launch_ns, 'work': end - start,
            'seen': record.complete_ns - end}


def at(ordered: Sequence[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def run_window(runtime: gpushare.Runtime, clock: Clock, apps: Sequence[LcApp], feeders: Mapping[str, Feeder],
               seconds: float, seed: int, guilty: str, overrun_every: int, times: int) -> dict[str, Any]:
    """Releases jobs for some seconds and waits for their ends. All apps release their first job at once.

    guilty: every overrun_every-th job of this app has `times` its work; '': no job overruns.
    """
    draw = random.Random(seed)

    def idle() -> None:
        feed_all(feeders.values())
        for app in apps:
            app.reap()

    for app in apps:
        app.begin()
    with undisturbed():
        idle()
        start_ns = clock.now() + 20 * MS
        end_ns = start_ns + round(seconds * 1e9)
        clock.advance(start_ns, idle)
        before = {name: feeder.work() for name, feeder in feeders.items()}
        releases = [(start_ns, number) for number in range(len(apps))]
        while releases[0][0] < end_ns:
            next_ns, number = releases[0]
            app = apps[number]
            clock.advance(next_ns, idle)
            overruns = app.name == guilty and app.jobs % overrun_every == overrun_every - 1
            app.release(times if overruns else 1)
            distance = app.period_ns + round(draw.uniform(0, JITTER) * app.period_ns)
            heapq.heapreplace(releases, (clock.now() + distance, number))
        clock.advance(end_ns, idle)
        span_ns = clock.now() - start_ns
        work = {name: feeder.work() - before[name] for name, feeder in feeders.items()}
        drain(runtime, apps, feeders.values())
    return {'span_s': round(span_ns / 1e9, 4), 'be_work': work, 'apps': {app.name: app.row() for app in apps}}


def feed_all(feeders: Iterable[Feeder]) -> None:
    for feeder in feeders:
        feeder.feed()


def drain(runtime: gpushare.Runtime, apps: Iterable[LcApp], feeders: Iterable[Feeder]) -> None:
    for feeder in feeders:
        feeder.drop()
    runtime.drain(DRAIN_S)
    for app in apps:
        app.reap()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Without collections, which stop the loop for milliseconds. Afterwards they are as they were before."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
