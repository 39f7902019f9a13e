"""Nested tuples, lists and dicts of tensors, and the checks before a function is captured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError, UnavailableError, UnimplementedError


def map_tensors(function: Callable[[Any], Any], value: Any) -> Any:
    """The same nest with function(tensor) in the place of each tensor. Other leaves stay as they are."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: map_tensors(function, item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, '_fields'):
        return type(value)(*(map_tensors(function, item) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(function, item) for item in value)
    return value


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors of a nest, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_of(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_of(item)


def copy_tensors(target: Any, source: Any, what: str) -> None:
    """Copies each tensor of a nest into the one at its place, which must have the same shape and type."""
    targets, sources = list(tensors_of(target)), list(tensors_of(source))
    if len(targets) != len(sources):
        raise InvalidArgumentError(
            Status.INVALID_ARGUMENT, f'{what} has {len(sources)} tensors, and the captured one has {len(targets)}.')
    for index, (left, right) in enumerate(zip(targets, sources, strict=True)):
        if left.shape != right.shape or left.dtype != right.dtype:
            raise InvalidArgumentError(
                Status.INVALID_ARGUMENT, f'Tensor {index} of {what} is {tuple(right.shape)} of {right.dtype}, and the '
                f'captured one is {tuple(left.shape)} of {left.dtype}.')
    for left, right in zip(targets, sources, strict=True):
        left.copy_(right, non_blocking=True)


def require_cuda() -> None:
    if not torch.cuda.is_available():
        raise UnavailableError(Status.UNAVAILABLE, 'gpushare.torch captures CUDA graphs, and PyTorch sees no GPU.')


def warm_up(function: Callable[[], Any], stream: Any, runs: int, what: str) -> Any:
    """Runs a function eagerly on `stream`, so that a capture finds handles, workspaces and plans. Returns its result.

    Raises if it draws random numbers on the GPU: every launch of its graph would repeat them.
    """
    random_state = torch.cuda.get_rng_state()
    stream.wait_stream(torch.cuda.current_stream())
    result = None
    with torch.cuda.stream(stream):
        for _ in range(runs):
            result = function()
    stream.synchronize()
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
    """The cudaEvent_t of events, for a task to wait for. On a simulated device, which has none, the host waits."""
    if simulated:
        for event in events:
            event.synchronize()
        return []
    return [event.cuda_event for event in events]
