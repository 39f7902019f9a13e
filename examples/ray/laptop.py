#!/usr/bin/env python3
"""A service on two simulated GPUs under Ray Serve, with a best-effort job beside it (docs/ray.md). It needs no GPU.

    laptop.py [SECONDS]     10 s of requests without it
"""

import asyncio
import math
import statistics
import sys
import time

import ray
from ray import serve

import gpushare
import gpushare.ray


@serve.deployment(num_replicas=2, max_ongoing_requests=16, request_router_config=gpushare.ray.router_config(),
                  ray_actor_options=gpushare.ray.actor_options(lc_load=0.3, simulated=True, num_cpus=0.1))
class Chat(gpushare.ray.Replica):
    def __init__(self):
        super().__init__('chat', target_ns=50_000_000, jobs='jobs', runtime_options={'device': 'sim:realtime'})
        self.kernel = self.runtime.register_kernel('sincos_27us')

    async def __call__(self, prompt, within_s=None):
        with self.request(within_s):  # refuses what would be late
            await self.app.submit(self.kernel, block_tasks=150_000)
        return f'{prompt}, answered'


class Tune:
    """A job of 200 steps on the GPU of a replica, which can go on from a checkpoint."""

    def __init__(self, gpu, checkpoint):
        self.app, self.kernel = gpu.app, gpu.runtime.register_kernel('streaming_59us')
        self.done = checkpoint or 0

    def step(self):
        self.app.submit(self.kernel, block_tasks=100_000).wait_ok()
        self.done += 1
        return self.done < 200

    def checkpoint(self):
        return self.done

    result = checkpoint


async def latencies_ms(handle, seconds):
    """Of 40 requests a second, whether or not earlier ones are answered. None: the request was refused as late."""
    async def ask(number):
        begin = time.monotonic()
        try:
            await handle.remote(f'request {number}', within_s=0.5)
        except gpushare.ray.WouldBeLateError:  # on a busy host; the replica has not begun it
            return None
        return (time.monotonic() - begin) * 1e3
    asked = []
    for number in range(int(seconds * 40)):
        asked.append(asyncio.create_task(ask(number)))
        await asyncio.sleep(1 / 40)
    return await asyncio.gather(*asked)


if __name__ == '__main__':
    ray.init(address='local', num_cpus=2, resources={'gpushare_lc': 2}, object_store_memory=100_000_000,
             log_to_driver=False, include_dashboard=False)
    jobs = gpushare.ray.start_jobs()
    jobs.submit('tune', Tune)
    asked = asyncio.run(latencies_ms(serve.run(Chat.bind()), float(sys.argv[1]) if len(sys.argv) > 1 else 10))
    answered = [latency for latency in asked if latency is not None]
    print(f'{len(answered)} answered, {len(asked) - len(answered)} refused, median '
          f'{statistics.median(answered or [math.nan]):.1f} ms')
    print(f"tune: {jobs.wait('tune', timeout_s=60)} steps, {jobs.status()['tune']['leases_lost']} leases lost")
    serve.shutdown()
    ray.shutdown()
