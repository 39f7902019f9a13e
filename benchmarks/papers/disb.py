#!/usr/bin/env python3
"""Writes the DISB workloads (SJTU-IPADS/disb: A to E and REAL) as a scenario of `gpushare colocate`.

  disb.py FOLDER > disb.json

FOLDER holds A.json to E.json and REAL.json ($GPUSHARE_DATA/disb). What is DISB's: which clients there are, their rates
and times, and that BE clients always have the next request ready. What is not: its models. A model's LC client and its
BE client are stood in for by a graph and a kernel that the command has on a GPU (LC_KERNELS, BE_KERNELS).

Each workload is two cases: at DISB's own rates, which are a small load for the stand-ins, and scaled to a load of 0.5.
A client that asks again at once (B) has one case.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

WORKLOADS = ('A', 'B', 'C', 'D', 'E', 'REAL')
SCALED_LOAD = 0.5
# Each with one query alone on the simulated H200, us (`solo_ns` of the results): rates become loads by it. The order
# by duration is that of the models.
LC_KERNELS = {'resnet152': ('chain1', 675), 'densenet201': ('decode16', 558), 'vgg19': ('prefill', 536),
              'inceptionv3': ('decode12', 430), 'distilbert': ('softmax', 112)}
SOFTMAX_BLOCK_TASKS = 1716
# Block tasks for half a millisecond alone.
BE_KERNELS = {'resnet152': ('sgemm', 1320), 'densenet201': ('lbm', 5544), 'vgg19': ('cutcp', 10956),
              'inceptionv3': ('mriq', 11352), 'distilbert': ('fft', 8184)}
Json = dict[str, Any]


def model_of(task: Json) -> str:
    return str(task['id']).rsplit('_', 1)[0]


def is_lc(task: Json) -> bool:
    return str(task['id']).endswith('_rt')


def arrivals_of(load: Json) -> Json:
    kind = load['type']
    if kind == 'trace':
        # Milliseconds. Two requests of one client in the same millisecond stay in order.
        return {'type': 'explicit', 'times_ns': [time * 1_000_000 for time in sorted(load['trace'])], 'scaled': True}
    if kind == 'continuous':
        return {'type': 'closed_loop'}
    if kind in ('periodic', 'poisson'):
        return {'type': kind}
    raise ValueError(f"'{kind}' is no kind of load that DISB has.")


def rate_of(load: Json) -> float:
    """Queries a second; 0 where a client waits for its answer."""
    if load['type'] == 'trace':
        times = sorted(load['trace'])
        return 1000 * (len(times) - 1) / float(times[-1] - times[0])
    return float(load.get('frequency', 0))


def lc_app(workload: str, task: Json) -> Json:
    kernel, solo_us = LC_KERNELS[model_of(task)]
    app: Json = {'name': f"{workload}_{task['id']}", 'kernel': kernel}
    if kernel == 'softmax':
        app['block_tasks'] = SOFTMAX_BLOCK_TASKS
    app |= {'arrivals': arrivals_of(task['load']), 'p99_bound': 1.05, 'target_solo_factor': 10}
    if rate_of(task['load']) > 0:
        app['share'] = rate_of(task['load']) * solo_us
    return app


def cases_of(workload: str, tasks: list[Json]) -> list[Json]:
    lc = [task for task in tasks if is_lc(task)]
    case: Json = {'lc': [f"{workload}_{task['id']}" for task in lc],
                  'be': [task['id'] for task in tasks if not is_lc(task)]}
    load = sum(rate_of(task['load']) * LC_KERNELS[model_of(task)][1] for task in lc) / 1e6
    if load == 0:
        return [{'name': workload, **case}]
    return [{'name': f'{workload}-own', **case, 'load': round(load, 5)},
            {'name': f'{workload}-{SCALED_LOAD}', **case, 'load': SCALED_LOAD}]


def scenario(workloads: dict[str, list[Json]]) -> Json:
    be_models = {model_of(task): task['id'] for tasks in workloads.values() for task in tasks if not is_lc(task)}
    return {
        'schema_version': 1,
        'name': 'disb',
        'description': 'A to E and REAL of DISB; kernels of the profile stand in for its models.',
        'profile': 'profiles/h200.json',
        'queries': 500,
        'be_alone_ns': 300_000_000,
        'policies': ['fifo', 'priority', 'baymax', 'adaptive', 'plain_streams', 'plain_priority'],
        'target_policies': ['baymax'],
        'lc': [lc_app(name, task) for name, tasks in workloads.items() for task in tasks if is_lc(task)],
        'be': [{'name': be_models[model], 'kernel': kernel, 'block_tasks': blocks}
               for model, (kernel, blocks) in BE_KERNELS.items() if model in be_models],
        'cases': [case for name, tasks in workloads.items() for case in cases_of(name, tasks)],
    }


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith('-'):
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    workloads = {name: json.loads((folder / f'{name}.json').read_text(encoding='utf-8'))['tasks']
                 for name in WORKLOADS}
    json.dump(scenario(workloads), sys.stdout)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
