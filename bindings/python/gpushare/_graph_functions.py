"""Which functions the kernels of a CUDA graph are, so that its registration makes the twins of these alone.

A compilation loads far more functions than a step launches: an autotuned product alone loads twenty candidates.

Threads: any. The graph must not change meanwhile.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from typing import Any

_KERNEL, _GRAPH = 0, 4  # CUgraphNodeType


class _KernelNodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2"""

    _fields_ = (('function', ctypes.c_void_p), ('grid', ctypes.c_uint * 3), ('block', ctypes.c_uint * 3),
                ('shared_bytes', ctypes.c_uint), ('parameters', ctypes.c_void_p), ('extra', ctypes.c_void_p),
                ('kernel', ctypes.c_void_p), ('context', ctypes.c_void_p))


class _DriverError(Exception):
    """A call that the driver refused."""


@functools.cache
def driver() -> Any:
    """The CUDA driver; raises OSError without one."""
    return ctypes.CDLL('libcuda.so.1')


def functions_of(graph: int) -> frozenset[int] | None:
    """The CUfunctions of the graph's kernels, those of its child graphs too; None: nobody can say.

    graph: a cudaGraph_t of this process, which the driver dereferences.
    """
    try:
        return frozenset(_functions(driver(), graph))
    except (OSError, AttributeError, _DriverError):  # no driver, one without a call, one that refused it
        return None


def _functions(cuda: Any, graph: int) -> Iterator[int]:
    kind = ctypes.c_int()
    for node in _nodes(cuda, graph):
        _call(cuda.cuGraphNodeGetType, node, ctypes.byref(kind))
        if kind.value == _KERNEL:
            function = _function(cuda, node)
            if function is not None:
                yield function
        elif kind.value == _GRAPH:
            child = ctypes.c_void_p()
            _call(cuda.cuGraphChildGraphNodeGetGraph, node, ctypes.byref(child))
            yield from _functions(cuda, child.value or 0)


def _nodes(cuda: Any, graph: int) -> list[ctypes.c_void_p]:
    count = ctypes.c_size_t()
    _call(cuda.cuGraphGetNodes, ctypes.c_void_p(graph), None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    _call(cuda.cuGraphGetNodes, ctypes.c_void_p(graph), nodes, ctypes.byref(count))
    return [ctypes.c_void_p(node) for node in nodes]


def _function(cuda: Any, node: ctypes.c_void_p) -> int | None:
    """Of a kernel that a library has, it is the function in the current context."""
    params = _KernelNodeParams()
    _call(cuda.cuGraphKernelNodeGetParams_v2, node, ctypes.byref(params))
    function = ctypes.c_void_p(params.function)
    if not function.value and params.kernel:
        _call(cuda.cuKernelGetFunction, ctypes.byref(function), ctypes.c_void_p(params.kernel))
    return function.value


def _call(function: Any, *arguments: Any) -> None:
    code = function(*arguments)
    if code != 0:
        raise _DriverError(f'{function} gives {code}.')
