"""Nested tuples, lists and dicts of tensors, and the checks before a function is captured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import torch

from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError, UnavailableError, UnimplementedError
from gpushare.runtime import Runtime


def map_tensors(function: Callable[[Any], Any], value: Any) -> Any:
    """The nest with function(tensor) in place of each tensor. Numbers, strings and None stay."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: map_tensors(function, item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, '_fields'):
        return type(value)(*(map_tensors(function, item) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(function, item) for item in value)
    _require_constant(value)
    return value


def copy_tensors(target: Any, source: Any, what: str) -> None:
    """Copies each tensor of a nest into the one at its place. Both nests must agree in all but the values of tensors.

    It checks everything before the first copy.
    """
    pairs = tensor_pairs(target, source, what)
    with torch.no_grad():
        for left, right in pairs:
            left.copy_(right, non_blocking=True)


def tensor_pairs(target: Any, source: Any, what: str) -> list[tuple[Any, Any]]:
    """The tensors at the same place of two nests, which must agree in all but the values of tensors."""
    pairs: list[tuple[Any, Any]] = []
    _pair(target, source, what, pairs)
    return pairs


def _pair(target: Any, source: Any, what: str, pairs: list[tuple[Any, Any]]) -> None:
    """Appends the pairs of tensors at the same place. Entries of dicts are matched by key."""
    if isinstance(target, torch.Tensor):
        if not isinstance(source, torch.Tensor):
            _refuse(f'{what} has a {type(source).__name__} where the captured one has a tensor.')
        if target.shape != source.shape or target.dtype != source.dtype:
            _refuse(f'Tensor {len(pairs)} of {what} is {tuple(source.shape)} of {source.dtype}, and the captured one '
                    f'is {tuple(target.shape)} of {target.dtype}.')
        pairs.append((target, source))
        return
    # map_tensors makes a dict of any mapping that is a subclass of dict.
    if type(target) is not type(source) and not (isinstance(target, dict) and isinstance(source, dict)):
        _refuse(f'{what} has a {type(source).__name__} where the captured one has a {type(target).__name__}.')
    if isinstance(target, dict):
        if target.keys() != source.keys():
            _refuse(f'{what} has a dict with the keys {list(source)}, and the captured one has {list(target)}.')
        for key in target:
            _pair(target[key], source[key], what, pairs)
    elif isinstance(target, (tuple, list)):
        if len(target) != len(source):
            _refuse(f'{what} has a {type(target).__name__} of {len(source)}, and the captured one has {len(target)}.')
        for left, right in zip(target, source, strict=True):
            _pair(left, right, what, pairs)
    else:
        _require_constant(source)
        if not (target == source or (target != target and source != source)):  # NaN on both sides counts as equal
            _refuse(f'{what} has {source!r} where the captured one has {target!r}. The graph keeps the captured value.')


def _require_constant(value: Any) -> None:
    if not (value is None or isinstance(value, (bool, int, float, complex, str))):
        _refuse(f'A {type(value).__name__} is neither a tensor, a tuple, list or dict of them, a number, a string nor '
                'None, so it cannot be captured.')


def _refuse(sentence: str) -> NoReturn:
    raise InvalidArgumentError(Status.INVALID_ARGUMENT, sentence)


def require_cuda(runtime: Runtime) -> None:
    """Raises unless PyTorch's current GPU is the runtime's."""
    if not torch.cuda.is_available():
        raise UnavailableError(Status.UNAVAILABLE, 'gpushare.torch captures CUDA graphs, and PyTorch sees no GPU.')
    current, wanted = torch.cuda.current_device(), runtime.device_ordinal
    if current != wanted and not runtime.device().simulated:
        _refuse(f"PyTorch's current GPU is {current}, and the runtime is on GPU {wanted}. Call "
                f'torch.cuda.set_device({wanted}) first.')


def require_on_gpu(tensor: Any) -> Any:
    """The tensor. Raises unless it is on a GPU, or in pinned memory, from where a captured function may copy it."""
    if not tensor.is_cuda and not tensor.is_pinned():
        _refuse(f'A tensor of shape {tuple(tensor.shape)} is on the CPU, where a graph reads and writes pinned memory '
                'only. Pass tensors that are on the GPU, tensor.cuda(), or pinned, tensor.pin_memory().')
    return tensor


def copy_of(tensor: Any) -> Any:
    """A copy on the GPU or in pinned memory, as the tensor is."""
    copy = require_on_gpu(tensor).detach().clone()
    return copy if copy.is_cuda else copy.pin_memory()


def room_for(tensor: Any) -> Any:
    """Where a capture's result like this tensor goes. A result in pinned memory is the function's own tensor."""
    return torch.empty_like(require_on_gpu(tensor)) if tensor.is_cuda else tensor


def require_result(tensor: Any) -> Any:
    """The tensor, a result, with its elements in order. Raises unless it is on a GPU."""
    if not tensor.is_cuda:
        _refuse(f'A result of shape {tuple(tensor.shape)} is on the CPU, and a graph has its results on the GPU.')
    return tensor.contiguous()


def run_eagerly(function: Callable[[], Any], stream: Any, runs: int) -> Any:
    """Runs a function, so that libraries make handles and plans before a capture. Returns its result."""
    stream.wait_stream(torch.cuda.current_stream())
    result = None
    with torch.cuda.stream(stream):
        for _ in range(runs):
            result = function()
    stream.synchronize()
    return result


def warm_up(function: Callable[[], Any], stream: Any, runs: int, what: str) -> Any:
    """run_eagerly(). Raises if the function draws random numbers on the GPU: its graph would repeat them."""
    random_state = torch.cuda.get_rng_state()
    result = run_eagerly(function, stream, runs)
    if not torch.equal(random_state, torch.cuda.get_rng_state()):
        raise UnimplementedError(
            Status.UNIMPLEMENTED, f'{what} draws random numbers on the GPU (dropout, for instance), and each launch of '
            'its captured graph would repeat them.')
    return result


@contextlib.contextmanager
def own_workspaces() -> Iterator[None]:
    """Around a capture: cuBLAS allocates a new workspace, in the capture's pool, and nothing else gets it afterwards.

    Otherwise the graph would use the workspace of eager work on the same stream, which PyTorch may free.
    """
    clear = getattr(torch._C, '_cuda_clearCublasWorkspaces', lambda: None)
    clear()
    try:
        yield
    finally:
        clear()


def recorded_event() -> Any:
    """An event behind everything that is on the current stream now."""
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream())
    return event


def native_events(simulated: bool, events: Iterable[Any]) -> list[int]:
    """The cudaEvent_t of each event, for wait_events. For a simulated device it waits here and returns none."""
    if simulated:
        for event in events:
            event.synchronize()
        return []
    return [event.cuda_event for event in events]
