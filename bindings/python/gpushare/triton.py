"""Kernels of Triton and of TorchInductor in the places of gpushare.

    gpushare.triton.enable()   # before the kernels are loaded: at the start of the program
    model = torch.compile(net)
    service = gpushare.torch.Service(runtime, model, (example,))

Both load a kernel as a function of a module, which runs on the whole device only. Enabled, gpushare keeps the cubin of
each function that is loaded from then on, loads it again as a kernel of its own, and runs that in its places: the same
code, the same results. docs/compiled-kernels.md says which kernels are left out.

    gpushare.triton.enable(twins=True)
    print(gpushare.triton.twins(runtime))

With twins, gpushare also keeps the PTX of these kernels. Long nodes of a measured BE graph that have such a kernel are
then evicted between their block tasks (docs/evictable-nodes.md). Products of cuBLAS mostly gave BE work more, so it is
no default.

    step = torch.compile(net, dynamic=False, options=gpushare.triton.gemm_templates())

A product of cuBLAS has no PTX, so it has no twin. As a template of TorchInductor it has one, and is slower.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpushare import _twins
from gpushare._function_images import function_images
from gpushare._twins import Twin
from gpushare.errors import described

if TYPE_CHECKING:
    from gpushare.runtime import Runtime

__all__ = ['Twin', 'enable', 'gemm_templates', 'known_functions', 'twins']

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_enabled = False
_with_twins = False
_told: set[str] = set()  # the sentences of failed hooks that the log has
_NO_IMAGE = "The image of kernel '%s' is not known, so graphs with it run on the whole device only."
_NO_TWIN = "The PTX of kernel '%s' is not known, so it has no twin, and no node of it is evicted in the middle."


def enable(*, twins: bool = False) -> None:
    """Keeps the cubins of kernels that Triton and TorchInductor load from now on. Once is enough; there is no way back.

    twins: keeps their PTX too, and gives a runtime that registers a measured BE graph the twins of the graph's kernels,
    in front of that registration. It takes 0.1 to 3 s a kernel, once: the code is kept on disk.
    Raises ModuleNotFoundError without Triton 3.5 or later. Without PyTorch it is for Triton alone.
    """
    global _enabled, _with_twins
    with _lock:
        if _enabled:
            _with_twins = _with_twins or twins
            return
        hook, kernel_class = _load_end_hook(), _launched_kernel_class()  # both first: what fails changes nothing
        _with_twins = twins
        hook.add(_keep_loaded)
        if kernel_class is not None:
            _watch_inductor(kernel_class)
        _enabled = True


def gemm_templates() -> dict[str, Any]:
    """Options of torch.compile by which matrix products and forward convolutions are Triton's kernels, not a library's.

    They are of one compilation, so that those of LC services stay as they are. Such a product has a twin where one of
    cuBLAS has none, and takes longer; the compilation times up to twenty forms of each shape. What has no template
    fails to compile: float64, a transposed or dilated convolution. A backward convolution stays cuDNN's. For the
    faster of both, product by product, set 'max_autotune_gemm_backends' and 'max_autotune_conv_backends' of the
    result to 'ATEN,TRITON'. docs/evictable-nodes.md has the costs.
    """
    return {'max_autotune_gemm': True, 'max_autotune_gemm_backends': 'TRITON', 'max_autotune_conv_backends': 'TRITON'}


def known_functions() -> int:
    """How many functions have an image."""
    return len(function_images)


def twins(runtime: Runtime | None = None) -> list[Twin]:
    """What became of the twin of each kernel that was loaded since enable(twins=True), in that order.

    Without a runtime it is what the texts say: 'known', 'refused' with a reason and the line of the PTX, or 'left out'.
    """
    return _twins.twins.table(runtime)


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
    with _harmless(_NO_IMAGE, name):
        for file, path in metadata_group.items():
            if file.endswith('.cubin'):
                function_images.add(int(function), Path(path).read_bytes(), name)
    if _with_twins:
        with _harmless(_NO_TWIN, name):
            _offer_loaded(int(function), name, metadata_group)


def _offer_loaded(function: int, name: str, files: Mapping[str, str]) -> None:
    path = {Path(file).suffix: path for file, path in files.items()}
    if '.ptx' not in path or '.json' not in path:
        return
    metadata = json.loads(Path(path['.json']).read_text())
    left_out = ''
    if metadata.get('num_ctas', 1) > 1 or max(metadata.get('cluster_dims') or [1]) > 1:
        left_out = 'It is launched in clusters.'
    elif metadata.get('launch_cooperative_grid'):
        left_out = 'It is launched cooperatively.'
    _twins.twins.offer(_twins.Offered(
        function, name, Path(path['.ptx']).read_bytes(), int(metadata['shared']), left_out, _current_device()))


def _current_device() -> int | None:
    """Ordinal of the GPU on which Triton loads now; None: Triton does not say."""
    try:
        from triton.runtime import driver
        return int(driver.active.get_current_device())
    except Exception:
        return None


def _offer_launched(kernel: Any, cubin: str, device: object) -> None:
    """Of TorchInductor's kernel: Triton's cache has the PTX beside the cubin."""
    path, shared = Path(cubin).with_suffix('.ptx'), getattr(kernel, 'shared', None)
    if shared is not None and path.exists():
        _twins.twins.offer(_twins.Offered(
            int(kernel.function), kernel.name, path.read_bytes(), int(shared),
            device=device if isinstance(device, int) else None))


def _watch_inductor(kernel_class: Any) -> None:
    load_kernel = kernel_class.load_kernel

    @functools.wraps(load_kernel)
    def load_and_keep(self: Any, *args: Any, **kwargs: Any) -> Any:
        path, image = getattr(self, 'cubin_path', None), None  # forgotten by the load
        if path is not None:
            with _harmless(_NO_IMAGE, path):
                image = Path(path).read_bytes()
        result = load_kernel(self, *args, **kwargs)
        function = getattr(self, 'function', None)
        if image is not None and function is not None:
            with _harmless(_NO_IMAGE, path):
                function_images.add(int(function), image, self.name)
        if _with_twins and path is not None and function is not None:
            with _harmless(_NO_TWIN, path):
                _offer_launched(self, str(path), args[0] if args else kwargs.get('device'))
        return result

    kernel_class.load_kernel = load_and_keep


@contextlib.contextmanager
def _harmless(message: str, kernel: object) -> Iterator[None]:
    """No failure of gpushare's may fail a launch of the caller. The log has the first one of each message."""
    try:
        yield
    except Exception as error:
        if message not in _told:
            _told.add(message)
            _log.warning(f'{message} Further kernels are not named. %s', kernel, described(error))


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
