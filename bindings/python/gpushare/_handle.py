"""One reference of a handle of the C ABI, given back by close(), by a with block or by garbage collection."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar

from gpushare._library import check, library
from gpushare._use import Use
from gpushare.enums import Status

Self = TypeVar('Self', bound='Handle')


def make(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a C function that makes a handle, and returns the handle. Its last argument is where it stores it."""
    handle = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(handle)))
    assert handle.value is not None
    return handle.value


class Owner(Protocol):
    """The part of a runtime that its handles use."""

    def _adopt(self, child: Handle) -> None: ...

    def _release_later(self, release: str, handle: int) -> None: ...


class Handle:
    """A handle that this object owns. `_release` is the C function that gives it back."""

    _release = ''

    def __init__(self, handle: int, runtime: Owner | None = None) -> None:
        self._use = Use(handle, type(self).__name__)
        self._process = os.getpid()
        # Keeps the runtime alive: it releases this handle later, if close() is too early.
        self._runtime = runtime
        if runtime is not None:
            runtime._adopt(self)

    @property
    def handle(self) -> int:
        """The C handle, for functions of gpushare.abi."""
        handle = self._use.handle
        if handle is None:
            raise self._use.closed_error()
        return handle

    @property
    def closed(self) -> bool:
        """Whether close() has given the reference back."""
        return self._use.handle is None

    def close(self) -> None:
        """Gives the reference back. With tasks in flight the runtime does it later.

        It waits for calls of other threads that use the handle now. Their next calls raise.
        """
        if os.getpid() != self._process:  # a thread that is not in this process may be inside a call
            self._use.handle = None
        else:
            self._use.close(self._give_back)

    def _give_back(self, handle: int) -> None:
        status = getattr(library(), self._release)(handle)
        if status == Status.FAILED_PRECONDITION and self._runtime is not None:
            self._runtime._release_later(self._release, handle)
        else:
            check(status)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        use = getattr(self, '_use', None)
        if use is not None and use.handle is not None:
            try:
                self.close()
            except Exception:  # no caller is left that could handle it; the library has logged the error
                use.handle = None
