"""Runs the conditions in turns on the same requests, and makes a row of each."""

from __future__ import annotations

import contextlib
import dataclasses
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import timing
from arrivals import quantile
from bare import Bare, Log
from baselines import undisturbed
from beside import Gate, Held, Launched, Started, Submitted
from engine import Engine
from library import Library, Promise
from loop import Run, serve
from plan import HIGH_WAYS, Condition
from traffic import Request

HIGH = -5  # the highest priority of a stream
HINTS = {'steps': '', 'decode': 'd'}  # the steps whose p99 alone the app states


@dataclasses.dataclass
class Job:
    """A BE job with what it can run as, and its steps a second alone on bare PyTorch."""

    name: str
    step: Any  # of jobs.py
    launch: Any  # its graph's replay, or the step itself
    stream: Any  # one for all runs: eager work keeps memory for each stream
    rate: float
    training: Any = None  # None: an eager loop, which eager_be holds
    process: Any = None  # a process.JobProcess, if a condition has one


@dataclasses.dataclass
class Found:
    """What the rounds of a condition gave."""

    runs: list[Run] = dataclasses.field(default_factory=list)
    numbers: list[int] = dataclasses.field(default_factory=list)  # of the rounds
    steps: int = 0  # of the job, within the windows
    evictions: int = 0
    got: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    tokens: dict[str, int] = dataclasses.field(default_factory=lambda: {'steps': 0, 'tokens': 0, 'differ': 0})
    failed: str = ''


class Rounds:
    def __init__(self, engine: Engine, library: Library | None, jobs: Mapping[str, Job], check_steps: int,
                 hint: str, started: bool) -> None:
        self._engine, self._library, self._jobs = engine, library, jobs
        self._check_steps, self._hint, self._started = check_steps, hint, started
        self._bare = self._runner()
        self._gate = Gate()
        self._promise: Promise | None = None
        self.found: dict[Condition, Found] = {}

    def run(self, condition: Condition, number: int, requests: Sequence[Request],
            prompts: Mapping[int, Sequence[int]]) -> None:
        """One run of a condition. A failure is noted, and the others go on."""
        found = self.found.setdefault(condition, Found())
        if found.failed:
            return
        try:
            runner = self._open(condition)
            try:
                with undisturbed(), runner_stream(runner), self._beside(condition) as feeder:
                    run = self._serve(runner, requests, prompts)
            finally:
                if condition.uses_library:
                    assert self._library is not None
                    found.got.append(self._library.guarantee())
                    self._library.close_app()
            self._keep(condition, found, run, feeder)
            found.numbers.append(number)
            if condition.uses_library:
                self._check(found, runner.log)
        except Exception as failure:
            traceback.print_exc()
            found.failed = str(failure).splitlines()[0] if str(failure) else type(failure).__name__

    def _runner(self, priority: int = 0, *gate: Any) -> Any:
        return Bare(self._engine, priority, *gate)

    def _serve(self, runner: Any, requests: Sequence[Request], prompts: Mapping[int, Sequence[int]]) -> Run:
        return serve(requests, prompts, self._engine.batching(), runner)

    def _open(self, condition: Condition) -> Any:
        if condition.uses_library:
            assert self._library is not None and self._promise is not None
            # With one query a busy period, nothing is known of a query alone.
            promise = Promise(condition.bound) if condition.way == 'query' \
                else dataclasses.replace(self._promise, p99_bound=condition.bound)
            self._library.open(promise, one_query=condition.way == 'query')
            return self._library
        if condition.way in ('gated', 'stopped'):
            self._gate.open()
            close = self._gate.close if condition.way == 'gated' else self._gate.close_and_wait
            return self._runner(HIGH, close, self._gate.open)
        return self._runner(HIGH if condition.way in HIGH_WAYS else 0)

    def _beside(self, condition: Condition) -> Any:
        if not condition.job:
            return contextlib.nullcontext()
        job = self._jobs[condition.job]
        if condition.uses_library:
            assert self._library is not None
            if job.training is None:
                return Held(job.step, self._library.runtime)
            return Started(job.training) if self._started else Submitted(job.training, self._library.clock_offset)
        if condition.way == 'process':
            return job.process
        return Launched(job.launch, job.stream, self._gate if condition.way in ('gated', 'stopped') else None)

    def _keep(self, condition: Condition, found: Found, run: Run, feeder: Any) -> None:
        found.runs.append(run)
        if feeder is not None:
            found.steps += feeder.within(run.start_ns, run.start_ns + run.window_ns)
            found.evictions += getattr(feeder, 'evictions', 0)
        if self._promise is None and condition.way == 'bare':
            steps = timing.step_ns(run, HINTS.get(self._hint, ''))
            self._promise = Promise(1.05) if self._hint == 'none' else \
                Promise(1.05, int(quantile(steps, 0.99)), int(quantile(steps, 0.5)))

    def replayed(self, log: Log) -> dict[str, int]:
        """The first steps of a log, as bare PyTorch repeats them."""
        return self._bare.differing(log, self._check_steps)  # type: ignore[no-any-return]

    def _check(self, found: Found, log: Log) -> None:
        for name, count in self.replayed(log).items():
            found.tokens[name] += count

    def row(self, condition: Condition) -> dict[str, Any]:
        """The condition's figures over those of bare in the same rounds."""
        found, bare = self.found[condition], self.found[Condition('bare')]
        row: dict[str, Any] = {'condition': condition.name, 'way': condition.way, 'bound': condition.bound,
                               'job': condition.job}
        if found.failed:
            row['failed'] = found.failed
        if not found.runs:
            return row
        row.update(timing.figures(found.runs))
        same = timing.figures([run for run, number in zip(bare.runs, bare.numbers, strict=True)
                               if number in found.numbers])
        row['over_bare'] = timing.over(row, same)
        row['over_bare_by_round'] = [
            timing.over(timing.figures([run]), timing.figures([bare.runs[bare.numbers.index(number)]]))
            for run, number in zip(found.runs, found.numbers, strict=True) if number in bare.numbers]
        if condition.job:
            job = self._jobs[condition.job]
            row['be'] = round(found.steps / (row['window_s'] * job.rate), 4)
            row['be_limit'] = round(1 - same['active'], 4)
            row['be_of_limit'] = round(row['be'] / row['be_limit'], 4) if row['be_limit'] > 0 else None
            row['be_steps'], row['evictions'] = found.steps, found.evictions
        if condition.uses_library:
            row['got'], row['token_check'] = found.got, found.tokens
        return row


def runner_stream(runner: Any) -> Any:
    return runner.current() if isinstance(runner, Bare) else contextlib.nullcontext()
