"""The conditions of a row that run without the library: the ways of baselines.py on the row's arrivals."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from baselines import ways
from green import GreenContexts
from matrix_plan import GREEN_SMS
from programs import Program
from served import Served

SWITCH_S = 5e-5  # threads that feed the GPU wait less for the interpreter
REPLAYED = 'alone'  # the way without BE, which the others are compared with


class Greens:
    """The green contexts of this process by the names of their conditions, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, GreenContexts] = {}

    def of(self, names: Sequence[str]) -> tuple[dict[str, GreenContexts], dict[str, str]]:
        """Those of the names that are green, and why others could not be made."""
        absent: dict[str, str] = {}
        for name in names:
            if name in GREEN_SMS and name not in self._made:
                try:
                    self._made[name] = GreenContexts(GREEN_SMS[name])
                except RuntimeError as error:
                    absent[name] = str(error)
        return {name: self._made[name] for name in names if name in self._made}, absent


class RowBaselines:
    """The named baselines of a service and a program. `absent` says why some cannot run."""

    def __init__(self, served: Served, be: Program, names: Sequence[str], greens: Greens) -> None:
        self._served, self._be = served, be
        contexts, self.absent = greens.of(names)
        self._ways, failed = ways(served.call, be.plain(), contexts, (REPLAYED, *names))
        self.absent.update(failed)

    def run(self, name: str, arrivals: Sequence[int]) -> dict[str, Any]:
        self._served.clear()
        with _undisturbed():
            run = self._ways[name].run(arrivals)
        self._served.check(name, self._served.answer)
        return {'latencies': [round(one) for one in run['latencies']], 'span_ns': run['window_ns'],
                'work': run['steps'] * self._be.work}


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Without collections, which stop every thread for tens of milliseconds."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.setswitchinterval(interval)
