"""Captures a function once, as a graph of PyTorch that the library copies to each place.

Threads: the caller's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch

from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError
from gpushare.torch._graph_random import GraphRandom


def captured(graph: Any, function: Callable[[], Any], pool_id: Any = None,
             random: GraphRandom | None = None) -> Any:
    """Captures a function on the current stream. Returns its result, whose memory is the graph's.

    pool_id: of the torch.cuda.MemPool of the capture. Graphs may share one if they are captured on one stream and
    never run together. Default: a new one.
    random: the generators that the function draws from, which each launch advances.
    """
    options = {} if pool_id is None else {'pool': pool_id}
    begin = graph.capture_begin if random is None else functools.partial(random.capture_begin, graph)
    # relaxed: other threads may allocate memory during the capture.
    begin(capture_error_mode='relaxed', **options)
    try:
        outputs = function()
        if random is not None:
            random.advance()
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
