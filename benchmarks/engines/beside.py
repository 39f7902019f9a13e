"""Threads that keep a BE job running while the engine serves, with the library and without it."""

from __future__ import annotations

import collections
import contextlib
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import torch

OUTSTANDING = 2  # steps on a stream
SUBMITTED = 4  # steps given to the library and not complete
GATE_S = 0.05  # between two looks at the stop of a gated thread
LIMIT_S = 60.0  # of one wait: a step that never runs is a failure and not a hang


class Feeder:
    """Runs `_feed` in a thread, within a with block. `ends_ns` are the ends of its steps on the host's clock."""

    def __init__(self) -> None:
        self.ends_ns: list[int] = []
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None and value is None:
            raise self._failure

    def within(self, begin_ns: int, end_ns: int) -> int:
        """Steps that ended in the window."""
        return sum(begin_ns <= end < end_ns for end in self.ends_ns)

    def _run(self) -> None:
        try:
            self._feed()
        except Exception as failure:
            self._failure = failure

    def _feed(self) -> None:
        raise NotImplementedError


class Gate:
    """Whether a job may begin a step. A step runs within `turn`, so that `close_and_wait` returns when none is left."""

    def __init__(self) -> None:
        self._may, self._turn = threading.Event(), threading.Lock()

    def open(self) -> None:
        self._may.set()

    def close(self) -> None:
        self._may.clear()

    def close_and_wait(self) -> None:
        self.close()
        with self._turn:
            pass

    @contextlib.contextmanager
    def turn(self) -> Iterator[bool]:
        """Yields whether a step may begin; waits some time for it."""
        self._may.wait(GATE_S)
        with self._turn:
            yield self._may.is_set()


class Launched(Feeder):
    """A graph or an eager step on a stream of its own. With a gate, one step at a time and only while it is open."""

    def __init__(self, launch: Callable[[], Any], stream: Any, gate: Gate | None = None) -> None:
        super().__init__()
        self._launch, self._stream, self._gate = launch, stream, gate
        self._pending: collections.deque[Any] = collections.deque()

    def _feed(self) -> None:
        with torch.cuda.stream(self._stream):
            while not self._stop.is_set():
                if self._gate is None:
                    self._step(OUTSTANDING)
                    continue
                with self._gate.turn() as mine:
                    if mine:
                        self._step(1)
            while self._pending:
                self._ended()

    def _step(self, depth: int) -> None:
        self._launch()
        event = torch.cuda.Event()
        event.record()
        self._pending.append(event)
        if len(self._pending) >= depth:
            self._ended()

    def _ended(self) -> None:
        self._pending.popleft().synchronize()
        self.ends_ns.append(time.monotonic_ns())


class Held(Launched):
    """An eager loop whose operations the library holds back while LC work runs, on a stream of eager_be."""

    def __init__(self, step: Callable[[], Any], runtime: Any) -> None:
        super().__init__(step, None)
        self._runtime = runtime

    def _feed(self) -> None:
        # Imported here: a job in a process of its own runs without the library.
        with importlib.import_module('gpushare.torch').eager_be(self._runtime):
            super()._feed()


class Submitted(Feeder):
    """A Training, of which some steps are always submitted. clock_offset: the runtime's clock less the host's."""

    def __init__(self, training: Any, clock_offset: int) -> None:
        super().__init__()
        self._training, self._offset = training, clock_offset
        self.evictions = 0

    def _feed(self) -> None:
        pending: collections.deque[Any] = collections.deque()
        while not self._stop.is_set():
            pending.append(self._training.submit()[0])
            if len(pending) >= SUBMITTED:
                self._ended(pending.popleft())
        while pending:
            self._ended(pending.popleft())

    def _ended(self, ticket: Any) -> None:
        record = ticket.wait(LIMIT_S)
        ticket.release()
        self.evictions += record.evictions
        self.ends_ns.append(record.complete_ns - self._offset)


class Started:
    """A Training on the package's own thread, which takes Python's lock once in a few steps.

    Its steps are counted when the block begins and ends, as they were collected: to two steps or so.
    """

    evictions = 0  # nobody reads records

    def __init__(self, training: Any) -> None:
        self._training, self._done = training, 0

    def __enter__(self) -> Started:
        self._training.start(outstanding=SUBMITTED)
        self._done = self._training.steps_done
        return self

    def __exit__(self, *_: object) -> None:
        self._done = self._training.steps_done - self._done
        self._training.stop(LIMIT_S)

    def within(self, begin_ns: int, end_ns: int) -> int:
        """Steps that were collected within the block, which the window is."""
        return self._done


def rate(feeder: Feeder, seconds: float) -> float:
    """Steps a second of a job that runs alone: those between the first and the last end."""
    with feeder:
        time.sleep(seconds)
    ends = feeder.ends_ns
    if len(ends) < 2:
        raise RuntimeError(f'A job ran {len(ends)} steps in {seconds} s.')
    return (len(ends) - 1) / ((ends[-1] - ends[0]) / 1e9)
