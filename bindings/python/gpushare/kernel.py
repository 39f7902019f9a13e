"""Registered kernels, graphs and library calls, and how they are registered."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpushare import abi
from gpushare._callbacks import Inside
from gpushare._function_images import function_images
from gpushare._handle import Handle, make
from gpushare._library import library
from gpushare._runtime_base import RuntimeBase
from gpushare._structs import init
from gpushare.enums import Status, TaskKind
from gpushare.errors import InvalidArgumentError
from gpushare.options import FusedKernelOptions, KernelCounters, KernelOptions, LibraryCall
from gpushare.ptx import Ptx

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A function that enqueues a graph's work. Arguments: the address of the cudaStream_t that is being captured, and the
# number of SMs of the place that the capture is for.
Capture = Callable[[int, int], None]


class KernelSpec:
    """A kernel, graph or library call before it is registered: its options, and what calibrate() measures.

    capture: makes a graph by enqueueing on the given stream, once for each place. It must not register or wait.
    counters: what a profiler or pre_run() counted of a kernel.
    warm_memory: address and bytes of what the graph reads into the L2 cache beside its first nodes.
    name: what a profile knows it by.
    ptx: the code of a kernel, of which the library makes a worker and a slice form.
    node_twins: whether the registration of a measured graph makes the twins of its kernels.
    `struct` is the C struct, which may be changed.
    """

    def __init__(self, name: str, *, capture: Capture | None = None, ptx: Ptx | None = None,
                 simulation: abi.gpushare_simulation_record | None = None, library_call: LibraryCall | None = None,
                 counters: KernelCounters | None = None, warm_memory: Sequence[tuple[int, int]] = (),
                 node_twins: bool = True,
                 **options: Unpack[KernelOptions]) -> None:
        if ptx is not None and not isinstance(ptx, Ptx):
            raise TypeError(f'ptx is {ptx!r}, and it must be a gpushare.ptx.Ptx, which is made of a text.')
        self.name = name
        self.ptx, self._node_twins = ptx, node_twins
        self.struct = init(abi.gpushare_kernel_options, {**options, 'name': name})
        self._raised: list[BaseException] = []
        if simulation is not None:
            self.struct.simulation = ctypes.pointer(simulation)
        if counters is not None:
            self.struct.counters = ctypes.pointer(init(abi.gpushare_kernel_counters, counters))
        if library_call is not None:
            self.struct.kind = TaskKind.LIBRARY
            self.struct.library = ctypes.pointer(init(abi.gpushare_library_call, library_call))
        if warm_memory:
            ranges = [_memory_range(address, size) for address, size in warm_memory]
            self.struct.warm_memory = (abi.gpushare_memory_range * len(ranges))(*ranges)
            self.struct.warm_memory_count = len(ranges)
        if capture is not None:
            self.struct.kind = TaskKind.GRAPH
            self.struct.capture = _capture_callback(capture, self._raised)
        images = function_images.array() if self.struct.kind == TaskKind.GRAPH else None
        if images is not None:
            self.struct.function_images = images
            self.struct.function_image_count = len(images)

    def wants_twins(self) -> bool:
        """Whether it is a graph whose long nodes are evicted between their block tasks, where they have a twin."""
        struct = self.struct
        measured = struct.kind == TaskKind.GRAPH and struct.measure_nodes and struct.segment_ns >= 0
        return bool(self._node_twins and measured)

    def raise_captured(self, cause: BaseException) -> None:
        """Raises the exception that `capture` raised, if it did."""
        if self._raised:
            raise self._raised.pop() from cause


def _memory_range(address: int, size: int) -> abi.gpushare_memory_range:
    """Checks the numbers: ctypes silently drops the high bits of one that does not fit."""
    if not 0 < address < 2**64 or not 0 < size < 2**64:
        raise InvalidArgumentError(
            Status.INVALID_ARGUMENT, f'A range of the warm memory has the address {address} and {size} bytes.')
    return abi.gpushare_memory_range(address, size)


class Kernel(Handle):
    """A registered kernel, graph or library call. Made by Runtime.register_kernel, under `name`.

    Closing it frees its name. The next registration of a graph frees the device memory of closed graphs.
    """

    _release = 'gpushare_kernel_release'

    def __init__(self, runtime: RuntimeBase, spec: KernelSpec) -> None:
        self.name = spec.name
        try:
            with runtime._use as owner:
                if spec.ptx is None:
                    handle = make(library().gpushare_kernel_register, owner, ctypes.byref(spec.struct))
                else:
                    handle = make(library().gpushare_kernel_register_ptx, owner, ctypes.byref(spec.struct),
                                  ctypes.byref(spec.ptx.struct))
        except Exception as error:
            spec.raise_captured(error)
            raise
        super().__init__(handle, runtime)

    def __repr__(self) -> str:
        return f'<gpushare.Kernel {self.name!r}>'

    @property
    def id(self) -> int:
        """The number that records, events and metrics use."""
        with self._use as handle:
            return int(library().gpushare_kernel_id(handle))


class FusedKernel(Handle):
    """A registered fused kernel. Made by Runtime.register_fused_kernel, under `name`."""

    _release = 'gpushare_fused_kernel_release'

    def __init__(self, runtime: RuntimeBase, name: str, tensor_part: Kernel, cuda_part: Kernel,
                 options: FusedKernelOptions) -> None:
        self.name = name
        with runtime._use as owner, tensor_part._use as tensor, cuda_part._use as cuda:
            struct = init(abi.gpushare_fused_kernel_options, {
                **options, 'name': name, 'tensor_part': tensor, 'cuda_part': cuda})
            handle = make(library().gpushare_fused_kernel_register, owner, ctypes.byref(struct))
        super().__init__(handle, runtime)


def _capture_callback(capture: Capture, raised: list[BaseException]) -> Any:
    def call(_user: int | None, stream: int | None, sm_count: int) -> int:
        try:
            with Inside():
                capture(stream or 0, sm_count)
        except BaseException as error:  # no exception may pass through C
            raised.append(error)
            return 1
        return 0

    return abi.gpushare_capture_callback(call)
