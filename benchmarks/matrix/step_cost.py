#!/usr/bin/env python3
"""What one step of an engine costs its Python thread: torch's replay, event and synchronize beside the library's calls.

A step is one CUDA graph of matrix products, the one graph of a Server, submitted and awaited by one thread, again and
again; between two steps the thread computes for --gap-us, as an engine does between two tokens. The forms take turns
in blocks of steps, in each latency mode of the runtime and with callers that only sleep. The rows of kind `cold` are
steps of 2 ms whose caller writes COLD_BYTES before each, so that its code is in no cache; there the forms take turns
step by step, in the balanced mode. Times are from the begin of the submit until the
thread knows of the end; `cpu_us` is what the thread used meanwhile. `over_torch` are ratios of one run. The results
of the graph are compared bit by bit with torch's.

It needs a GPU, PyTorch 2.8 or later, and the package (PYTHONPATH=bindings/python, GPUSHARE_LIBRARY,
GPUSHARE_PYTHON_STEPS). It takes about 60 s, and the cold rows alone about 15 s.

  step_cost.py [--out FILE] [--steps N] [--gap-us N,N] [--kinds warm,cold]

Exit code 0: measured; 1: a result is wrong, or a step fails; 2: bad use.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import gpushare
from gpushare import _library
from gpushare.torch import Server

MATRIX = 2048  # bf16: a product takes about 25 us on an H200
GRAPHS = {8: 800, 48: 200}  # products: steps of each form, mode and gap
BLOCK = 50  # steps before the next form takes its turn
COLD_GRAPH, COLD_STEPS = 80, 200  # products of a step of about 2 ms; steps of each form
COLD_BYTES = 8 << 20  # more than the second-level caches of a core have
# Runtime options by mode.
MODES: dict[str, dict[str, Any]] = {
    'balanced': {'latency': gpushare.Latency.BALANCED},
    'spin': {'latency': gpushare.Latency.SPIN},
    'asleep': {'latency': gpushare.Latency.BALANCED, 'caller_spin_ns': -1},
}


class Products:
    """A graph of matrix products, each of the last one's result."""

    def __init__(self, count: int) -> None:
        torch.manual_seed(count)
        self.input = torch.randn(MATRIX, MATRIX, device='cuda', dtype=torch.bfloat16)
        self.weight = torch.randn(MATRIX, MATRIX, device='cuda', dtype=torch.bfloat16) / MATRIX ** 0.5
        self.outputs = [torch.empty_like(self.input) for _ in range(count)]
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            self.run()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(self.graph, stream=stream):
            self.run()
        self.raw = int(self.graph.raw_cuda_graph())
        self.graph.instantiate()
        self.graph.replay()
        torch.cuda.synchronize()
        self.expected = self.outputs[-1].clone()

    def run(self) -> None:
        last = self.input
        for output in self.outputs:
            torch.mm(last, self.weight, out=output)
            last = output

    def is_right(self) -> bool:
        """Whether the last run gave torch's bits. Clears the result."""
        torch.cuda.synchronize()
        right = bool(torch.equal(self.outputs[-1].view(torch.int16), self.expected.view(torch.int16)))
        self.outputs[-1].zero_()
        torch.cuda.synchronize()
        return right


def torch_step(products: Products) -> Callable[[], None]:
    event = torch.cuda.Event()

    def step() -> None:
        products.graph.replay()
        event.record()
        event.synchronize()
    return step


def forms_of(products: Products, server: Server) -> dict[str, Callable[[], None]]:
    queue, kernel, loop = server.app.queue, server['step'].kernel, asyncio.new_event_loop()

    def by_ctypes() -> None:
        steps, _library.steps = _library.steps, None
        try:
            queue.run(kernel)
        finally:
            _library.steps = steps

    def polled() -> None:
        ticket = queue.submit(kernel)
        while not ticket.done():
            pass

    async def awaited() -> None:
        await queue.submit(kernel)

    forms = {'torch': torch_step(products), 'run': lambda: queue.run(kernel), 'run by ctypes': by_ctypes,
             'server.run': lambda: server.run('step'), 'wait_ok': lambda: queue.submit(kernel).wait_ok(),
             'wait': lambda: (queue.submit(kernel).wait(), None)[1], 'submit, done in a loop': polled,
             'await': lambda: loop.run_until_complete(awaited())}
    if _library.steps is None:
        del forms['run by ctypes']  # it is what `run` does
    return forms


def compute(gap_ns: int) -> None:
    end_ns = time.perf_counter_ns() + gap_ns
    while time.perf_counter_ns() < end_ns:
        pass


def displace(memory: Any) -> None:
    """Fills the processor's caches with other memory."""
    ctypes.memset(memory, 1, COLD_BYTES)


def timed(step: Callable[[], None], steps: int, before: Callable[[], None]) -> list[tuple[int, int]]:
    """Time and processor time of each step, in ns. before: what the thread does between two steps."""
    times = []
    for _ in range(steps):
        before()
        cpu_ns, begin_ns = time.thread_time_ns(), time.perf_counter_ns()
        step()
        times.append((time.perf_counter_ns() - begin_ns, time.thread_time_ns() - cpu_ns))
    return times


def row_of(form: str, times: list[tuple[int, int]]) -> dict[str, Any]:
    taken = sorted(time_ns for time_ns, _ in times)
    return {'form': form, 'steps': len(times), 'p50_us': round(taken[len(taken) // 2] / 1e3, 2),
            'p99_us': round(taken[len(taken) * 99 // 100] / 1e3, 2),
            'cpu_us': round(statistics.median(cpu_ns for _, cpu_ns in times) / 1e3, 2)}


def measure(products: Products, kind: str, mode: str, steps: int, gap_us: int) -> tuple[list[dict[str, Any]], bool]:
    memory = ctypes.create_string_buffer(COLD_BYTES)

    def before() -> None:
        if kind == 'cold':
            displace(memory)
        compute(gap_us * 1000)

    with gpushare.Runtime(device='cuda', **MODES[mode]) as runtime, Server(runtime, name='engine') as server:
        server.add('step', graph=products.graph)
        forms = forms_of(products, server)
        times: dict[str, list[tuple[int, int]]] = {form: [] for form in forms}
        right = True
        for step in forms.values():
            timed(step, 20, before)
            right = products.is_right() and right
        while len(times['torch']) < steps:
            for form, step in forms.items():
                times[form] += timed(step, 1 if kind == 'cold' else BLOCK, before)
        for step in forms.values():
            step()
            right = products.is_right() and right
    rows = [row_of(form, measured) for form, measured in times.items()]
    bare = rows[0]
    for row in rows:
        row.update({'kind': kind, 'products': len(products.outputs), 'mode': mode, 'gap_us': gap_us,
                    'over_torch': {key: round(row[f'{key}_us'] / bare[f'{key}_us'], 4) for key in ('p50', 'p99')}})
    return rows, right


def runs_of(kinds: list[str], gaps_us: list[int]) -> list[tuple[int, str, str, int, int]]:
    """Products, kind, mode, steps of each form and gap of each run."""
    runs = []
    if 'warm' in kinds:
        runs += [(count, 'warm', mode, steps, gap_us) for count, steps in GRAPHS.items() for gap_us in gaps_us
                 for mode in MODES]
    if 'cold' in kinds:
        runs.append((COLD_GRAPH, 'cold', 'balanced', COLD_STEPS, 0))
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path, help='a file for the JSON; it is printed in any case')
    parser.add_argument('--steps', type=int, default=0, help='of each form and mode; 0: 800 short, 200 long ones')
    parser.add_argument('--gap-us', default='0,200', help='what the thread computes between steps')
    parser.add_argument('--kinds', default='warm,cold', help='the rows to measure')
    given = parser.parse_args()
    gaps_us = [int(gap) for gap in given.gap_us.split(',')]
    result: dict[str, Any] = {
        'experiment': 'step_cost', 'gpu': torch.cuda.get_device_name(), 'torch': torch.__version__,
        'command': 'benchmarks/matrix/step_cost.py', 'cores': len(os.sched_getaffinity(0)),
        'extension': gpushare.library() is not None and _library.steps is not None, 'rows': [], 'right': True}
    products = None
    for count, kind, mode, steps, gap_us in runs_of(given.kinds.split(','), gaps_us):
        if products is None or len(products.outputs) != count:
            products = Products(count)
        rows, right = measure(products, kind, mode, given.steps or steps, gap_us)
        result['rows'] += rows
        result['right'] = result['right'] and right
        for row in rows:
            print(f"{count:3} products, {kind} {mode:9} gap {gap_us:4} us, {row['form']:24} p50 {row['p50_us']:8.1f}, "
                  f"p99 {row['p99_us']:8.1f}, cpu {row['cpu_us']:8.1f} us", file=sys.stderr)
    text = json.dumps(result, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + '\n', encoding='utf-8')
    return 0 if result['right'] else 1


if __name__ == '__main__':
    sys.exit(main())
