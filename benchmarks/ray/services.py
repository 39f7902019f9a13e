"""What compare.py deploys: LC services on simulated GPUs, and the best-effort job that runs beside them.

Each replica notes its process and each request that it answered in a folder, so that a request that was answered twice
shows, and one that no answer reached. A job notes there from which checkpoint it begins.
"""

import os
import pathlib
import time

import gpushare
import gpushare.ray

STEP_TASKS = 170_000  # block tasks of a job's step: 50 ms of a whole simulated H200
STEP_MS = 50
UNEVEN = ('chat',)


class Service(gpushare.ray.Replica):
    """Queries of one length. version: what an answer carries, for rolling updates. target_ms 0: nothing is promised.

    The first replica of each folder and name in UNEVEN stands for a GPU a third as fast, so that a router can choose.
    """

    def __init__(self, name, query_ms, target_ms, policy, folder, version=1):
        if name in UNEVEN and _first(pathlib.Path(folder) / f'slow.{name}'):
            query_ms *= 3
        super().__init__(name, service_ns=query_ms * 1e6, target_ns=int(target_ms * 1e6), jobs='jobs',
                         runtime_options={'device': 'sim:realtime', 'policy': policy, 'caller_spin_ns': -1})
        self.kernel = self.runtime.register_kernel('sincos_27us')
        self.block_tasks, self.version = int(query_ms * 33_000), version  # 33 a microsecond on the whole device
        self.answers = os.open(pathlib.Path(folder) / f'answers.{os.getpid()}', os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        (pathlib.Path(folder) / f'{name}.{os.getpid()}').write_text(self.replica_name()[0], encoding='utf-8')

    async def __call__(self, number, within_s=None):
        with self.request(within_s):
            record = await self.app.submit(self.kernel, block_tasks=self.block_tasks)
        os.write(self.answers, f'{number}\n'.encode())
        return self.version, (record.complete_ns - record.submit_ns) * 1e-6


class Steps:
    """A job without an end. Its checkpoint is the number of its steps."""

    def __init__(self, gpu, checkpoint, folder):
        self.app, self.kernel, self.done = gpu.app, _kernel(gpu), checkpoint or 0
        with open(pathlib.Path(folder) / f"starts.{gpu.name.partition('#')[0]}", 'a', encoding='utf-8') as starts:
            starts.write(f'{self.done}\n')

    def step(self):
        self.app.submit(self.kernel, block_tasks=STEP_TASKS).wait_ok()
        self.done += 1

    def checkpoint(self):
        return self.done

    def close(self):
        self.kernel.close()


def _first(path):
    """Whether nobody has asked before."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _kernel(gpu):
    """A kernel's name is free when the job before has closed it, which may take a step longer."""
    for _ in range(50):
        try:
            return gpu.runtime.register_kernel('sincos_267us')
        except gpushare.AlreadyExistsError:
            time.sleep(0.01)
    return gpu.runtime.register_kernel('sincos_267us')
