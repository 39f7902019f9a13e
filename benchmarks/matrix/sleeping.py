"""Sleeps until an instant. Needs no PyTorch."""

from __future__ import annotations

import time

SPIN_NS = 150_000  # before an instant: a sleep ends late by about 60 us


def sleep_until(instant_ns: int) -> None:
    """Sleeps until an instant of time.monotonic_ns()."""
    left = instant_ns - time.monotonic_ns()
    if left > SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while time.monotonic_ns() < instant_ns:
        pass
