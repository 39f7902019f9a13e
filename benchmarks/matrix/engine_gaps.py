#!/usr/bin/env python3
"""An engine's loop of steps beside BE work on a GPU: p99 of a step over alone, and what BE work gets of the idle time.

A step is a CUDA graph of matmuls, 1.5 to 3 ms; the host takes 50 to 300 us between two steps; busy periods of 20 to
300 ms have silences of the same mean. BE work is a captured loop of matmuls of some 440 us each, in segments. Rows:
alone; nothing stated; each step states what follows it; the last two at each bound, on the same draws. About 80 s.

  engine_gaps.py [--seconds 7] [--bounds 1.05,1.2] > gaps.json
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from typing import Any

import torch

import gpushare
import gpushare.torch

GAP_US = (50, 300)
BUSY_MS = (20, 300)
STEP_MS = (1.5, 3.0)


def matmuls(size: int, count: int) -> Any:
    a = torch.randn(size, size, device='cuda', dtype=torch.bfloat16) / size**0.5
    out = torch.empty_like(a)

    def run() -> None:
        for _ in range(count):
            torch.matmul(a, a, out=out)
    return run


def timed_ms(run: Any, repeats: int = 20) -> float:
    run()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3 / repeats


def graph_of(run: Any) -> Any:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph, stream=stream):
        run()
    return graph


def sleep_until(end_ns: int) -> None:
    while True:
        left_ns = end_ns - time.monotonic_ns()
        if left_ns <= 0:
            return
        if left_ns > 2_000_000:
            time.sleep((left_ns - 1_000_000) / 1e9)


def quantile(values: list[int], q: float) -> float:
    return sorted(values)[int(q * (len(values) - 1))] / 1e6


def run_row(queue: Any, kernels: list[Any], seconds: float, stated: bool) -> dict[str, float]:
    draw = random.Random(5)
    latencies: list[int] = []
    silent_ns = 0
    begin = time.monotonic_ns()
    while time.monotonic_ns() - begin < seconds * 1e9:
        busy_ns = draw.uniform(*BUSY_MS) * 1e6
        steps = max(1, round(busy_ns / 2.4e6))
        for left in range(steps, 0, -1):
            kernel = kernels[draw.randrange(len(kernels))]
            next_ns = 0 if not stated else 400_000 if left > 1 else gpushare.NO_NEXT
            at = time.monotonic_ns()
            queue.run(kernel, next_within_ns=next_ns)
            end = time.monotonic_ns()
            latencies.append(end - at)
            if left > 1:
                sleep_until(end + int(draw.uniform(*GAP_US) * 1e3))
        pause_ns = int(draw.expovariate(1 / (sum(BUSY_MS) / 2)) * 1e6)
        sleep_until(time.monotonic_ns() + pause_ns)
        silent_ns += pause_ns
    whole_ns = time.monotonic_ns() - begin
    return {'steps': len(latencies), 'p50_ms': quantile(latencies, 0.5), 'p99_ms': quantile(latencies, 0.99),
            'idle': silent_ns / whole_ns, 'seconds': whole_ns / 1e9}


def row(seconds: float, bound: float, p99_alone_ns: int, stated: bool, graphs: list[Any], be: Any) -> dict[str, Any]:
    with gpushare.Runtime(device='cuda') as runtime:
        options: dict[str, Any] = {'p99_bound': bound, 'p99_alone_ns': p99_alone_ns} if bound else {}
        engine = runtime.create_app('engine', gpushare.LATENCY_CRITICAL, **options)
        kernels = [runtime.register_kernel(f'step-{i}', kind=gpushare.TaskKind.GRAPH, graph=int(g.raw_cuda_graph()),
                                           segment_ns=-1) for i, g in enumerate(graphs)]
        training = gpushare.torch.Training(runtime, be, name='be') if be is not None else None
        queue = engine.create_queue()
        for _ in range(20):
            queue.run(kernels[0])
        tickets: list[Any] = []
        done_before = 0
        if training is not None:
            begin = time.monotonic()
            training.submit(20)[-1].wait()
            alone_rate = 20 / (time.monotonic() - begin)
            tickets = training.submit(900)
            done_before = training.app.stats().work_ns
        measured: dict[str, Any] = run_row(queue, kernels, seconds, stated)
        if training is not None:
            done = sum(ticket.done() for ticket in tickets)
            measured['be'] = done / measured['seconds'] / alone_rate
            measured['be_work'] = (training.app.stats().work_ns - done_before) / measured['seconds'] / 1e9
        guarantee = engine.guarantee()
        measured['next_lapsed'] = guarantee.next_lapsed
        for ticket in tickets:
            ticket.cancel()
        return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=7)
    parser.add_argument('--bounds', default='1.05,1.2')
    arguments = parser.parse_args()
    torch.manual_seed(1)
    each_ms = timed_ms(matmuls(4096, 1))
    graphs = [graph_of(matmuls(4096, max(1, round(ms / each_ms)))) for ms in (STEP_MS[0], sum(STEP_MS) / 2, STEP_MS[1])]
    large_ms = timed_ms(matmuls(6144, 1))
    be = matmuls(6144, max(1, round(20 / large_ms)))
    alone = row(arguments.seconds, 0, 0, False, graphs, None)
    rows: list[dict[str, Any]] = [{'row': 'alone', **alone}]
    for bound in map(float, arguments.bounds.split(',')):
        for stated in (False, True):
            got = row(arguments.seconds, bound, int(alone['p99_ms'] * 1e6), stated, graphs, be)
            got['p99_over_alone'] = got['p99_ms'] / alone['p99_ms']
            got['p50_over_alone'] = got['p50_ms'] / alone['p50_ms']
            got['be_over_idle'] = got['be'] / got['idle']
            rows.append({'row': 'stated' if stated else 'learnt', 'bound': bound, **got})
            print(rows[-1], file=sys.stderr)
    print(json.dumps({'gpu': torch.cuda.get_device_name(), 'node_ms': large_ms, 'rows': rows}, indent=1))
    return 0


if __name__ == '__main__':
    sys.exit(main())
