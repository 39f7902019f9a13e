#!/usr/bin/env python3
"""One latency-critical query beside best-effort work, from Python (docs/python.md).

Without a GPU it runs simulated; with one set GPUSHARE_DEVICE=sim, as its kernels are names of the profile and bring
no code (own_kernel/ does).
"""

import asyncio

import gpushare


async def answer(service, model):
    """A server awaits its queries; the event loop stays free meanwhile."""
    record = await service.submit(model)
    print(f'query: {record.verdict.name} in {(record.complete_ns - record.submit_ns) // 1000} us')


def main():
    with gpushare.Runtime() as runtime:
        service = runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05, p99_alone_ns=2_000_000)
        training = runtime.create_app('training', gpushare.BEST_EFFORT)
        model, gradient = (runtime.register_kernel(name) for name in ('chain1', 'sincos_27us'))
        step = training.submit(gradient, block_tasks=100_000)
        asyncio.run(answer(service, model))
        record = step.wait()
        print(f'training step: evicted {record.evictions} times, {record.measured_ns // 1000} us of device time')


if __name__ == '__main__':
    main()
