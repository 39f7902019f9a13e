"""Kernels of Triton and of TorchInductor in the places of gpushare.

    gpushare.triton.enable()   # before the kernels are loaded: at the start of the program
    model = torch.compile(net)
    service = gpushare.torch.Service(runtime, model, (example,))

Both load a kernel as a function of a module, which runs on the whole device only. Enabled, gpushare keeps the cubin of
each function that is loaded from then on, loads it again as a kernel of its own, and runs that in its places: the same
code, the same results. docs/compiled-kernels.md says which kernels are left out.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpushare._function_images import function_images
from gpushare.errors import described

__all__ = ['enable', 'known_functions']

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_enabled = False
_told = False  # whether the log has a failure of a hook


def enable() -> None:
    """Keeps the cubins of kernels that Triton and TorchInductor load from now on. Once is enough; there is no way back.

    Raises ModuleNotFoundError without Triton 3.5 or later. Without PyTorch it is for Triton alone.
    """
    global _enabled
    with _lock:
        if _enabled:
            return
        hook, kernel_class = _load_end_hook(), _launched_kernel_class()  # both first: what fails changes nothing
        hook.add(_keep_loaded)
        if kernel_class is not None:
            _watch_inductor(kernel_class)
        _enabled = True


def known_functions() -> int:
    """How many functions have an image."""
    return len(function_images)


def _load_end_hook() -> Any:
    """The chain of functions that Triton calls after it has loaded a kernel."""
    try:
        from triton import knobs
        hook = knobs.runtime.kernel_load_end_hook
    except (ImportError, AttributeError) as error:
        raise _no_triton() from error
    if not hasattr(hook, 'add'):  # before 3.5 it is one function, or None
        raise _no_triton()
    return hook


def _no_triton() -> ModuleNotFoundError:
    return ModuleNotFoundError('gpushare.triton needs Triton 3.5 or later: pip install triton.', name='triton')


def _keep_loaded(_module: Any, function: int, name: str, metadata_group: Mapping[str, str], _hash: str) -> None:
    with _harmless(name):
        for file, path in metadata_group.items():
            if file.endswith('.cubin'):
                function_images.add(int(function), Path(path).read_bytes(), name)


def _watch_inductor(kernel_class: Any) -> None:
    load_kernel = kernel_class.load_kernel

    @functools.wraps(load_kernel)
    def load_and_keep(self: Any, *args: Any, **kwargs: Any) -> Any:
        path, image = getattr(self, 'cubin_path', None), None  # forgotten by the load
        if path is not None:
            with _harmless(path):
                image = Path(path).read_bytes()
        result = load_kernel(self, *args, **kwargs)
        function = getattr(self, 'function', None)
        if image is not None and function is not None:
            with _harmless(path):
                function_images.add(int(function), image, self.name)
        return result

    kernel_class.load_kernel = load_and_keep


@contextlib.contextmanager
def _harmless(kernel: object) -> Iterator[None]:
    """No failure of gpushare's may fail a launch of the caller. The log has the first one."""
    global _told
    try:
        yield
    except Exception as error:
        if not _told:
            _told = True
            _log.warning("The image of kernel '%s' is not known, so graphs with it run on the whole device only. "
                         'Further kernels are not named. %s', kernel, described(error))


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
