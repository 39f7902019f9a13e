"""Steps without the library: a graph is replayed on a stream and its event awaited. And what a run's tokens should be.

`Log` keeps what each step read and gave. Replaying the steps of a log one after another gives the tokens that bare
PyTorch makes of them, whichever way ran them before.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from batching import Decode, Step
from engine import Engine, Form

TIMED_RUNS = 5


class Log:
    """Steps in their order: their form, what they read, and the tokens of the rows that count."""

    def __init__(self) -> None:
        self.begin()

    def begin(self, steps_max: int = 0) -> None:
        """Forgets the steps, and keeps so many of the next ones; 0: all."""
        self.steps: list[tuple[Step, Form, Any, list[int]]] = []
        self._max = steps_max

    def add(self, step: Step, form: Form, tokens: list[int]) -> None:
        if not self._max or len(self.steps) < self._max:
            self.steps.append((step, form, form.given.copy(), tokens))


class Bare:
    """A runner by graph.replay() and event.synchronize(). on_busy and on_idle gate BE work by hand."""

    def __init__(self, engine: Engine, priority: int = 0, on_busy: Callable[[], None] = lambda: None,
                 on_idle: Callable[[], None] = lambda: None) -> None:
        self._engine, self._graphs = engine, engine.graphs(priority)
        self._stream = torch.cuda.Stream(priority=priority)
        self._event = torch.cuda.Event()
        self.busy, self.idle = on_busy, on_idle
        self.log = Log()

    def run(self, step: Step, follows: bool) -> list[int]:
        form = self._engine.form(step)
        form.write(step)
        self.launch(step, form)
        tokens = form.read()
        self.log.add(step, form, tokens)
        return tokens

    def launch(self, step: Step, form: Form) -> None:
        """Runs what the form's memory says, and waits. The current stream is that of `current`."""
        if step.name in self._graphs:
            self._graphs[step.name].replay()
        else:
            form.function()
        self._event.record()
        self._event.synchronize()

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Around a run: the runner's stream is the current one of this thread."""
        with torch.cuda.stream(self._stream):
            yield

    def differing(self, log: Log, steps_max: int) -> dict[str, int]:
        """Replays the first steps of a log and counts the tokens that differ from the logged ones."""
        tokens = differ = 0
        steps = log.steps[:steps_max or None]
        with self.current():
            for step, form, given, logged in steps:
                form.given[:] = given
                self.launch(step, form)
                rows = [row for row, line in enumerate(step.rows) if line is not None] \
                    if isinstance(step, Decode) else [0]
                again = form.read()
                tokens += len(rows)
                differ += sum(again[row] != logged[row] for row in rows)
        return {'steps': len(steps), 'tokens': tokens, 'differ': differ}

    def times_ns(self) -> dict[str, float]:
        """The median time of a step of each form, as the host sees it."""
        found = {}
        with self.current():
            for name, graph in self._graphs.items():
                times = []
                for _ in range(TIMED_RUNS + 1):
                    began = time.monotonic_ns()
                    graph.replay()
                    self._event.record()
                    self._event.synchronize()
                    times.append(time.monotonic_ns() - began)
                found[name] = float(sorted(times[1:])[TIMED_RUNS // 2])
        return found
