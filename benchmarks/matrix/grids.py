"""A kernel of the catalogue as an ordinary grid: what a program without the library launches."""

from __future__ import annotations

import ctypes

import torch
from green import check

from gpushare import abi

_u32, _ptr = ctypes.c_uint, ctypes.c_void_p


class Grid:
    """All block tasks of a task in one launch of the kernel's own grid. The task's arguments must live as long.

    The kernel is registered with the library before: that allows its dynamic shared memory.
    """

    def __init__(self, kernel: abi.gpushare_kernel_options, task: abi.gpushare_task_options) -> None:
        cuda = ctypes.CDLL('libcuda.so.1')
        self._launch, self._set_context = cuda.cuLaunchKernel, cuda.cuCtxSetCurrent
        self._launch.argtypes = [_ptr, *[_u32] * 7, _ptr, ctypes.POINTER(_ptr), _ptr]
        self._set_context.argtypes = [_ptr]
        self._context = _ptr()
        torch.cuda.synchronize()  # the context is current from the first call of the runtime on
        check(cuda.cuCtxGetCurrent(ctypes.byref(self._context)), 'the current context')
        self._parameters = (_ptr * 1)(task.arguments)  # one struct
        grid = [max(1, size) for size in (task.grid_x, task.grid_y, task.grid_z)]
        self._shape = (*grid, kernel.threads_per_block, 1, 1, kernel.dynamic_shared_memory_bytes)
        self._function = kernel.original_function

    def replay(self) -> None:
        """Launches the grid on PyTorch's current stream."""
        check(self._set_context(self._context), 'the context of a grid')
        stream = torch.cuda.current_stream().cuda_stream
        check(self._launch(self._function, *self._shape, stream, self._parameters, None), 'a grid')
