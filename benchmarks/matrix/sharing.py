"""The same service and step through gpushare: queries and steps are submitted, and the library decides."""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Sequence
from typing import Any

from sleeping import sleep_until

import gpushare
import gpushare.torch
from gpushare.records import AppGuarantee

OUTSTANDING = 4  # steps submitted and not complete
LIMIT_S = 60.0  # of one wait: work that never runs is a failure, not a hang


@dataclasses.dataclass(frozen=True)
class Promise:
    """What the LC app asks for. Hints: p99 alone at this load and the time of one query."""

    p99_bound: float
    p50_bound: float = 0.0
    p99_alone_ns: int = 0
    solo_ns: int = 0


class Sharing:
    """One runtime with a captured service. Each run has an LC app of its own, so that its promise is new."""

    def __init__(self, service: Any, inputs: Any, name: str) -> None:
        self.runtime = gpushare.Runtime(device='cuda')
        began = time.monotonic()
        self.service = gpushare.torch.Service(self.runtime, service, inputs, name=name)
        self.registered_s = time.monotonic() - began

    def run(self, arrivals: Sequence[int], promise: Promise, training: Any = None) -> dict[str, Any]:
        """Latencies in ns by the GPU's clock and as the host saw them, and the steps until the last arrival."""
        app = self.runtime.create_app('queries', gpushare.AppClass.LATENCY_CRITICAL, tasks_max=16384,
                                      **dataclasses.asdict(promise))
        stop, done = threading.Event(), list[Any]()
        before = self.runtime.stats()
        held = training.app.guarantee().held_ns if training is not None else {}
        feeder = threading.Thread(target=self._feed, args=(training, stop, done))
        if training is not None:
            feeder.start()
        tickets = []
        start = time.monotonic_ns() + 20_000_000
        for arrival in arrivals:
            sleep_until(start + arrival)
            tickets.append(app.submit(self.service.kernel, arrival_ns=self.runtime.from_monotonic_ns(start + arrival)))
        last = time.monotonic_ns()
        stop.set()
        records = [ticket.wait(LIMIT_S) for ticket in tickets]
        guarantee = app.guarantee()
        result: dict[str, Any] = {}
        if training is not None:
            held_after = training.app.guarantee().held_ns
            result['held_s'] = {reason.name: round((span - held.get(reason, 0)) / 1e9, 3)
                                for reason, span in held_after.items() if span - held.get(reason, 0) > 1e6}
            feeder.join()
            from_ns, to_ns = self.runtime.from_monotonic_ns(start), self.runtime.from_monotonic_ns(last)
            result['steps'] = sum(from_ns <= step.complete_ns < to_ns for step in done)
            result['evictions'] = sum(step.evictions for step in done)
            result['records'] = done
        after = self.runtime.stats()
        app.close()
        meant = [self.runtime.from_monotonic_ns(start + arrival) for arrival in arrivals]
        return {**result, 'window_ns': last - start, 'got': _got(guarantee),
                'launches': after.launches - before.launches,
                'latencies': [(record.end_ns or record.complete_ns) - at
                              for record, at in zip(records, meant, strict=True)],
                'seen': [record.complete_ns - at for record, at in zip(records, meant, strict=True)]}

    @staticmethod
    def _feed(training: Any, stop: threading.Event, done: list[Any]) -> None:
        waiting = collections.deque[Any]()
        while not stop.is_set():
            waiting.append(training.submit()[0])
            if len(waiting) >= OUTSTANDING:
                done.append(_ended(waiting.popleft()))
        done += [_ended(ticket) for ticket in waiting]

    def rate(self, training: Any, runs: int) -> float:
        """Nanoseconds of one step through the library, of steps back to back without queries."""
        training.submit()[0].wait(LIMIT_S)
        tickets = training.submit(runs)
        records = [_ended(ticket) for ticket in tickets]
        return (records[-1].complete_ns - records[0].complete_ns) / (runs - 1)

    def close(self) -> None:
        self.service.close()
        self.runtime.close()


def _ended(ticket: Any) -> Any:
    """The record of a step that is complete, and its room in the app."""
    record = ticket.wait(LIMIT_S)
    ticket.release()
    return record


def _got(guarantee: AppGuarantee) -> dict[str, float]:
    """What the library itself says that it delivered."""
    return {'p50_us': guarantee.p50_ns / 1e3, 'p99_us': guarantee.p99_ns / 1e3,
            'late_share': round(guarantee.late_share, 4), 'tail_credit': round(guarantee.tail_credit, 2),
            'late_for_be': guarantee.queries_late_for_be}
