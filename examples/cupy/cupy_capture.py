#!/usr/bin/env python3
"""Work of CuPy as a latency-critical (LC) service and as a best-effort (BE) job: each is captured as a CUDA graph.

  cupy_capture.py [--queries 500] [--bound 1.05]

Prints the latencies of the service alone and beside the job, and the job's steps a second. The results of both must be
those of plain CuPy. It needs a GPU, CuPy 13 or later for its CUDA, and gpushare.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import cupy

import gpushare

SIZE = 1 << 16  # numbers of a query
JOB_SIZE = 1 << 22  # of a step of the job
LAYERS, JOB_LAYERS = 8, 16
OUTSTANDING = 2  # steps of the job

# One layer: x = tanh(a * x + b). A kernel of the program's own; CuPy compiles it by NVRTC.
LAYER = cupy.RawKernel(r'''
extern "C" __global__ void layer(const float* x, float* y, float a, float b, unsigned long long count) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < count) y[i] = tanhf(a * x[i] + b);
}
''', 'layer')


class Network:
    """Layers from x to y. Its arrays are made before it is captured: a graph allocates nothing."""

    def __init__(self, size: int, layers: int) -> None:
        self.x = cupy.arange(size, dtype=cupy.float32) / size
        self.y, self._layers = cupy.zeros_like(self.x), layers

    def __call__(self) -> None:
        threads, count = 256, self.x.size
        given = self.x
        for number in range(self._layers):
            LAYER(((count + threads - 1) // threads,), (threads,),
                  (given, self.y, cupy.float32(1.5), cupy.float32(0.1 * number), cupy.uint64(count)))
            given = self.y


def captured(function: Callable[[], None]) -> int:
    """The cudaGraph_t of a function. The caller keeps it, and what it uses, until its kernel is closed.

    Not by Stream.end_capture, whose Graph has destroyed its cudaGraph_t.
    """
    runtime, stream = cupy.cuda.runtime, cupy.cuda.Stream(non_blocking=True)
    with stream:
        function()  # compiles
        stream.synchronize()
        runtime.streamBeginCapture(stream.ptr)
        try:
            function()
        finally:
            graph = runtime.streamEndCapture(stream.ptr)
    return int(graph)


def registered(runtime: gpushare.Runtime, name: str, graph: int, **options: Any) -> gpushare.Kernel:
    """CuPy's kernels are functions of modules, which belong to one context: the graph runs on the whole device."""
    return runtime.register_kernel(name, kind=gpushare.TaskKind.GRAPH, graph=graph, confinable=gpushare.Choice.NO,
                                   **options)


def latencies(queue: gpushare.Queue, kernel: gpushare.Kernel, queries: int) -> list[float]:
    """Seconds of each query, sorted. It sleeps between two of them, so the GPU is idle for some of the time."""
    found = []
    for _ in range(queries):
        began = time.perf_counter()
        queue.run(kernel)
        found.append(time.perf_counter() - began)
        time.sleep(0.0005)
    return sorted(found)


def beside(app: gpushare.App, step: gpushare.Kernel, measure: Callable[[], list[float]]) -> tuple[list[float], float]:
    """Runs `measure` while some steps of the job are always submitted. Also the job's steps a second."""
    stop, ended = threading.Event(), [0]

    def feed() -> None:
        pending = [app.submit(step) for _ in range(OUTSTANDING)]
        while pending:
            pending.pop(0).wait()
            ended[0] += 1
            if not stop.is_set():
                pending.append(app.submit(step))

    feeder, began = threading.Thread(target=feed), time.perf_counter()
    feeder.start()
    try:
        found = measure()
    finally:
        stop.set()
        feeder.join()
    return found, ended[0] / (time.perf_counter() - began)


def same(network: Network) -> bool:
    """Whether the last result has the bits of plain CuPy's."""
    cupy.cuda.runtime.deviceSynchronize()
    found = network.y.copy()
    network()
    cupy.cuda.runtime.deviceSynchronize()
    return bool((found == network.y).all())


def report(what: str, found: list[float]) -> None:
    print(f'{what}: p50 {1e6 * found[len(found) // 2]:.0f} us, p99 {1e6 * found[int(0.99 * len(found))]:.0f} us')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--queries', type=int, default=500)
    parser.add_argument('--bound', type=float, default=1.05, help='p99 of a query over its p99 alone')
    given = parser.parse_args()
    service, job = Network(SIZE, LAYERS), Network(JOB_SIZE, JOB_LAYERS)
    graphs = [captured(service), captured(job)]
    with gpushare.Runtime() as runtime:
        query = registered(runtime, 'query', graphs[0], segment_ns=-1)
        step = registered(runtime, 'step', graphs[1])
        queue = runtime.create_app('service', gpushare.AppClass.LATENCY_CRITICAL, p99_bound=given.bound).create_queue()
        app = runtime.create_app('job', gpushare.AppClass.BEST_EFFORT)
        report('alone', latencies(queue, query, given.queries))
        found, rate = beside(app, step, lambda: latencies(queue, query, given.queries))
        report('beside the job', found)
        print(f'job: {rate:.0f} steps a second')
    for graph in graphs:
        cupy.cuda.runtime.graphDestroy(graph)
    right = same(service) and same(job)
    print('results: ' + ('those of plain CuPy' if right else 'WRONG'))
    return 0 if right else 1


if __name__ == '__main__':
    sys.exit(main())
