#!/usr/bin/env python3
"""A latency-critical service beside best-effort work, from Python (docs/python.md).

It runs on the simulated device in real time, because its kernels are names of the built-in profile and bring no code
(own_kernel/ does).
"""

# README begins
import asyncio
import time

import gpushare


async def p99_of_queries(service, model):
    """A server awaits its queries; the event loop stays free meanwhile."""
    latencies = []
    for _ in range(100):
        begin = time.monotonic()
        await service.submit(model)
        latencies.append(time.monotonic() - begin)
        await asyncio.sleep(0.001)
    return sorted(latencies)[98]


async def main():
    with gpushare.Runtime(device='sim:realtime') as runtime:
        service = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
        training = runtime.create_app('training', gpushare.BEST_EFFORT)
        model, gradient = (runtime.register_kernel(name) for name in ('chain1', 'sincos_27us'))
        alone = await p99_of_queries(service, model)
        service.update(p99_bound=1.05, p99_alone_ns=int(alone * 1e9))  # at most 5 % above running alone
        step = training.submit(gradient, block_tasks=10_000_000)
        beside = await p99_of_queries(service, model)
        record = await step
        print(f'p99 alone {alone * 1e6:.0f} us, beside training {beside * 1e6:.0f} us: {beside / alone:.3f}; '
              f'the step was evicted {record.evictions} times')


if __name__ == '__main__':
    asyncio.run(main())
# README ends
