"""The task sets of partitions.py, and what their jobs and the BE apps run: kernels of the catalogue, networks, a
training step.

On a GPU a kernel has the catalogue's buffers and a network is captured by PyTorch; on the simulated device both are
what the profile knows by the same name. PyTorch is imported only for networks and for the training step.
"""

from __future__ import annotations

import ctypes
import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import gpushare

US, MS = 1_000, 1_000_000
HERE = pathlib.Path(__file__).resolve().parent
OVERRUN = 4  # times its work is what a job has that overruns
SIZED_FOR_SMS = 16  # SMs on which a job of a kernel takes about its `work_us`
# Length of a block task in us and workers of an SM: benchmarks/kernels/README.md.
KERNELS = {'mriq': (20, 4), 'cutcp': (20, 4), 'sgemm': (60, 2), 'tpacf': (40, 8), 'fft': (55, 8), 'lbm': (40, 4),
           'gemm_mma': (27, 2), 'layer_norm': (27, 4), 'adam': (20, 4), 'sincos_2700us': (2700, 4)}
# Kernels of the profile that are one of the catalogue with block tasks of another length.
RESIZED = {'sincos_2700us': 'sincos'}


@dataclasses.dataclass(frozen=True)
class Job:
    """What an app runs each period: a kernel for about work_us on 16 SMs, or a network once (work_us 0)."""

    app: str
    program: str
    period_ns: int
    deadline_ns: int
    work_us: int = 0

    @property
    def key(self) -> str:
        """Jobs with the same one have the same worst cases."""
        return f'{self.program}-{self.work_us}' if self.work_us else self.program

    @property
    def block_tasks(self) -> int:
        """Of a kernel; 0: it is a network."""
        if not self.work_us:
            return 0
        block_task_us, workers = KERNELS[self.program]
        return max(1, round(self.work_us / block_task_us)) * workers * SIZED_FOR_SMS


@dataclasses.dataclass(frozen=True)
class TaskSet:
    jobs: tuple[Job, ...]
    guilty: str  # the app whose jobs overrun in the window with overruns; a kernel's
    share: bool = False  # apps share partitions


_CONTROL = Job('control', 'mriq', 1 * MS, 500 * US, 300)
_BALANCE = Job('balance', 'cutcp', 2 * MS, 1500 * US, 300)
_PLANNING = Job('planning', 'sgemm', 5 * MS, 4 * MS, 2500)
_TRACKING = Job('tracking', 'tpacf', 10 * MS, 8 * MS, 1200)
_PERCEPTION = Job('perception', 'fft', 33 * MS, 30 * MS, 3000)
_SLOW = Job('slow', 'fft', 33 * MS, 30 * MS, 1000)
_VISION = Job('vision', 'resnet50_b1', 33 * MS, 30 * MS)
_LANGUAGE = Job('language', 'bert_b1', 20 * MS, 18 * MS)

SETS = {
    'kernels3': TaskSet((_CONTROL, _PLANNING, _PERCEPTION), 'planning'),
    'kernels5': TaskSet((_CONTROL, _BALANCE, _PLANNING, _TRACKING, _PERCEPTION), 'tracking'),
    'networks3': TaskSet((_CONTROL, _LANGUAGE, _VISION), 'control'),
    'networks5': TaskSet((_CONTROL, _BALANCE, _TRACKING, _LANGUAGE, _VISION), 'tracking'),
    # Not among the four that run by default: five apps in as few partitions as hold them.
    'shared5': TaskSet((_CONTROL, _BALANCE, _PLANNING, _TRACKING, _SLOW), 'balance', share=True),
}
DEFAULT_SETS = ('kernels3', 'kernels5', 'networks3', 'networks5')
NETWORKS = frozenset(job.program for one in SETS.values() for job in one.jobs if not job.work_us)

# One fills DRAM, the other leaves the SMs every 2.7 ms only. A task takes 1 ms of the whole device, or one wave; one of
# the step that a training without PyTorch has takes as long.
FLOOD = ('lbm', 'sincos_2700us')
BESIDE = {'flood': FLOOD, 'training': ('training',)}  # BE work by its name: its apps
STEP = ('gemm_mma', 'layer_norm', 'gemm_mma', 'adam')
BE_TASK_US = 1000

Submit = Callable[[gpushare.App, int], gpushare.Ticket]  # the app, and by how much its work is multiplied


class TrainingFailedError(RuntimeError):
    """The training step of PyTorch cannot run as a BE app. Its rates and worst cases would be of other work."""


class Programs:
    """What the runs of one process submit. A runtime registers it by register(); the buffers stay.

    catalogue: the loaded libgpushare_catalogue, None on the simulated device.
    """

    def __init__(self, catalogue: Any, sms: int) -> None:
        self._catalogue, self._sms = catalogue, sms
        self._workloads: dict[tuple[str, str], tuple[gpushare.KernelSpec, Any]] = {}  # by owner and kernel
        self._graphs: dict[str, Any] = {}
        self.training_is, self.training_reason = 'kernels', ''  # or the step's name; why it is of kernels
        self._step: Any = None

    @property
    def simulated(self) -> bool:
        return self._catalogue is None

    def prepare(self, network: str) -> None:
        """Captures a network. Raises where it cannot, as without PyTorch."""
        if not self.simulated and network not in self._graphs:
            self._graphs[network] = _captured_service(network)

    def prepare_step(self, name: str) -> None:
        """Makes the training step of PyTorch. Where that fails, the BE app `training` runs kernels from the start."""
        if self.simulated or not name:
            self.training_reason = 'no training step of PyTorch was asked for'
            return
        try:
            self._step, self.training_is = _training_step(name), name
        except Exception as error:
            self.training_reason = sentence(error)

    def drop_step(self, reason: str) -> None:
        """The BE app `training` runs kernels from now on, so what was measured beside the step is void."""
        self._step, self.training_is, self.training_reason = None, 'kernels', reason

    def kernel(self, runtime: gpushare.Runtime, kernels: dict[str, gpushare.Kernel], owner: str, name: str,
               block_tasks: int) -> Submit:
        """A task of a catalogue kernel with buffers of its owner's own. kernels: those that the runtime has."""
        if self.simulated:
            if name not in kernels:
                kernels[name] = runtime.register_kernel(name)
            registered = kernels[name]
            return lambda app, times: app.submit(registered, block_tasks=block_tasks * times)
        spec, task = self._workload(owner, name, block_tasks)
        if name not in kernels:
            kernels[name] = runtime.register(spec)
        registered = kernels[name]
        arguments = ctypes.string_at(task.arguments, task.arguments_size_bytes)
        return lambda app, times: app.submit(registered, arguments=arguments, block_tasks=block_tasks * times)

    def _workload(self, owner: str, name: str, block_tasks: int) -> tuple[gpushare.KernelSpec, Any]:
        from gpushare import abi
        if (owner, name) not in self._workloads:
            spec, task = gpushare.KernelSpec(name), abi.init(abi.gpushare_task_options)
            # 0: the kernel's own length of a block task. A job that overruns has more of them.
            block_task_us = float(KERNELS[name][0]) if name in RESIZED else 0.0
            workload = self._catalogue.make('workload_new', RESIZED.get(name, name).encode(), block_task_us,
                                            block_tasks * OVERRUN, self._sms)
            self._catalogue.call('workload_fill', workload, ctypes.byref(spec.struct), ctypes.byref(task))
            if task.grid_y > 1 or task.grid_z > 1:
                raise RuntimeError(f"The grid of '{name}' has more than one dimension, so its jobs cannot overrun.")
            self._workloads[owner, name] = spec, task
        return self._workloads[owner, name]

    def network(self, runtime: gpushare.Runtime, kernels: dict[str, gpushare.Kernel], name: str) -> Submit:
        """A captured network. The library copies its graph to a place when it makes the place."""
        if name not in kernels:
            if self.simulated:
                kernels[name] = runtime.register_kernel(name)
            else:
                kernels[name] = runtime.register_kernel(name, kind=gpushare.TaskKind.GRAPH, segment_ns=-1,
                                                        graph=int(self._graphs[name][0].raw_cuda_graph()))
        registered = kernels[name]
        return lambda app, times: app.submit(registered)

    def submits(self, runtime: gpushare.Runtime, kernels: dict[str, gpushare.Kernel], job: Job) -> Submit:
        if job.work_us:
            return self.kernel(runtime, kernels, job.app, job.program, job.block_tasks)
        return self.network(runtime, kernels, job.program)

    def best_effort(self, runtime: gpushare.Runtime, kernels: dict[str, gpushare.Kernel],
                    name: str) -> tuple[gpushare.App, list[Submit], bool]:
        """A BE app by its name (a kernel of FLOOD, or 'training'): it, what it submits in turns, and whether its work
        is counted in block tasks. Raises TrainingFailedError."""
        if name == 'training' and self._step is not None:
            try:
                return self._training(runtime)
            except Exception as error:
                raise TrainingFailedError(sentence(error)) from error
        app = runtime.create_app(name, gpushare.BEST_EFFORT)
        programs = STEP if name == 'training' else (name,)
        submits = [self.kernel(runtime, kernels, name, kernel, self._be_block_tasks(kernel)) for kernel in programs]
        return app, submits, name != 'training'

    def _training(self, runtime: gpushare.Runtime) -> tuple[gpushare.App, list[Submit], bool]:
        import gpushare.torch
        # Measured in places it would have to be in each from its registration on, and a plan makes new ones.
        made = gpushare.torch.Training(runtime, self._step, state=self._step.state, name='training-graph',
                                       kernel_options={'measure_places': False})
        if made.unconfinable:
            made.close()
            raise RuntimeError(made.unconfinable)
        return made.app, [lambda app, times: made.submit()[0]], False

    def _be_block_tasks(self, kernel: str) -> int:
        block_task_us, workers = KERNELS[kernel]
        return max(1, round(BE_TASK_US / block_task_us)) * workers * self._sms


def sentence(error: Exception) -> str:
    return f'{type(error).__name__}: {error}'.splitlines()[0][:300]


def _captured_service(name: str) -> tuple[Any, ...]:
    """A network of the matrix as a graph, and the memory that it needs."""
    sys.path.insert(0, str(HERE.parent / 'matrix'))
    import networks
    import torch

    from gpushare.torch._capture import captured
    from gpushare.torch._tensors import own_workspaces
    torch.manual_seed(7)
    net, inputs = networks.SERVICES[name]()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph(keep_graph=True)
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            net(inputs)
        stream.synchronize()
        with own_workspaces():
            outputs = captured(graph, lambda: net(inputs))
    torch.cuda.synchronize()
    return graph, net, inputs, outputs


def _training_step(name: str) -> Any:
    sys.path.insert(0, str(HERE.parent / 'matrix'))
    import networks
    import torch
    torch.manual_seed(11)
    return networks.STEPS[name]()
