#!/usr/bin/env python3
"""A service on two simulated GPUs under Ray Serve, with a best-effort job beside it (docs/ray.md). It needs no GPU.

    laptop.py [SECONDS]     10 s of requests without it
"""

import asyncio
import pathlib
import statistics
import sys
import tempfile
import time

import ray
from ray import serve

import gpushare
import gpushare.ray

REQUESTS_PER_S = 40


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
    """A job: steps on the GPU of a replica, which knows how to go on from a checkpoint."""

    def __init__(self, gpu, checkpoint, steps):
        self.app, self.kernel = gpu.app, gpu.runtime.register_kernel('streaming_59us')
        self.done, self.steps = checkpoint or 0, steps

    def step(self):
        self.app.submit(self.kernel, block_tasks=100_000).wait_ok()
        self.done += 1
        return self.done < self.steps

    def checkpoint(self):
        return self.done

    def result(self):
        return f'{self.done} steps'

    def close(self):
        self.kernel.close()


async def load(handle, seconds):
    """Requests at even distances, whether or not earlier ones are answered. Their latencies, ms."""
    async def ask(number):
        begin = time.monotonic()
        await handle.remote(f'request {number}', within_s=0.5)
        return (time.monotonic() - begin) * 1e3
    asked = []
    for number in range(int(seconds * REQUESTS_PER_S)):
        asked.append(asyncio.create_task(ask(number)))
        await asyncio.sleep(1 / REQUESTS_PER_S)
    return await asyncio.gather(*asked, return_exceptions=True)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    ray.init(num_cpus=2, resources={'gpushare_lc': 2}, object_store_memory=100_000_000, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        jobs = gpushare.ray.start_jobs(state_path=pathlib.Path(folder) / 'jobs')
        jobs.submit('tune', Tune, steps=200)
        answers = asyncio.run(load(serve.run(Chat.bind()), seconds))
        latencies = [answer for answer in answers if not isinstance(answer, Exception)]
        print(f'{len(latencies)} of {len(answers)} answered, median {statistics.median(latencies):.1f} ms')
        print(f"tune: {jobs.wait('tune', timeout_s=60)}, {jobs.status()['tune']['leases_lost']} leases lost")
        serve.shutdown()
    ray.shutdown()


if __name__ == '__main__':
    main()
