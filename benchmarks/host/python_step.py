#!/usr/bin/env python3
"""What one step costs a Python thread: submit and wait by each call of the package, on the null device.

A launch of the null device is complete at once, so what is left is the library, the hand-over between its thread and
the caller, and Python. The calls take turns in blocks. With --cold the thread writes COLD_BYTES before each step, so
that the code of a step is in no cache, as behind a graph of milliseconds; the calls take turns step by step, and the
caller drives the flow, so that no other thread is waited for. The server is that of gpushare.torch with the tests'
PyTorch, which needs no GPU. One JSON object on stdout, a table on stderr.

  python_step.py [--steps N] [--cold] [--limits]     --limits: fail where `run` takes longer than LIMIT_US at p50

The package is found by PYTHONPATH, its files by GPUSHARE_LIBRARY and GPUSHARE_PYTHON_STEPS.
Exit code 0: measured; 1: a limit is missed; 2: bad use.
"""

import argparse
import asyncio
import ctypes
import json
import os
import pathlib
import sys
import time

import gpushare
from gpushare import _library

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / 'tests/python'))
import fake_torch

BLOCK = 200
COLD_BYTES = 8 << 20  # more than the second-level caches of a core have
other_memory = ctypes.create_string_buffer(COLD_BYTES)
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


class Modules:
    """Puts modules in the place of others, for good."""

    def setitem(self, modules, name, module):
        modules[name] = module

    def delitem(self, modules, name):
        del modules[name]


def server_of(runtime):
    fake_torch.install(Modules())
    from gpushare.torch import Server
    server = Server(runtime, name='server')
    server.add('step', fake_torch.double, fake_torch.Tensor([1]))
    return server


def awaited(submit):
    """Awaits one ticket in a loop that is there already."""
    loop = asyncio.new_event_loop()

    async def step():
        await submit()
    return lambda: loop.run_until_complete(step())


def calls_of(queue, kernel, server):
    return {'run': lambda: queue.run(kernel), 'run by ctypes': without_extension(lambda: queue.run(kernel)),
            'server.run': lambda: server.run('step'),
            'submit, wait_ok': lambda: queue.submit(kernel).wait_ok(),
            'submit, wait': lambda: queue.submit(kernel).wait(),
            'submit, future': lambda: queue.submit(kernel).future().result(),
            'submit, await': awaited(lambda: queue.submit(kernel))}


def displace():
    """Fills the caches with other memory."""
    ctypes.memset(other_memory, 1, COLD_BYTES)


def timed(call, times_ns, steps, cold):
    """Adds the time of each step and the thread's processor time in it."""
    for _ in range(steps):
        if cold:
            displace()
        begin_used_ns = time.thread_time_ns()
        begin_ns = time.perf_counter_ns()
        call()
        taken_ns = time.perf_counter_ns() - begin_ns
        times_ns.append((taken_ns, time.thread_time_ns() - begin_used_ns))


def quantile_us(times_ns, share):
    return round(sorted(times_ns)[int(len(times_ns) * share)] / 1e3, 2)


def measure(steps, cold):
    drive = gpushare.Drive.POLL if cold else gpushare.Drive.THREAD
    with fake_torch.CapturingRuntime(device='null', drive=drive) as runtime:
        queue = runtime.create_app('engine', gpushare.LATENCY_CRITICAL).create_queue()
        kernel = runtime.register_kernel('chain1')
        runtime.node_ns = 1
        calls = calls_of(queue, kernel, server_of(runtime))
        if cold:
            del calls['submit, future'], calls['submit, await']  # they need a thread that drives the flow
        times = {name: [] for name in calls}
        for call in calls.values():
            timed(call, [], BLOCK, False)
        while len(times['run']) < steps:
            for name, call in calls.items():
                timed(call, times[name], 1 if cold else BLOCK, cold)
        del calls, call
    return [row_of(name, *zip(*both_ns, strict=True)) for name, both_ns in times.items()]


def row_of(name, taken_ns, used_ns):
    return {'call': name, 'p50_us': quantile_us(taken_ns, 0.5), 'p99_us': quantile_us(taken_ns, 0.99),
            'cpu_us': quantile_us(used_ns, 0.5)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--steps', type=int, default=4000)
    parser.add_argument('--cold', action='store_true')
    parser.add_argument('--limits', action='store_true')
    given = parser.parse_args()
    rows = measure(given.steps, given.cold)
    for row in rows:
        print(f"{row['call']:16} p50 {row['p50_us']:7.2f}, p99 {row['p99_us']:7.2f}, cpu {row['cpu_us']:7.2f} us",
              file=sys.stderr)
    print(json.dumps({'device': 'null', 'extension': _library.steps is not None, 'steps': given.steps,
                      'cold': given.cold, 'cores': len(os.sched_getaffinity(0)), 'rows': rows}, indent=1))
    return 1 if given.limits and rows[0]['p50_us'] > LIMIT_US else 0


if __name__ == '__main__':
    sys.exit(main())
