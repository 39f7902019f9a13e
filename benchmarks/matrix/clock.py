"""GPU events on the host's clock."""

from __future__ import annotations

import math
import time
from typing import Any

import torch


def timed_event() -> Any:
    """An event with a time, on the current stream."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class Mark:
    """An event whose instant on the host's clock is known to a few us. The current stream must be idle."""

    def __init__(self) -> None:
        best = math.inf
        for _ in range(8):
            before = time.monotonic_ns()
            event = timed_event()
            event.synchronize()
            after = time.monotonic_ns()
            if after - before < best:
                best, self.event, self.host_ns = after - before, event, (before + after) / 2


class Clock:
    """Host times of events between two marks: the GPU's clock drifts against the host's, so two are needed."""

    def __init__(self, first: Mark, last: Mark) -> None:
        self._first = first
        elapsed = first.event.elapsed_time(last.event)
        self._ns_per_ms = (last.host_ns - first.host_ns) / elapsed

    def host_ns(self, event: Any) -> float:
        return self._first.host_ns + self._first.event.elapsed_time(event) * self._ns_per_ms
