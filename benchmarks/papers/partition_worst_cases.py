"""The worst cases of partitions.py: each job back to back on some numbers of SMs, beside BE work on the other SMs.

All jobs of a batch run at once, each in a partition of its own, beside the flood and then beside the training. The
worst case is the largest response of both, from the submission to the end that the host saw.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from partition_load import Clock, Feeder, LcApp, at, drain, feed_all, undisturbed
from partition_sets import BESIDE, MS, Job, Programs, TrainingFailedError, sentence

import gpushare

SIZES = (8, 16, 24, 32)
# Of a batch together. BE work has the rest, about as many SMs as beside a set: on fewer it would fill less of DRAM.
JOBS_SMS = 64
PERIOD_NS = 1000 * MS  # stated while nothing is known
ALONE_NS = {'flood': 300 * MS, 'training': 600 * MS}  # how long BE work is measured without jobs
WARM_NS = 50 * MS
RUNS_MIN = 5  # of a job beside each BE work; a size with fewer is left out
GIVE_UP_S = 20.0  # after which a batch waits for no more of them


class Measured:
    """Worst cases by job and SMs, and what each BE app does in a second beside no jobs."""

    def __init__(self) -> None:
        self.facts: dict[str, dict[int, dict[str, Any]]] = {}
        self.rate_alone: dict[str, dict[str, float]] = {}  # by BE work and app
        self.absent: dict[str, str] = {}  # jobs that cannot run in partitions, with the reason
        self.left_out: dict[str, dict[int, str]] = {}  # sizes on which a job cannot run

    def worst_cases(self, key: str) -> list[tuple[int, int]]:
        return [(sms, found['max_ns']) for sms, found in sorted(self.facts[key].items())]

    def add(self, key: str, sms: int, responses: list[int], beside: str) -> None:
        ordered = sorted(responses)
        found = self.facts.setdefault(key, {}).setdefault(sms, {'max_ns': 0})
        found['max_ns'] = max(found['max_ns'], ordered[-1])
        found[beside] = {'runs': len(ordered), 'p50_ns': at(ordered, 0.5), 'p99_ns': at(ordered, 0.99),
                         'max_ns': ordered[-1]}


def measure(open_runtime: Callable[[], gpushare.Runtime], programs: Programs, jobs: Iterable[Job],
            options: argparse.Namespace, left_s: Callable[[], float]) -> Measured:
    """left_s: what is left of --limit-s. Where the training step fails, all is measured again beside kernels, so that
    all worst cases and rates have the same neighbour."""
    distinct = list({job.key: job for job in jobs}.values())
    try:
        return measure_all(open_runtime, programs, distinct, options, left_s)
    except (TrainingFailedError, gpushare.DeadlineExceededError) as error:
        if programs.training_is == 'kernels':
            raise
        # Steps that no place holds wait as long as a plan is in force, until a drain gives up.
        programs.drop_step(sentence(error))
    return measure_all(open_runtime, programs, distinct, options, left_s)


def measure_all(open_runtime: Callable[[], gpushare.Runtime], programs: Programs, jobs: list[Job],
                options: argparse.Namespace, left_s: Callable[[], float]) -> Measured:
    measured = Measured()
    for sms in SIZES:
        at_once = JOBS_SMS // sms
        batches = [jobs[first:first + at_once] for first in range(0, len(jobs), at_once)]
        if left_s() < len(batches) * len(BESIDE) * options.measure_seconds:
            for job in jobs:
                reason = f'no time left to measure it on {sms} SMs (--limit-s)'
                measured.left_out.setdefault(job.key, {})[sms] = reason
                measured.absent.setdefault(job.key, reason)  # no set runs with some of its worst cases
            continue
        with open_runtime() as runtime:
            one_size(runtime, programs, batches, sms, measured, options)
    if left_s() > 0:  # else no window begins
        measured.rate_alone = rates_alone(open_runtime, programs)
    for key, sizes in measured.left_out.items():
        for sms in sizes:
            measured.facts.get(key, {}).pop(sms, None)
        if not measured.facts.get(key):
            measured.absent.setdefault(key, f"'{key}' has no worst case: {next(iter(sizes.values()))}")
    return measured


def rates_alone(open_runtime: Callable[[], gpushare.Runtime], programs: Programs) -> dict[str, dict[str, float]]:
    rates: dict[str, dict[str, float]] = {}
    with open_runtime() as runtime:
        runtime.set_policy('priority')
        clock = Clock(runtime)
        kernels: dict[str, gpushare.Kernel] = {}
        for beside, names in BESIDE.items():
            feeders = {name: Feeder(*programs.best_effort(runtime, kernels, name)) for name in names}
            rates[beside] = rates_of(clock, feeders, ALONE_NS[beside])
            drain(runtime, (), feeders.values())
    return rates


def rates_of(clock: Clock, feeders: Mapping[str, Feeder], ns: int) -> dict[str, float]:
    def idle() -> None:
        feed_all(feeders.values())

    idle()
    clock.advance(clock.now() + WARM_NS, idle)
    start_ns, before = clock.now(), {name: feeder.work() for name, feeder in feeders.items()}
    clock.advance(start_ns + ns, idle)
    span_ns = clock.now() - start_ns
    return {name: (feeder.work() - before[name]) / span_ns * 1e9 for name, feeder in feeders.items()}


def one_size(runtime: gpushare.Runtime, programs: Programs, batches: list[list[Job]], sms: int, measured: Measured,
             options: argparse.Namespace) -> None:
    clock = Clock(runtime)
    kernels: dict[str, gpushare.Kernel] = {}
    be = {beside: [Feeder(*programs.best_effort(runtime, kernels, name)) for name in names]
          for beside, names in BESIDE.items()}
    for batch in batches:
        jobs, apps = [], []
        for job in batch:
            try:
                submit = programs.submits(runtime, kernels, job)
            except Exception as error:
                measured.absent[job.key] = sentence(error)
                continue
            jobs.append(job)
            apps.append(LcApp(job.key, PERIOD_NS, PERIOD_NS, runtime.create_app(
                job.key, gpushare.LATENCY_CRITICAL, period_ns=PERIOD_NS, worst_cases=[(sms, PERIOD_NS // 2)]), submit))
        if jobs:
            runtime.plan_partitions()
        for beside, feeders in be.items():
            back_to_back(runtime, clock, apps, feeders, options)
            for job, app in zip(jobs, apps, strict=True):
                if app.whole_device or app.failed or len(app.responses) < RUNS_MIN:
                    measured.left_out.setdefault(job.key, {})[sms] = (
                        f'of {app.jobs} jobs {app.whole_device} ran on all SMs and {app.failed} failed; '
                        f'{len(app.responses)} ended, and a worst case needs {RUNS_MIN}')
                else:
                    measured.add(job.key, sms, app.responses, beside)
        for app in apps:
            app.app.close()


def back_to_back(runtime: gpushare.Runtime, clock: Clock, apps: list[LcApp], feeders: list[Feeder],
                 options: argparse.Namespace) -> None:
    """Each app has one job under way until it has its runs, or the time is over and it has RUNS_MIN."""
    def step() -> None:
        feed_all(feeders)
        for app in apps:
            app.reap()
            if not app.pending and len(app.responses) < options.runs:
                app.release()

    with undisturbed():
        for app in apps:
            app.begin()
        feed_all(feeders)
        clock.advance(clock.now() + 10 * MS, lambda: feed_all(feeders))
        end = clock.now() + round(options.measure_seconds * 1e9)
        give_up = time.monotonic() + GIVE_UP_S
        while any(len(app.responses) < (options.runs if clock.now() < end else RUNS_MIN) for app in apps):
            step()
            clock.advance(clock.now() + 20_000, step)
            if time.monotonic() > give_up:
                break
        drain(runtime, apps, feeders)
