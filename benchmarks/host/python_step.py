#!/usr/bin/env python3
"""What one step costs a Python thread: submit and wait by each call of the package, on the null device.

A launch of the null device is complete at once, so what is left is the library, the hand-over between its thread and
the caller, and Python. The calls take turns in blocks. One JSON object on stdout, a table on stderr.

  python_step.py [--steps N] [--limits]      --limits: fail where `run` takes longer than LIMIT_US at p50

The package is found by PYTHONPATH, its files by GPUSHARE_LIBRARY and GPUSHARE_PYTHON_STEPS.
Exit code 0: measured; 1: a limit is missed; 2: bad use.
"""

import argparse
import json
import os
import sys
import time

import gpushare
from gpushare import _library

BLOCK = 200
# A debug build on two cores that others load takes 24 to 34 us at p50, over several runs. The limit is more than twice
# that, so that a busy machine does not fail it.
LIMIT_US = 80


def without_extension(call):
    def step():
        steps, _library.steps = _library.steps, None
        try:
            call()
        finally:
            _library.steps = steps
    return step


def quantile_us(times_ns, share):
    return round(sorted(times_ns)[int(len(times_ns) * share)] / 1e3, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--steps', type=int, default=4000)
    parser.add_argument('--limits', action='store_true')
    given = parser.parse_args()
    rows = []
    with gpushare.Runtime(device='null') as runtime:
        queue = runtime.create_app('engine', gpushare.LATENCY_CRITICAL).create_queue()
        kernel = runtime.register_kernel('chain1')
        calls = {'run': lambda: queue.run(kernel), 'run by ctypes': without_extension(lambda: queue.run(kernel)),
                 'submit, wait_ok': lambda: queue.submit(kernel).wait_ok(),
                 'submit, wait': lambda: queue.submit(kernel).wait()}
        times = {name: [] for name in calls}
        cpu_ns = dict.fromkeys(calls, 0)
        for call in calls.values():
            for _ in range(BLOCK):
                call()
        while len(times['run']) < given.steps:
            for name, call in calls.items():
                used_ns = time.thread_time_ns()
                for _ in range(BLOCK):
                    begin_ns = time.perf_counter_ns()
                    call()
                    times[name].append(time.perf_counter_ns() - begin_ns)
                cpu_ns[name] += time.thread_time_ns() - used_ns
        for name, taken_ns in times.items():
            rows.append({'call': name, 'p50_us': quantile_us(taken_ns, 0.5), 'p99_us': quantile_us(taken_ns, 0.99),
                         'cpu_us': round(cpu_ns[name] / len(taken_ns) / 1e3, 2)})
            print(f"{name:16} p50 {rows[-1]['p50_us']:7.2f}, p99 {rows[-1]['p99_us']:7.2f}, "
                  f"cpu {rows[-1]['cpu_us']:7.2f} us", file=sys.stderr)
    print(json.dumps({'device': 'null', 'extension': _library.steps is not None, 'steps': given.steps,
                      'cores': len(os.sched_getaffinity(0)), 'rows': rows}, indent=1))
    return 1 if given.limits and rows[0]['p50_us'] > LIMIT_US else 0


if __name__ == '__main__':
    sys.exit(main())
