#!/usr/bin/env python3
"""Periodic apps with deadlines in partitions, beside BE work: misses, tightness of the bounds, BE's share.

Measures the worst cases of each job at some numbers of SMs, beside the same BE work. Then runs four task sets under the
policy `partitioned` beside a BE flood and beside a training, with one app whose jobs overrun, and for contrast without
partitions under `priority` and under `bare` (plain sharing, as of MPS clients). Prints a line a window and writes JSON.

  partitions.py --device sim --seconds 1 --out out/partitions.json
  partitions.py --device cuda --catalogue .../libgpushare_catalogue.so --seconds 8 --out out/partitions.json

A release comes a period after the submission before at the earliest, so a late host breaks no assumption of the
bounds. A job whose app has 8 unfinished ones is not released and counts as skipped. Exit code 1: a deadline or a
bound was missed in partitions, or another app than the guilty one lost by its overruns.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import pathlib
import platform
import statistics
import sys
import time
from typing import Any

from partition_load import Clock, Feeder, LcApp, run_window
from partition_sets import BESIDE, DEFAULT_SETS, NETWORKS, OVERRUN, SETS, Job, Programs, TaskSet, sentence
from partition_worst_cases import Measured, measure

import gpushare

HERE = pathlib.Path(__file__).resolve().parent
OVERRUN_EVERY = 10
PATHS = ('catalogue', 'out', 'profile')  # options that are of a machine


def open_runtime(device: str, policy: str, profile: str = '') -> gpushare.Runtime:
    given: dict[str, Any] = {'device': device, 'policy': policy}
    if profile:
        given['profile_path'] = profile
    if device == 'sim':
        return gpushare.Runtime(drive=gpushare.Drive.POLL, **given)
    return gpushare.Runtime(latency=gpushare.Latency.SPIN, **given)


def hardware(device: gpushare.DeviceInfo) -> dict[str, str]:
    """The GPU's model and its driver's version. A simulated device has its name and no driver."""
    if device.name != 'cuda':
        return {'gpu': device.name, 'driver': ''}
    text = ctypes.create_string_buffer(256)
    code = ctypes.CDLL('libcuda.so.1').cuDeviceGetName(text, len(text), 0)
    if code != 0:
        raise RuntimeError(f'The driver returned CUresult {code} for the name of device 0.')
    model, driver = text.value.decode(), ''
    try:
        nvml = ctypes.CDLL('libnvidia-ml.so.1')
    except OSError:
        return {'gpu': model, 'driver': ''}
    if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
        driver = text.value.decode()
    return {'gpu': model, 'driver': driver}


class SetRun:
    """The windows of one task set, in one runtime under the policy `partitioned`. Raises TrainingFailedError."""

    def __init__(self, name: str, given: TaskSet, programs: Programs, measured: Measured,
                 options: argparse.Namespace, runtime: gpushare.Runtime) -> None:
        self.name, self._set, self._options = name, given, options
        self._measured, self._training_is = measured, programs.training_is
        self.runtime = runtime
        self._clock = Clock(self.runtime)
        kernels: dict[str, gpushare.Kernel] = {}
        self._apps = [LcApp(job.app, job.period_ns, job.deadline_ns, self._create(job),
                            programs.submits(self.runtime, kernels, job)) for job in given.jobs]
        self._plan()  # before the training is registered: its partitions are made here
        self._feeders = {name: Feeder(*programs.best_effort(self.runtime, kernels, name))
                         for names in BESIDE.values() for name in names}

    def _create(self, job: Job) -> gpushare.App:
        return self.runtime.create_app(
            job.app, gpushare.LATENCY_CRITICAL, period_ns=job.period_ns, deadline_ns=job.deadline_ns,
            worst_cases=[(sms, round(worst * self._options.margin))
                         for sms, worst in self._measured.worst_cases(job.key)])

    def _plan(self) -> gpushare.PartitionPlan:
        """Plans, and so begins the counts of guarantee() anew."""
        return self.runtime.plan_partitions(share=self._set.share, slack_eviction_ns=self._options.slack_us * 1000)

    def window(self, policy: str, beside: str, seconds: float, overruns: bool = False) -> dict[str, Any]:
        options = self._options
        self.runtime.set_policy(policy)
        row: dict[str, Any] = {'set': self.name, 'policy': policy, 'beside': beside, 'overruns': overruns,
                               'training_is': self._training_is}
        if policy == 'partitioned':
            plan = self._plan()
            row.update(partitions=plan.partitions, partition_sms=plan.partition_sms, rest_sms=plan.rest_sms)
        feeders = {name: self._feeders[name] for name in BESIDE[beside]}
        guilty = self._set.guilty if overruns else ''
        row.update(run_window(self.runtime, self._clock, self._apps, feeders, seconds, options.seed, guilty,
                              overrun_every=OVERRUN_EVERY, times=OVERRUN))
        rates = self._measured.rate_alone[beside]
        row['be_share'] = round(statistics.mean(work / row['span_s'] / rates[name]
                                                for name, work in row['be_work'].items()), 4)
        if policy == 'partitioned':
            for app in self._apps:
                row['apps'][app.name].update(guarantee_of(app))
        return row | verdict(row, guilty)


def guarantee_of(app: LcApp) -> dict[str, Any]:
    got = app.app.guarantee()
    tightness = got.response_ns_max / got.response_bound_ns if got.response_bound_ns else None
    return {'sms': got.partition_sms, 'bound_ns': got.response_bound_ns, 'response_ns_max': got.response_ns_max,
            'tightness': tightness and round(tightness, 4), 'jobs_counted': got.jobs,
            'missed_counted': got.deadlines_missed, 'overrun_jobs': got.overruns}


def verdict(row: dict[str, Any], guilty: str) -> dict[str, Any]:
    """Sums over the apps but the guilty one. A job that was skipped is one, and is missed."""
    honest = [app for name, app in row['apps'].items() if name != guilty]
    found = jobs_of(honest)
    if row['policy'] == 'partitioned':
        found['over_bound'] = sum(app['response_ns_max'] > app['bound_ns'] for app in honest)
        found['overrun_jobs'] = sum(app['overrun_jobs'] for app in honest)
        found['tightness'] = max((app['tightness'] or 0 for app in honest), default=0)
        found['kept'] = found['missed'] == 0 and found['over_bound'] == 0
    if guilty:
        found['guilty'] = {'app': guilty} | jobs_of([row['apps'][guilty]])
    return found


def jobs_of(apps: list[dict[str, Any]]) -> dict[str, Any]:
    return {'jobs': sum(app['jobs'] + app['skipped'] for app in apps),
            'missed': sum(app['missed'] + app['skipped'] + app['failed'] for app in apps)}


def line(row: dict[str, Any]) -> str:
    if 'absent' in row:
        return f'{row["set"]}: {row["absent"]}'
    what = f'{row["set"]}, {row["policy"]} beside {row["beside"]}{" with overruns" if row["overruns"] else ""}'
    text = f'{what}: {row["jobs"]} jobs, {row["missed"]} missed, BE {row["be_share"]:.3f}'
    if row['policy'] == 'partitioned':
        text += (f', {row["partitions"]} partitions of {row["partition_sms"]} SMs, largest response / bound '
                 f'{row["tightness"]:.3f}')
    if 'guilty' in row:
        text += f'; {row["guilty"]["app"]} lost {row["guilty"]["missed"]} of {row["guilty"]["jobs"]}'
    return text


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.began = options, time.monotonic()
        self.rows: list[dict[str, Any]] = []
        given = {name: value for name, value in sorted(vars(options).items()) if name not in PATHS}
        self.head: dict[str, Any] = {'experiment': 'partitions', 'device': options.device, 'options': given,
                                     'python': platform.python_version()}

    def left_s(self) -> float:
        return float(self.options.limit_s - (time.monotonic() - self.began))

    def run(self) -> int:
        options = self.options
        gpushare.library()  # first: the catalogue needs it, and finds it by its name once it is loaded
        catalogue = None
        if options.device == 'cuda':
            sys.path.insert(0, str(HERE.parents[1] / 'examples/pytorch'))
            from catalogue import Catalogue
            catalogue = Catalogue(options.catalogue)
            if not catalogue.has_cuda():
                raise SystemExit('The catalogue was built without CUDA, and --device cuda needs its kernels.')
        with open_runtime(options.device, 'partitioned', options.profile) as runtime:
            device = runtime.device()
            self.head.update(hardware(device), sms=device.sm_count, library=gpushare.version())
        programs = Programs(catalogue, device.sm_count)
        sets = self._prepared(programs)
        measured = measure(lambda: open_runtime(options.device, 'partitioned', options.profile), programs,
                           [job for one in sets.values() for job in one.jobs], options, self.left_s)
        self.head.update(worst_cases=measured.facts, left_out=measured.left_out, absent=measured.absent,
                         rate_alone=measured.rate_alone, training=programs.training_is,
                         training_reason=programs.training_reason,
                         setup_s=round(time.monotonic() - self.began, 2))
        print(f'setup took {self.head["setup_s"]} s; training is {programs.training_is}', flush=True)
        self.write()
        for name, given in sets.items():
            self._run_set(name, given, programs, measured)
            self.write()
        failed = [row for row in self.rows if 'absent' in row or row.get('kept') is False]
        return 1 if failed or not self.rows else 0

    def _prepared(self, programs: Programs) -> dict[str, TaskSet]:
        """The sets that can run here. A set whose network cannot be captured is absent with the reason."""
        sets = {name: SETS[name] for name in self.options.sets.split(',')}
        for name, given in list(sets.items()):
            try:
                for network in sorted(NETWORKS & {job.program for job in given.jobs}):
                    programs.prepare(network)
            except Exception as error:
                del sets[name]
                self.note({'set': name, 'absent': sentence(error)})
        programs.prepare_step(self.options.step)
        return sets

    def _run_set(self, name: str, given: TaskSet, programs: Programs, measured: Measured) -> None:
        options = self.options
        windows = [('partitioned', 'flood', options.seconds / 2, False),
                   ('partitioned', 'training', options.seconds / 2, False),
                   ('partitioned', 'flood', options.contrast_seconds, True),
                   ('priority', 'flood', options.contrast_seconds, False),
                   ('bare', 'flood', options.contrast_seconds, False)]
        lost = [measured.absent[job.key] for job in given.jobs if job.key in measured.absent]
        try:
            if lost:
                raise RuntimeError(lost[0])
            with open_runtime(options.device, 'partitioned', options.profile) as runtime:
                run = SetRun(name, given, programs, measured, options, runtime)
                for policy, beside, seconds, overruns in windows:
                    if self.left_s() < seconds + 3:
                        self.note({'set': name, 'absent': f'{policy} beside {beside}: no time left (--limit-s)'})
                        continue
                    self.note(run.window(policy, beside, seconds, overruns))
        except Exception as error:
            self.note({'set': name, 'absent': sentence(error)})

    def note(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        print(line(row), flush=True)

    def write(self) -> None:
        if self.options.out:
            self.options.out.parent.mkdir(parents=True, exist_ok=True)
            rows = ',\n'.join('  ' + json.dumps(row) for row in self.rows)
            head = json.dumps(self.head, indent=1)
            self.options.out.write_text(f'{{"head": {head},\n "rows": [\n{rows}]}}\n')


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--device', choices=('cuda', 'sim', 'sim:realtime'), default='cuda')
    parser.add_argument('--catalogue', default='libgpushare_catalogue.so')
    parser.add_argument('--profile', default='')
    parser.add_argument('--sets', default=','.join(DEFAULT_SETS), help=f'of {",".join(SETS)}')
    parser.add_argument('--seconds', type=float, default=8.0, help='a set in partitions, half beside each BE work')
    parser.add_argument('--contrast-seconds', type=float, default=2.0,
                        help='a window with overruns or without partitions')
    parser.add_argument('--limit-s', type=float, default=540.0,
                        help='no size is measured and no window begins that would end later')
    parser.add_argument('--runs', type=int, default=500, help='of each worst case, beside each BE work')
    parser.add_argument('--measure-seconds', type=float, default=5.0, help='the most for each of these')
    parser.add_argument('--margin', type=float, default=1.10, help='stated worst case over the largest measured')
    parser.add_argument('--slack-us', type=int, default=0, help='slack_eviction_ns of the plan, in us')
    parser.add_argument('--step', default='mlp_small', help="the training's, of matrix/networks.py; '': of kernels")
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--out', type=pathlib.Path)
    options = parser.parse_args(given)
    unknown = [name for name in options.sets.split(',') if name not in SETS]
    if unknown:
        parser.error(f"--sets has '{unknown[0]}', and the sets are {', '.join(SETS)}.")
    return options


if __name__ == '__main__':
    sys.exit(Bench(arguments()).run())
