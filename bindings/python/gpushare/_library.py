"""Finds and loads libgpushare, once a process, and turns a status into an exception.

The library is the file that GPUSHARE_LIBRARY names; else the one that a wheel carries in gpushare/lib; else
the one that the system's loader finds.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import threading

from gpushare import _native, abi
from gpushare.enums import Status
from gpushare.errors import error_of

_FILE = f'libgpushare.so.{abi.GPUSHARE_ABI_VERSION}'
_lock = threading.Lock()
_loaded: list[abi.Functions] = []
steps: _native.Steps | None = None  # set with the library


def library_path() -> str:
    """The file that is loaded, or the name that the system's loader searches."""
    given = os.environ.get('GPUSHARE_LIBRARY')
    if given:
        return given
    carried = pathlib.Path(__file__).parent / 'lib' / _FILE
    return str(carried) if carried.is_file() else _FILE


def library() -> abi.Functions:
    """The functions of libgpushare, which the first call loads."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _load_all(library_path())
    return _loaded[0]


def _load_all(path: str) -> None:
    global steps
    functions = _load(path)
    steps = _native.load(functions)
    _loaded.append(functions)


def _load(path: str) -> abi.Functions:
    try:
        functions = abi.Functions(ctypes.CDLL(path))
    except OSError as error:
        raise ImportError(
            f'libgpushare cannot be loaded: {error}. Install the wheel, which carries it, set GPUSHARE_LIBRARY to '
            f"the path of {_FILE}, or put it where the system's loader looks.") from error
    version = functions.gpushare_abi_version()
    if version != abi.GPUSHARE_ABI_VERSION:
        raise ImportError(f"The library '{path}' has ABI version {version}, and this package needs "
                          f'{abi.GPUSHARE_ABI_VERSION}.')
    return functions


def check(status: int) -> None:
    """Raises the exception of a status that a function has just returned on this thread."""
    if status != Status.OK:
        raise error_of(status, library().gpushare_last_error_message().decode('utf-8', 'replace'))
