"""Finds gpushare._steps, the C form of a step's calls (bindings/python/native). Without it the package uses ctypes.

It is the file that GPUSHARE_PYTHON_STEPS names, where an empty text means none; else the one beside this file, which
a wheel carries.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import logging
import os
import pathlib
from typing import Any, Protocol

from gpushare import abi

_FILE = '_steps.abi3.so'
_BOUND = ('gpushare_run_lc', 'gpushare_now_ns', 'gpushare_ticket_wait', 'gpushare_ticket_release')


class Steps(Protocol):
    def bind(self, run_lc: int, now_ns: int, ticket_wait: int, ticket_release: int, /) -> None: ...

    def run(self, runtime: int, queue: int, kernel: int, arguments: bytes, query: int, arrival_ns: int,
            next_within_ns: int, deadline_ns: int, slice_ns: int, /) -> tuple[int, int, int] | None:
        """gpushare_run_lc until the deadline or the end of a slice. None: the task ended with Verdict.OK; else the
        status, the verdict and the ticket, 0 if the caller has none. An exception leaves no ticket."""

    def wait(self, runtime: int, ticket: int, deadline_ns: int, slice_ns: int, /) -> int:
        """gpushare_ticket_wait until the same; the status."""

    def pool_open(self, limit_bytes: int, malloc: int, free: int, get_last_error: int, /) -> tuple[int, int, int]:
        """A memory pool with a limit (native/memory_pool.h): its number, and the addresses of its alloc and free. The
        arguments are addresses of functions of the CUDA runtime."""

    def pool_state(self, pool: int, /) -> tuple[int, int]:
        """The bytes that the pool has, and how many allocations its limit refused."""

    def pool_close(self, pool: int, /) -> None:
        """The number may be used again once the pool's memory is freed."""

    def gate_open(self, runtime: int, first: int, second: int, stream: int, outstanding_ns: int,
                  library: tuple[int, ...], driver: tuple[int, ...], cupti: tuple[int, ...], /) -> object:
        """The gate of an eager loop (native/gate_calls.h) with two queues of its app. The tuples are addresses."""

    def gate_operation(self, gate: object, key: int, /) -> int:
        """Before an operation. 0; 1: gate_launched must follow it; below 0: a status with its sign changed."""

    def gate_launched(self, gate: object, /) -> None: ...

    def gate_counts(self, gate: object, /) -> tuple[int, int, int, int, int, int]:
        """Operations, regions, refusals, operations on credit, operations measured alone, ns that they waited."""

    def gate_close(self, gate: object, /) -> int:
        """The status that opened the gate for good, or 0."""


def load(functions: abi.Functions) -> Steps | None:
    """The module, bound to the loaded library. None: there is none, or it does not fit this interpreter."""
    given = os.environ.get('GPUSHARE_PYTHON_STEPS')
    path = given if given is not None else str(pathlib.Path(__file__).parent / _FILE)
    if not path or (given is None and not os.path.isfile(path)):
        return None
    # A file that is given by its path is loaded whatever its suffix, and a free-threaded Python would crash in it.
    if '.abi3.so' not in importlib.machinery.EXTENSION_SUFFIXES:
        return None
    try:
        steps = _module_of(path)
        steps.bind(*(ctypes.cast(getattr(functions, name), ctypes.c_void_p).value for name in _BOUND))
    except (ImportError, AttributeError) as error:
        logging.getLogger(__name__).warning('The package uses ctypes for each step: %s', error)
        return None
    return steps  # type: ignore[no-any-return]


def _module_of(path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader('gpushare.steps', path)
    spec = importlib.util.spec_from_file_location('gpushare.steps', path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
