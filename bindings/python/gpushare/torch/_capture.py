"""Captures a function once, as a graph of PyTorch that the library copies to each place.

Threads: the caller's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError


def captured(graph: Any, function: Callable[[], Any], pool: Any = None) -> Any:
    """Captures a function on the current stream. Returns its result, whose memory is the graph's.

    pool: the torch.cuda.MemPool of the capture. Graphs may share one if they are captured on one stream and never
    run together. Default: a new one.
    """
    options = {} if pool is None else {'pool': pool.id}
    # relaxed: other threads may allocate memory during the capture.
    graph.capture_begin(capture_error_mode='relaxed', **options)
    try:
        outputs = function()
    except BaseException:
        with contextlib.suppress(Exception):  # the function's own exception says more
            graph.capture_end()
        raise
    graph.capture_end()
    return outputs


def raw_graph(graph: Any, what: str) -> int:
    """The cudaGraph_t of a torch.cuda.CUDAGraph."""
    if not isinstance(graph, torch.cuda.CUDAGraph):
        raise TypeError(f'{what} is {graph!r}, and it must be a torch.cuda.CUDAGraph.')
    try:
        return int(graph.raw_cuda_graph())
    except RuntimeError as error:
        raise InvalidArgumentError(
            Status.INVALID_ARGUMENT, f'{what} gives no cudaGraph_t. Capture into '
            'torch.cuda.CUDAGraph(keep_graph=True), or pass the function and its inputs instead.') from error
