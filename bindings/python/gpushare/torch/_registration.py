"""Registers a graph, and falls back to the whole device where no other place can have it.

Threads: the one that registers.
"""

from __future__ import annotations

import logging
from typing import Any

from gpushare.enums import Choice, TaskKind
from gpushare.errors import DeadlineExceededError, Error, UnimplementedError, described
from gpushare.kernel import Kernel
from gpushare.runtime import Runtime
from gpushare.torch._place_captures import PlaceCaptures

_log = logging.getLogger(__name__)


def register_graph(runtime: Runtime, name: str, *, captures: PlaceCaptures | None = None,
                   **options: Any) -> tuple[Kernel, str]:
    """The kernel of a graph, and why it runs on the whole device only: '' where it may run in places.

    captures: the graph is captured in each place. Without it `options` has the graph. Options are those of
    Runtime.register_kernel. A warning in Python's log names a graph that falls back.
    """
    given = {'kind': TaskKind.GRAPH, **options}
    if captures is not None:
        given['capture'] = captures
    try:
        return runtime.register_kernel(name, **given), ''
    except Exception as error:
        if given.get('confinable') == Choice.NO or not _only_places_fail(error, captures):
            raise
        reason = error.message if isinstance(error, Error) else described(error)
        if captures is not None:
            captures.begin_again()
        try:
            kernel = runtime.register_kernel(name, **{**given, 'confinable': Choice.NO})
        except Exception:
            raise error from None
    _log.warning("Graph '%s' runs on the whole device only: %s", name, reason)
    return kernel, reason


def _only_places_fail(error: Exception, captures: PlaceCaptures | None) -> bool:
    """Whether the registration may succeed for the whole device alone."""
    if isinstance(error, UnimplementedError):
        return True  # a kernel of the graph cannot be moved to a place
    if captures is None:
        return False
    # The first capture is the whole device's. After a measurement that takes too long the graph still runs.
    return captures.begun > 1 and not isinstance(error, DeadlineExceededError)
