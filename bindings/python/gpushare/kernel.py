"""Registered kernels, graphs and library calls, and how they are registered."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpushare import abi
from gpushare._handle import Handle, make
from gpushare._library import library
from gpushare._structs import init
from gpushare.enums import TaskKind
from gpushare.options import FusedKernelOptions, KernelOptions, LibraryCall

if TYPE_CHECKING:
    from gpushare.runtime import Runtime

# Enqueues a graph's work on a stream (the address of a cudaStream_t) that is being captured for a place of so
# many SMs.
Capture = Callable[[int, int], None]


class Kernel(Handle):
    """A registered kernel, graph or library call. Made by Runtime.register_kernel.

    The registration stays until the runtime ends, also when this object is closed.
    """

    _release = 'gpushare_kernel_release'

    def __init__(self, runtime: Runtime, name: str, handle: int) -> None:
        self.name = name
        super().__init__(handle, runtime)

    @property
    def id(self) -> int:
        """The number that records, events and metrics use."""
        return int(library().gpushare_kernel_id(self.handle))


class FusedKernel(Handle):
    """A registered fused kernel. Made by Runtime.register_fused_kernel."""

    _release = 'gpushare_fused_kernel_release'


def register(runtime: Runtime, name: str, capture: Capture | None,
             simulation: abi.gpushare_simulation_record | None, library_call: LibraryCall | None,
             options: KernelOptions) -> Kernel:
    """Registers a kernel. An exception that leaves `capture` is raised here, not as the library's error."""
    struct = init(abi.gpushare_kernel_options, {**options, 'name': name})
    if simulation is not None:
        struct.simulation = ctypes.pointer(simulation)
    if library_call is not None:
        struct.kind = TaskKind.LIBRARY
        struct.library = ctypes.pointer(init(abi.gpushare_library_call, library_call))
    raised: list[BaseException] = []
    if capture is not None:
        struct.kind = TaskKind.GRAPH
        struct.capture = _capture_callback(capture, raised)
    try:
        handle = make(library().gpushare_kernel_register, runtime.handle, ctypes.byref(struct))
    except Exception as error:
        if raised:
            raise raised[0] from error
        raise
    # The library never calls `capture` after the registration.
    return Kernel(runtime, name, handle)


def _capture_callback(capture: Capture, raised: list[BaseException]) -> Any:
    def call(_user: int | None, stream: int | None, sm_count: int) -> int:
        try:
            capture(stream or 0, sm_count)
        except BaseException as error:  # nothing may leave a callback of C
            raised.append(error)
            return 1
        return 0

    return abi.gpushare_capture_callback(call)


def register_fused(runtime: Runtime, name: str, tensor_part: Kernel, cuda_part: Kernel,
                   options: FusedKernelOptions) -> FusedKernel:
    struct = init(abi.gpushare_fused_kernel_options, {
        **options, 'name': name, 'tensor_part': tensor_part.handle, 'cuda_part': cuda_part.handle})
    return FusedKernel(make(library().gpushare_fused_kernel_register, runtime.handle, ctypes.byref(struct)), runtime)
