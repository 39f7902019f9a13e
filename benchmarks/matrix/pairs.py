"""Measures rows: the conditions of a pair in turns on the same arrivals, and what they are compared with."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence
from typing import Any

from arrivals import peak_load, poisson, quantile, slowest
from baselines import REPLAYED, Greens, RowBaselines
from catalogue import run_load
from matrix_plan import ALONE, BASELINES, BOUND, BOUNDED, KERNELS, PEAK, Row, queries_of
from paired import quantile_ratio_interval
from programs import Program, TrainingProgram, program
from served import Served

import gpushare
from gpushare import abi

SOLO_POLICY = 'priority'  # launches a BE task as CUDA would: an ordinary grid, a whole graph
SOLO_S = {False: 0.3, True: 0.6}  # how long a kernel's, a training step's rate alone is measured
PEAK_TRIES = 4  # of the bare service on the GPU, each at 3 % less load
SHARES = (0.5, 0.99)
CAPTURE_S = {False: 0.3, True: 1.0}  # of one baseline of a kernel, of a training step


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a row's figures depend on beside the row itself."""

    queries: int
    rounds: int
    seed: int
    target_over_solo: float
    alone_age_s: float  # bare launches of the same arrivals are measured again after it

    def seed_of(self, number: int) -> int:
        return 1000 * self.seed + number


class Pairs:
    """Everything that rows of one service share: its times, its peak, bare latencies, registered programs."""

    def __init__(self, served: Served, catalogue: Any, settings: Settings) -> None:
        self.served, self._catalogue, self._settings = served, catalogue, settings
        self._numbers = itertools.count(1)
        self._programs: dict[str, Program | str] = {}
        self._greens = Greens()
        self._solo: dict[str, float] = {}  # block tasks, or steps, a nanosecond
        self._bare: dict[tuple[str, int], tuple[float, list[int], int]] = {}
        self.query = abi.init(abi.gpushare_task_options, kernel=served.kernel.handle)
        self.solo_ns, service_ns = served.times()
        self.service_ns = sum(service_ns) / len(service_ns)
        self.target_ns = int(settings.target_over_solo * self.solo_ns)
        self.peak = self._peak(service_ns)

    def _peak(self, service_ns: Sequence[float]) -> float:
        """The load whose bare p99 meets the target: by the queue's recursion, then at most four times 3 % less until
        the GPU keeps it too."""
        load = peak_load(service_ns, max(0.0, self.solo_ns - self.service_ns), self.target_ns)
        if load <= 0:
            raise RuntimeError(f'No load keeps a p99 of {self.target_ns / 1e3:.0f} us.')
        for _ in range(PEAK_TRIES):
            arrivals = poisson(self._settings.seed_of(0), self._settings.queries, self.service_ns / load)
            if quantile(self.served.bare(arrivals)[0], 0.99) <= self.target_ns:
                break
            load *= 0.97
        return load

    def load_of(self, row: Row) -> float:
        return 0.8 * self.peak if row.load == PEAK else BOUNDED[row.load]

    def seconds(self, row: Row) -> float:
        """About how long a row takes."""
        span = self._settings.queries * self.service_ns / self.load_of(row) / 1e9
        new = 0.0
        if row.be and row.be not in self._programs:
            new = 5.0 if row.be not in KERNELS else 0.6
        baselines = [name for name in row.policies if name in BASELINES]
        if baselines:
            new += CAPTURE_S[row.be not in KERNELS] * (1 + len(baselines)) + 1.25 * span
        windows = sum(queries_of(name, 100) for name in row.policies) / 100
        return new + 1.25 * span * (windows + self._settings.rounds * 0.2) + 0.3 * len(row.policies)

    def measure(self, row: Row) -> dict[str, Any]:
        settings = self._settings
        be = self._program(row.be) if row.be else None
        names = [name for name in row.policies if name in BASELINES]
        baselines = RowBaselines(self.served, be, names, self._greens) if names and be is not None else None
        absent = baselines.absent if baselines is not None else {}
        gap_ns = self.service_ns / self.load_of(row)
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in row.policies if name not in absent}
        bare, replayed = list[list[int]](), list[list[int]]()
        for number in range(settings.rounds):
            arrivals = poisson(settings.seed_of(number), settings.queries // settings.rounds, gap_ns)
            bare.append(self._bare_latencies(row.load, number, arrivals))
            if baselines is not None:
                replayed.append(baselines.run(REPLAYED, arrivals)['latencies'])
            for policy, found in runs.items():
                few = arrivals[:queries_of(policy, len(arrivals))]
                if baselines is not None and policy in BASELINES:
                    found.append(baselines.run(policy, few))
                    continue
                p99_alone = int(quantile([one for latencies in bare for one in latencies], 0.99))
                found.append(self._run(policy, row.load, few, p99_alone, be))
        result: dict[str, Any] = {
            'offered': round(self.load_of(row), 4), 'solo_us': round(self.solo_ns / 1e3, 1),
            'service_us': round(self.service_ns / 1e3, 1), 'peak': round(self.peak, 4),
            'target_us': round(self.target_ns / 1e3, 1), 'confined': self.served.confined, 'alone_us': _quantiles(bare),
            'conditions': {name: self._summary(row, replayed if name in BASELINES else bare, found)
                           for name, found in runs.items()}}
        if baselines is not None:
            result.update(replayed_us=_quantiles(replayed), absent=absent)
        if be is not None:
            result.update(be_facts=be.facts, be_solo_per_s=round(self._solo[row.be] * 1e9, 1), be_check=be.check())
        return result

    def _bare_latencies(self, load: str, number: int, arrivals: Sequence[int]) -> list[int]:
        """Of bare launches at these arrivals, measured again when the last are old."""
        kept = self._bare.get((load, number))
        if kept is None or time.monotonic() - kept[0] > self._settings.alone_age_s:
            latencies, window = self.served.bare(arrivals)
            kept = time.monotonic(), latencies, window
            self._bare[load, number] = kept
        return kept[1]

    def _program(self, name: str) -> Program:
        """The registered program with its rate alone. One that failed once fails again at once."""
        found = self._programs.get(name)
        if isinstance(found, str):
            raise RuntimeError(found)
        if found is None:
            try:
                found = program(name, self.served.runtime, self._catalogue)
                self._programs[name] = found
                self._solo[name] = self._rate_alone(found)
            except Exception as error:
                self._programs[name] = f'{name} could not be used: {error}'
                raise
        return found

    def _rate_alone(self, be: Program) -> float:
        span = SOLO_S[isinstance(be, TrainingProgram)]
        result, _ = self._load(SOLO_POLICY, None, (), be, int(span * 1e9))
        if result.be_block_tasks <= 0:
            raise RuntimeError(f'{be.name} alone executed nothing in {span} s, or libgpushare_catalogue.so is older '
                               'than this program and counts no graphs.')
        return float(result.be_block_tasks) / float(result.span_ns)

    def _load(self, policy: str, app: Any, arrivals: Sequence[int], be: Program | None, span_ns: int = 0) -> Any:
        runtime = self.served.runtime
        runtime.set_policy(policy)
        be_app = runtime.create_app(f'be-{next(self._numbers)}', gpushare.BEST_EFFORT) if be is not None else None
        try:
            result = run_load(self._catalogue, runtime, lc=app, be=be_app, lc_task=self.query,
                              be_task=be.task if be is not None else None, arrivals_ns=arrivals, span_ns=span_ns,
                              be_depth=be.depth if be is not None else 0)
            self._held = {reason.name.lower(): round(span / 1e9, 3)
                          for reason, span in be_app.guarantee().held_ns.items() if span > 1e6} if be_app else {}
            return result
        finally:
            if be_app is not None:
                be_app.close()

    def _promise(self, policy: str, load: str, p99_alone_ns: int) -> dict[str, Any]:
        """Adaptive gets the bound where there is one. The papers' policies know targets only: bound x p99 alone."""
        hints = {'p99_alone_ns': p99_alone_ns, 'solo_ns': int(self.solo_ns), 'tasks_max': 16384}
        if load == PEAK:
            return {**hints, 'target_ns': self.target_ns}
        if policy.startswith('adaptive'):
            return {**hints, 'p99_bound': BOUND}
        return {**hints, 'target_ns': int(BOUND * p99_alone_ns)}

    def _run(self, policy: str, load: str, arrivals: Sequence[int], p99_alone_ns: int,
             be: Program | None) -> dict[str, Any]:
        runtime = self.served.runtime
        promise = self._promise(policy, load, p99_alone_ns)
        app = runtime.create_app(f'queries-{next(self._numbers)}', gpushare.LATENCY_CRITICAL, **promise)
        self.served.clear()
        before = runtime.stats()
        try:
            result, latencies = self._load(policy, app, arrivals, be)
        finally:
            app.close()
        after = runtime.stats()
        self.served.check(policy)
        return {'latencies': latencies, 'span_ns': result.span_ns, 'work': result.be_block_tasks,
                'evictions': result.be_evictions, 'launches': after.launches - before.launches, 'held_s': self._held,
                'failed': {'blocked': after.evictions_blocked - before.evictions_blocked,
                           'hung': after.hung - before.hung},
                'places': {str(place): count for place, count in enumerate(result.lc_places) if count}}

    def _summary(self, row: Row, without_be: list[list[int]], runs: list[dict[str, Any]]) -> dict[str, Any]:
        """Both latencies of the same arrivals: where a policy had fewer queries, only those of them without BE."""
        alone = [one for latencies, run in zip(without_be, runs, strict=True)
                 for one in latencies[:len(run['latencies'])]]
        latencies = [one for run in runs for one in run['latencies']]
        window = sum(run['span_ns'] for run in runs)
        result: dict[str, Any] = {
            'queries': len(latencies), 'window_s': round(window / 1e9, 2),
            'load': round(len(latencies) * self.service_ns / window, 4)}
        for share in SHARES:
            name = f'p{share * 100:.0f}'
            result[f'{name}_us'] = round(quantile(latencies, share) / 1e3, 1)
            result[f'{name}_over_alone'] = round(quantile(latencies, share) / quantile(alone, share), 4)
        low, high = quantile_ratio_interval(latencies, alone, 0.99)
        result['p99_over_alone_95'] = [round(low, 4), round(high, 4)]
        result['slowest_us'] = [slowest(run['latencies']) for run in runs]
        result['late'] = round(sum(one > self.target_ns for one in latencies) / len(latencies), 4)
        if row.be != ALONE:
            result['be'] = round(sum(run['work'] for run in runs) / window / self._solo[row.be], 4)
        for key in ('evictions', 'launches', 'failed', 'held_s', 'places'):
            if key in runs[0]:  # a baseline has none
                result[key] = [run[key] for run in runs]
        return result


def _quantiles(rounds: list[list[int]]) -> dict[str, float]:
    everything = [one for latencies in rounds for one in latencies]
    return {f'p{share * 100:.0f}': round(quantile(everything, share) / 1e3, 1) for share in SHARES}
