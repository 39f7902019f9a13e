"""Memory at intervals, and what a long run must show at its end. Needs no PyTorch."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

INTERVAL_S = 1.0
GROWTH_MIB = {'device_mib': 64, 'host_mib': 64}  # of memory that counts as flat, from the first to the last quarter
LOST = ('failed', 'dropped', 'cancelled')  # counters of an app that are 0 where nothing is lost


def device_mib() -> int:
    import torch
    free, total = torch.cuda.mem_get_info()
    return int(total - free) >> 20


def host_mib() -> int:
    """Memory of this process that is in RAM."""
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') >> 20


class Watch:
    """Samples memory in a thread, within a with block. `samples` are in order."""

    def __init__(self, device: Callable[[], int] = device_mib, interval_s: float = INTERVAL_S) -> None:
        self.samples: list[dict[str, float]] = []
        self._device, self._interval, self._began = device, interval_s, time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def now(self) -> dict[str, float]:
        return {'at_s': round(time.monotonic() - self._began, 2), 'device_mib': self._device(), 'host_mib': host_mib()}

    def _sample(self) -> None:
        while not self._stop.wait(self._interval):
            self.samples.append(self.now())


def grown(samples: Sequence[dict[str, float]], after_s: float) -> dict[str, float]:
    """The median of the last quarter less that of the first one, of the samples behind `after_s`."""
    settled = [one for one in samples if one['at_s'] >= after_s]
    part = max(1, len(settled) // 4)
    if len(settled) < 2 * part:
        return {}
    return {name: statistics.median(one[name] for one in settled[-part:]) -
            statistics.median(one[name] for one in settled[:part]) for name in GROWTH_MIB}


def verdict(report: dict[str, Any]) -> list[str]:
    """What is wrong with a run: nothing, if it is empty."""
    wrong = [] if report['phases'] else ['No phase ran.']
    for row in report['phases']:
        if row['complete'] != row['submitted']:
            wrong.append(f"Phase {row['phase']}: {row['complete']} of {row['submitted']} requests are complete.")
        if row['tokens_checked']['differ'] or not row['tokens_checked']['steps']:
            wrong.append(f"Phase {row['phase']}: {row['tokens_checked']['differ']} tokens differ in "
                         f"{row['tokens_checked']['steps']} steps.")
    for name, stats in report['stats'].items():
        if stats['submitted'] != stats['completed'] or any(stats[one] for one in LOST):
            wrong.append(f'App {name} lost tasks: {stats}.')
    for name, limit in GROWTH_MIB.items():
        if name not in report['growth']:
            wrong.append(f'There are too few samples to say that {name} is flat.')
        elif report['growth'][name] > limit:
            wrong.append(f"{name} grew by {report['growth'][name]} MiB, and flat is at most {limit} MiB.")
    wrong += [f'Job {name} gives wrong results: {health}.' for name, health in report['health'].items()
              if not health['right']]
    wrong += [f'Job {name} ran no step.' for name, steps in report['be_steps'].items() if not steps]
    return wrong
