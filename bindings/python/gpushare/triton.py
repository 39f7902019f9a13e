"""Kernels of Triton and of TorchInductor in the places of gpushare.

    gpushare.triton.enable()   # before the kernels are loaded: at the start of the program
    model = torch.compile(net)
    service = gpushare.torch.Service(runtime, model, (example,))

Both load a kernel as a function of a module, which runs on the whole device only. Enabled, gpushare keeps the cubin of
each function that is loaded from then on, loads it again as a kernel of its own, and runs that in its places: the same
code, the same results. docs/compiled-kernels.md says which kernels are left out.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpushare._function_images import function_images

__all__ = ['enable', 'known_functions']

_lock = threading.Lock()
_enabled = False


def enable() -> None:
    """Keeps the cubins of kernels that Triton and TorchInductor load from now on. Once is enough; there is no way back.

    Raises ModuleNotFoundError without Triton 3.5 or later. Without PyTorch it is for Triton alone.
    """
    global _enabled
    with _lock:
        if _enabled:
            return
        _watch_triton()
        _watch_inductor()
        _enabled = True


def known_functions() -> int:
    """How many functions have an image."""
    return len(function_images)


def _watch_triton() -> None:
    try:
        from triton import knobs
    except ImportError as error:
        raise ModuleNotFoundError('gpushare.triton needs Triton 3.5 or later: pip install triton.',
                                  name='triton') from error

    def keep(_module: Any, function: int, name: str, metadata_group: Mapping[str, str], _hash: str) -> None:
        for file, path in metadata_group.items():
            if file.endswith('.cubin'):
                function_images.add(int(function), Path(path).read_bytes(), name)

    knobs.runtime.kernel_load_end_hook.add(keep)


def _watch_inductor() -> None:
    kernel_class = _launched_kernel_class()
    if kernel_class is None:
        return
    load_kernel = kernel_class.load_kernel

    @functools.wraps(load_kernel)
    def load_and_keep(self: Any, *args: Any, **kwargs: Any) -> Any:
        path = getattr(self, 'cubin_path', None)  # forgotten by the load
        image = Path(path).read_bytes() if path is not None and Path(path).exists() else None
        result = load_kernel(self, *args, **kwargs)
        function = getattr(self, 'function', None)
        if image is not None and function is not None:
            function_images.add(int(function), image, self.name)
        return result

    kernel_class.load_kernel = load_and_keep


def _launched_kernel_class() -> Any:
    """TorchInductor's kernel that is loaded from a cubin; None without PyTorch or in a version that has none."""
    try:
        from torch._inductor.runtime import static_triton_launcher  # PyTorch 2.10 and later
        return static_triton_launcher.StaticallyLaunchedTritonKernel
    except (ImportError, AttributeError):
        pass
    try:
        from torch._inductor.runtime import static_cuda_launcher
        return static_cuda_launcher.StaticallyLaunchedCudaKernel
    except (ImportError, AttributeError):
        return None
