"""The BE programs of the matrix: evictable kernels of the catalogue, and training steps in segments.

Each gives `task`, the C struct of one task, and checks what its tasks computed.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from grids import Grid
from matrix_plan import KERNELS
from networks import STEPS
from steps import LOSSES_MAX

import gpushare.torch
from gpushare import abi

TASK_US = 1000  # of one task alone, about
# Length of a block task and workers of an SM: benchmarks/kernels/README.md.
BLOCK_TASKS = {'mriq': (20, 4), 'fft': (55, 8), 'mrif': (27, 4), 'cutcp': (20, 4), 'cp': (20, 4), 'sgemm': (60, 2),
               'lbm': (40, 4), 'tpacf': (40, 8)}
VERIFY_S = 0.05
LOSSES_COMPARED = 8
PLAIN_WARM_UP = 3  # eager steps, which make the optimizer's state


class CatalogueProgram:
    """A kernel of the catalogue with its buffers. Its parts are workers, which leave for a query."""

    depth = 4  # tasks kept pending

    def __init__(self, name: str, runtime: gpushare.Runtime, catalogue: Any) -> None:
        self.name, self._catalogue = name, catalogue
        sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
        block_task_us, workers = BLOCK_TASKS[name]
        count = max(1, round(TASK_US / block_task_us)) * sms * workers
        spec = gpushare.KernelSpec(name)
        self.task = abi.init(abi.gpushare_task_options)
        # 0: the kernel's own length of a block task.
        self._workload = catalogue.make('workload_new', name.encode(), 0.0, count, sms)
        catalogue.call('workload_fill', self._workload, ctypes.byref(spec.struct), ctypes.byref(self.task))
        self._kernel = runtime.register(spec)
        self.task.kernel = self._kernel.handle
        self.work = int(self.task.block_tasks)  # of one task
        self._spec = spec
        self.facts: dict[str, Any] = {'block_tasks': count}
        self._catalogue.call('workload_clear', self._workload)

    def plain(self) -> Grid:
        """The task as a program without the library launches it."""
        return Grid(self._spec.struct, self.task)

    def check(self) -> dict[str, Any]:
        """Compares a sample of the results with the reference. Raises if one is wrong."""
        checked, wrong = ctypes.c_int64(), ctypes.c_int64()
        self._catalogue.call('workload_verify', self._workload, VERIFY_S, ctypes.byref(checked), ctypes.byref(wrong))
        if wrong.value or not checked.value:
            raise RuntimeError(f'{self.name}: {wrong.value} of {checked.value} results are wrong.')
        return {'checked': checked.value}


class TrainingProgram:
    """A training step with autograd as a graph in segments."""

    depth = 2
    work = 1

    def __init__(self, name: str, runtime: gpushare.Runtime) -> None:
        self.name = name
        self._eager = self._eager_losses()
        self._step = self._instance()
        self._training = gpushare.torch.Training(runtime, self._step, state=self._step.state, name=f'step-{name}')
        self.task = abi.init(abi.gpushare_task_options, kernel=self._training._kernel.handle)
        info = runtime.kernel_info(self._training.name)
        self.facts = {'nodes': info.node_count, 'segments': info.segment_count,
                      'longest_us': round(info.longest_segment_ns / 1e3, 1), 'whole_reason': str(info.whole_reason),
                      'unconfinable': self._training.unconfinable}
        self._plain: Any = None

    def _instance(self) -> Any:
        torch.manual_seed(11)
        return STEPS[self.name]()

    def plain(self) -> Any:
        """The step as a program without the library has it: an instance of its own, with its own state."""
        if self._plain is None:
            self._plain = self._instance()
            for _ in range(PLAIN_WARM_UP):
                self._plain()
        return self._plain

    def _eager_losses(self) -> Any:
        step = self._instance()
        for _ in range(LOSSES_COMPARED):
            step()
        torch.cuda.synchronize()
        return step.losses[:LOSSES_COMPARED].clone()

    def check(self) -> dict[str, Any]:
        """Steps so far and how many of the first losses differ from the eager ones. Raises if one is not finite."""
        found = self._compared(self._step)
        if self._plain is not None:
            plain = self._compared(self._plain)
            found.update(plain_steps=plain['steps'], plain_differ=plain['differ'])
        return found

    def _compared(self, step: Any) -> dict[str, Any]:
        torch.cuda.synchronize()
        count = int(step.count.item())
        losses = step.losses[:min(count, LOSSES_MAX - 1)]
        if not bool(losses.isfinite().all().item()):
            raise RuntimeError(f'{self.name}: a loss of {count} is not finite.')
        both = min(count, LOSSES_COMPARED)
        differ = (losses[:both].view(torch.int32) != self._eager[:both].view(torch.int32)).sum().item()
        return {'steps': count, 'compared': both, 'differ': differ, 'first': round(losses[0].item(), 4),
                'last': round(losses[-1].item(), 4)}


Program = CatalogueProgram | TrainingProgram


def program(name: str, runtime: gpushare.Runtime, catalogue: Any) -> Program:
    return CatalogueProgram(name, runtime, catalogue) if name in KERNELS else TrainingProgram(name, runtime)
