#!/usr/bin/env python3
"""An asyncio server under load beside best-effort work, from Python and without a GPU (docs/load-tests.md).

    server.py               200 queries of 5 ms on the simulated device in real time
    server.py 5000 400      400 queries of 5,000 us
    server.py chain1 400    400 queries of a graph of the built-in profile

Requests come whether or not earlier ones are answered, and each is a task of asyncio. A latency counts from the begin
of that task to the time when the event loop goes on with it.
"""

import asyncio
import ctypes
import itertools
import math
import sys
import time

import gpushare
from gpushare import abi

LOAD = 0.3
STEPS_OUTSTANDING = 2


def gaps():
    """Poisson arrivals, the same in each run and in each of the three programs."""
    state = 7
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield -math.log(1 - (state >> 11) / 2**53)


def register_kernel(runtime, name):
    """A name of the built-in profile, or a graph of 50 us kernels that takes so many microseconds."""
    if not name.isdigit():
        return runtime.register_kernel(name)
    node = abi.gpushare_graph_node(duration_ns=50_000, blocks=132, repeat=int(name) // 50)
    record = abi.gpushare_simulation_record(nodes=(abi.gpushare_graph_node * 1)(node), node_count=1)
    record.struct_size = ctypes.sizeof(record)
    return runtime.register_kernel(name, kind=gpushare.TaskKind.GRAPH, simulation=record, solo_ns=int(name) * 1000)


async def train(queue, gradient):
    """One outstanding step after another, until it is cancelled. Returns how often they were evicted."""
    evictions = 0
    try:
        while True:
            evictions += (await queue.submit(gradient, block_tasks=100_000)).evictions
    except asyncio.CancelledError:
        return evictions


async def answer(queue, model, latencies):
    begin = time.monotonic()
    await queue.submit(model)
    latencies.append(time.monotonic() - begin)


async def serve(name, queries, alone_s):
    """The p50 and p99 of the queries, s, and the evictions. alone_s: the p99 without steps; 0: this is that run."""
    with gpushare.Runtime(device='sim:realtime') as runtime:
        bound = {'p99_bound': 1.05, 'p99_alone_ns': int(alone_s * 1e9)} if alone_s else {}
        service = runtime.create_app('service', gpushare.LATENCY_CRITICAL, **bound).create_queue()
        training = runtime.create_app('training', gpushare.BEST_EFFORT).create_queue()
        model, gradient = register_kernel(runtime, name), register_kernel(runtime, 'sincos_27us')
        steps = [asyncio.create_task(train(training, gradient)) for _ in range(STEPS_OUTSTANDING if alone_s else 0)]
        solo_s = runtime.kernel_info(name).solo_ns * 1e-9
        latencies, requests = [], []
        due = time.monotonic()
        for gap in itertools.islice(gaps(), queries):
            due += gap * solo_s / LOAD
            await asyncio.sleep(due - time.monotonic())
            requests.append(asyncio.create_task(answer(service, model, latencies)))
        await asyncio.gather(*requests)
        for step in steps:
            step.cancel()
        evictions = sum(await asyncio.gather(*steps))
        latencies.sort()
        return latencies[math.ceil(queries / 2) - 1], latencies[math.ceil(queries * 0.99) - 1], evictions


async def main():
    name = sys.argv[1] if len(sys.argv) > 1 else '5000'
    queries = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    p50_s, alone_s, _ = await serve(name, queries, 0)
    print(f'alone: p50 {p50_s * 1e6:.1f} us, p99 {alone_s * 1e6:.1f} us')
    p50_s, p99_s, evictions = await serve(name, queries, alone_s)
    print(f'beside training: p50 {p50_s * 1e6:.1f} us, p99 {p99_s * 1e6:.1f} us, {p99_s / alone_s:.3f} of alone; '
          f'steps evicted {evictions} times')


if __name__ == '__main__':
    asyncio.run(main())
