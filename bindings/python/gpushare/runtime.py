"""A runtime: one device with its scheduler. It makes the apps and kernels. _runtime_base.py closes it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpushare import _callbacks, _waits, abi
from gpushare._handle import make
from gpushare._library import check, library
from gpushare._runtime_base import RuntimeBase
from gpushare._structs import init, read_text, text_of
from gpushare._twins import twins
from gpushare.app import App
from gpushare.enums import AppClass, Drive, GuaranteeBit, LogLevel, Status, TaskKind
from gpushare.errors import FailedPreconditionError
from gpushare.kernel import Capture, FusedKernel, Kernel, KernelSpec
from gpushare.options import (
    AppOptions,
    FusedKernelOptions,
    KernelCounters,
    KernelOptions,
    LibraryCall,
    PartitionOptions,
    PlacePair,
    RuntimeOptions,
    TraceOptions,
)
from gpushare.ptx import Ptx
from gpushare.records import DeviceInfo, KernelInfo, PartitionPlan, RuntimeStats, TraceSummary

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Runtime(RuntimeBase):
    """One device with its scheduler.

    with gpushare.Runtime(device='sim') as runtime: ...

    The options are those of gpushare_runtime_options. `log` gets each message of the library; it runs on the
    thread that logs and must not call gpushare. `drive` and `device_ordinal` are the options that were given.
    """

    def __init__(self, *, log: Callable[[LogLevel, str], None] | None = None,
                 **options: Unpack[RuntimeOptions]) -> None:
        struct = init(abi.gpushare_runtime_options, options)
        self._log = _log_callback(log)
        if self._log is not None:
            struct.log = self._log
        self.drive = Drive(struct.drive)
        self.device_ordinal: int = struct.device_ordinal
        self._virtual: bool | None = None  # whether the clock is; None: not asked yet
        super().__init__(make(library().gpushare_runtime_create, ctypes.byref(struct)))

    def __repr__(self) -> str:
        return '<gpushare.Runtime, closed>' if self.closed else f'<gpushare.Runtime on {self.device().name}>'

    # --- making ---

    def create_app(self, name: str, app_class: AppClass, *, worst_cases: Sequence[tuple[int, int]] = (),
                   **options: Unpack[AppOptions]) -> App:
        """A new app: an owner of tasks with its class and its targets. Names are unique in the runtime.

        worst_cases: of a periodic app (period_ns, deadline_ns), pairs of SMs and the longest ns of a job on so many.
        """
        self._release_leftovers()
        return App(self, name, app_class, options, worst_cases)

    def plan_partitions(self, **options: Unpack[PartitionOptions]) -> PartitionPlan:
        """Plans a partition of the SMs for each periodic app, under the policy 'partitioned'.

        Yes: the plan is in force, and guarantee() of each app has its bound. No: ResourceExhaustedError with the
        reason, and the plan before stays.
        """
        struct, plan = init(abi.gpushare_partition_options, options), init(abi.gpushare_partition_plan)
        with self._use as handle:
            check(library().gpushare_plan_partitions(handle, ctypes.byref(struct), ctypes.byref(plan)))
        return PartitionPlan.from_c(plan)

    def register_kernel(self, name: str, *, capture: Capture | None = None, ptx: Ptx | None = None,
                        simulation: abi.gpushare_simulation_record | None = None,
                        library_call: LibraryCall | None = None, counters: KernelCounters | None = None,
                        warm_memory: Sequence[tuple[int, int]] = (), node_twins: bool = True,
                        **options: Unpack[KernelOptions]) -> Kernel:
        """Registers a kernel, a graph or a library call. On a simulated device a name of the profile is enough.

        capture: makes a graph by enqueueing on the given stream, once for each place, on this thread. It must
        not register or wait.
        counters: what a profiler or pre_run() counted of a kernel: the models then know it beside others.
        warm_memory: address and bytes of what the graph reads into the L2 cache beside its first nodes.
        ptx: the code of a kernel, of which the library makes a worker and a slice form. worker_refusal and
        slice_refusal of kernel_info() say why one is not made; '' is none.
        node_twins: of a measured graph, twins of its kernels are made first (gpushare.triton.enable(twins=True)).
        False: none is made for it. A twin that the runtime already has of one of its kernels still counts.
        """
        return self.register(KernelSpec(
            name, capture=capture, ptx=ptx, simulation=simulation, library_call=library_call, counters=counters,
            warm_memory=warm_memory, node_twins=node_twins, **options))

    def register(self, spec: KernelSpec) -> Kernel:
        """register_kernel with options in a KernelSpec, such as one that calibrate() measured."""
        if spec.wants_twins():
            twins.register(self, int(spec.struct.graph or 0))
        return Kernel(self, spec)

    def register_fused_kernel(self, name: str, tensor_part: Kernel, cuda_part: Kernel,
                              **options: Unpack[FusedKernelOptions]) -> FusedKernel:
        """Registers a fused kernel of two registered kernels."""
        return FusedKernel(self, name, tensor_part, cuda_part, options)

    # --- driving ---

    def now_ns(self) -> int:
        """The device's clock. The device 'sim' has a virtual one."""
        with self._use as handle:
            return _waits.now_ns(handle)

    def region_room_ns(self) -> int:
        """How much BE work may be on the device now, in front of the next LC query; 0: none.

        A BE region so long may begin. One that stays open asks before each launch, and ends at 0 (docs/engines.md).
        """
        room = ctypes.c_int64()
        with self._use as handle:
            check(library().gpushare_region_room(handle, ctypes.byref(room)))
        return room.value

    def from_monotonic_ns(self, time_ns: int) -> int:
        """A time of time.monotonic_ns() on the device's clock, as arrival_ns and records have it.

        A GPU's runtime reads the same clock, CLOCK_MONOTONIC, so it is the same number. Raises FailedPreconditionError
        on the device 'sim', whose clock is virtual; 'sim:realtime' has that of the system.
        """
        if self._virtual is None:
            self._virtual = self.device().virtual_time
        if self._virtual:
            raise FailedPreconditionError(
                Status.FAILED_PRECONDITION, 'The clock of this device is virtual and unrelated to time.monotonic_ns().')
        return time_ns

    def drain(self, timeout_s: float | None = None) -> None:
        """Waits until no task is pending. Other threads may still submit."""
        _waits.wait(self._use, library().gpushare_runtime_drain, timeout_s)

    def quiesce(self, timeout_s: float | None = None) -> None:
        """Holds launches, evicts BE work and waits until the device is idle, until resume()."""
        _waits.wait(self._use, library().gpushare_runtime_quiesce, timeout_s)

    def resume(self) -> None:
        """Ends a quiesce."""
        with self._use as handle:
            check(library().gpushare_runtime_resume(handle))

    def shutdown(self, timeout_s: float | None = None) -> None:
        """Refuses new work and runs every accepted task. Tasks that wait at the timeout end with Verdict.SHUTDOWN.

        Raises DeadlineExceededError if the timeout cut work off. Ctrl-C does not end the wait.
        """
        with self._use as handle:
            check(library().gpushare_runtime_shutdown(handle, _waits.deadline_ns(handle, timeout_s)))

    def poll(self) -> bool:
        """Drives the flow once. For Drive.POLL only. Returns whether anything happened."""
        progress = ctypes.c_int32()
        with self._use as handle:
            check(library().gpushare_poll(handle, ctypes.byref(progress)))
        return bool(progress.value)

    def poll_until(self, time_ns: int) -> None:
        """Drives the flow until the device's clock reaches time_ns. For Drive.POLL only."""
        with self._use as handle:
            check(library().gpushare_poll_until(handle, time_ns))

    def set_policy(self, name: str) -> None:
        """Replaces the policy. The next plan uses the new one."""
        with self._use as handle:
            check(library().gpushare_set_policy(handle, text_of('name', name)))

    # --- observing ---

    def device(self) -> DeviceInfo:
        """What the device is and can do."""
        struct = init(abi.gpushare_device_info)
        with self._use as handle:
            check(library().gpushare_device_info_get(handle, ctypes.byref(struct)))
        return DeviceInfo.from_c(struct)

    def stats(self) -> RuntimeStats:
        """The runtime's counters since its creation."""
        struct = init(abi.gpushare_runtime_stats)
        with self._use as handle:
            check(library().gpushare_runtime_stats_get(handle, ctypes.byref(struct)))
        return RuntimeStats.from_c(struct)

    def kernel_info(self, name: str) -> KernelInfo:
        """What the runtime knows of a registered kernel, or else of the profile's kernel of this name."""
        struct = init(abi.gpushare_kernel_info)
        with self._use as handle:
            check(library().gpushare_kernel_info_by_name(handle, text_of('name', name), ctypes.byref(struct)))
        return KernelInfo.from_c(struct)

    def kernel_names(self) -> list[str]:
        """The names of the kernels in the runtime's profile."""
        with self._use as handle:
            return read_text(lambda *buffer: library().gpushare_profile_kernel_names(handle, *buffer)).split()

    def predict_pair(self, query: Sequence[tuple[Kernel, int] | tuple[Kernel, int, int]], be: tuple[Kernel, int],
                     load: float, p99_bound: float = 0) -> PlacePair:
        """What BE work does beside an LC app's queries, by the cost model: a row for gpushare.place.

        query: its launches, each with a kernel, its block tasks (0 of a graph) and how often it runs in a row.
        be: a kernel and its block tasks. load: of the LC app, from 0 to below 63 / 64. p99_bound: 0 is 1.05.
        Add the kinds: {'lc': ..., 'be': ...} | row.
        """
        pair = init(abi.gpushare_place_pair, {'load': load})
        with contextlib.ExitStack() as used:
            handle = used.enter_context(self._use)

            def launch(kernel: Kernel, block_tasks: int, count: int = 1) -> abi.gpushare_pair_launch:
                struct = init(abi.gpushare_pair_launch, {'block_tasks': block_tasks, 'count': count})
                struct.kernel = used.enter_context(kernel._use)
                return struct
            launches = (abi.gpushare_pair_launch * len(query))(*(launch(*one) for one in query))
            check(library().gpushare_predict_pair(handle, launches, len(query), ctypes.byref(launch(*be)), p99_bound,
                                                  ctypes.byref(pair)))
        return {'load': load, 'p99_ratio': pair.p99_ratio, 'p99_error': pair.p99_error, 'be_rate': pair.be_rate,
                'be_error': pair.be_error}

    def guarantees(self, kernel: Kernel | None = None, kind: TaskKind = TaskKind.DEFAULT) -> GuaranteeBit:
        """What the library guarantees for tasks of a kernel or of a kind on this device."""
        bits = ctypes.c_uint32()
        with self._use as handle:
            if kernel is None:
                check(library().gpushare_guarantees(handle, kind, None, ctypes.byref(bits)))
            else:
                with kernel._use as known:
                    check(library().gpushare_guarantees(handle, kind, known, ctypes.byref(bits)))
        return GuaranteeBit(bits.value)

    def metrics(self) -> str:
        """All counters as OpenMetrics text."""
        with self._use as handle:
            return read_text(lambda *buffer: library().gpushare_metrics_text(handle, *buffer))

    def start_trace(self, **options: Unpack[TraceOptions]) -> None:
        """Starts to record events in memory. stop_trace writes the files that the options name."""
        struct = init(abi.gpushare_trace_options, options)
        with self._use as handle:
            check(library().gpushare_trace_start(handle, ctypes.byref(struct)))

    def stop_trace(self) -> TraceSummary:
        """Stops the trace and writes its files."""
        struct = init(abi.gpushare_trace_summary)
        with self._use as handle:
            check(library().gpushare_trace_stop(handle, ctypes.byref(struct)))
        return TraceSummary.from_c(struct)

    def load_profile(self, path: str | os.PathLike[str]) -> None:
        """Loads kernels and learned values from a profile of the same GPU model."""
        with self._use as handle:
            check(library().gpushare_profile_load(handle, text_of('path', path)))

    def save_profile(self, path: str | os.PathLike[str]) -> None:
        """Saves the runtime's profile with the learned values."""
        with self._use as handle:
            check(library().gpushare_profile_save(handle, text_of('path', path)))


def _log_callback(log: Callable[[LogLevel, str], None] | None) -> Any:
    if log is None:
        return None

    def call(_user: int | None, level: int, message: bytes) -> None:
        with _callbacks.Inside():
            log(LogLevel(level), message.decode('utf-8', 'replace'))

    return abi.gpushare_log_callback(call)
