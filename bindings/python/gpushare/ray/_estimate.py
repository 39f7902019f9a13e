"""What a replica predicts of its next query: how long it waits, how long it takes, which load is left.

The replica reports the arrival and the end of each query.
In a mean older queries count less: one of decay_s ago has 1/e (0.37) of the weight of one that ends now.
All times are nanoseconds of one clock, which the caller reads. Threads: the caller's lock.
"""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass
class _Decayed:
    """A sum whose parts decay."""

    decay_ns: float
    value: float = 0.0
    at_ns: int = 0

    def read(self, now_ns: int) -> float:
        if now_ns > self.at_ns:
            self.value *= math.exp(-(now_ns - self.at_ns) / self.decay_ns)
            self.at_ns = now_ns
        return self.value

    def add(self, part: float, now_ns: int) -> None:
        self.read(now_ns)
        self.value += part


class Estimate:
    """The queries of one replica, which a device serves one after another.

    A query's service time is the time from its arrival, or from the end before it where that is later, to its end. So
    queries that overlap on the device count with the time that each one adds.
    service_ns: what a query takes alone, as far as known; it counts as one query more, which never decays. 0: unknown,
    and then the service time is unknown again once the queries that were seen have decayed below COUNT_MIN.
    bound_ns: the latency that is promised; 0: none.
    """

    def __init__(self, service_ns: float, decay_s: float, now_ns: int, bound_ns: float = 0) -> None:
        decay_ns = decay_s * 1e9
        self._decay_ns = decay_ns
        self._began_ns = now_ns
        self._first = (service_ns, 1.0 if service_ns > 0 else 0.0)
        self._sum, self._squares, self._count = (_Decayed(decay_ns, at_ns=now_ns) for _ in range(3))
        self._bound_ns = bound_ns
        self._answered, self._late = (_Decayed(LATE_DECAY_S * 1e9, at_ns=now_ns) for _ in range(2))
        self._arrivals: list[int] = []
        self._last_end_ns = now_ns

    @property
    def ongoing(self) -> int:
        """Queries that have arrived and not ended."""
        return len(self._arrivals)

    def begin(self, now_ns: int) -> int:
        """A query arrives. Returns what end() needs."""
        self._arrivals.append(now_ns)
        return now_ns

    def end(self, arrival_ns: int, now_ns: int, served: bool = True) -> None:
        """The query of begin() ends. Without `served`, as after an error, its time says nothing and is dropped."""
        self._arrivals.remove(arrival_ns)
        if served:
            service_ns = max(now_ns - max(arrival_ns, self._last_end_ns), 0)
            self._sum.add(service_ns, now_ns)
            self._squares.add(float(service_ns) ** 2, now_ns)
            self._count.add(1.0, now_ns)
            self._answered.add(1.0, now_ns)
            self._late.add(float(self._bound_ns > 0 and now_ns - arrival_ns > self._bound_ns), now_ns)
        self._last_end_ns = max(self._last_end_ns, now_ns)

    def service_ns(self, now_ns: int) -> float:
        """The decayed mean of the service times; 0: unknown."""
        first, weight = self._first
        count = self._count.read(now_ns) + weight
        # The sum decays as the count does, so that their ratio never would.
        return (self._sum.read(now_ns) + first * weight) / count if count >= COUNT_MIN else 0.0

    def spread_ns(self, now_ns: int) -> float:
        """The standard deviation of the service times, decayed as the mean is."""
        first, weight = self._first
        count = self._count.read(now_ns) + weight
        if count < COUNT_MIN:
            return 0.0
        squares = (self._squares.read(now_ns) + first ** 2 * weight) / count
        return math.sqrt(max(squares - self.service_ns(now_ns) ** 2, 0.0))

    def wait_ns(self, now_ns: int) -> float:
        """How long a query that arrives now waits for those before it."""
        if not self._arrivals:
            return 0.0
        service_ns = self.service_ns(now_ns)
        begun_ns = max(min(self._arrivals), self._last_end_ns)
        return max(len(self._arrivals) * service_ns - min(now_ns - begun_ns, service_ns), 0.0)

    def at_risk(self, now_ns: int) -> bool:
        """Whether the promise is in danger: the last queries were late, or one that arrives now is going to be.

        Late ones count from QUERIES_MIN on. A service of few queries is judged by the second alone.
        """
        if self._bound_ns <= 0:
            return False
        answered = self._answered.read(now_ns)
        if answered >= QUERIES_MIN and self._late.read(now_ns) > LATE_SHARE_MAX * answered:
            return True
        return self.wait_ns(now_ns) + self.service_ns(now_ns) > self._bound_ns

    def load(self, now_ns: int) -> float:
        """The share of time in which queries are served, decayed. A query counts when it ends.

        In its first moments a replica has seen too little for a share: it counts as idle before its first query.
        """
        seen_ns = self._decay_ns * -math.expm1(-(now_ns - self._began_ns) / self._decay_ns)
        return min(self._sum.read(now_ns) / max(seen_ns, self._decay_ns / 4), 1.0)


def headroom(load: float, load_max: float, at_risk: bool) -> float:
    """The share of the admitted LC load that is free, from 0 to 1. None is free where a guarantee is at risk."""
    return 0.0 if at_risk or load_max <= 0 else min(max(1.0 - load / load_max, 0.0), 1.0)


COUNT_MIN = 0.01  # of decayed queries: below it the mean is unknown; one query is so old after 4.6 times decay_s
QUERIES_MIN = 50.0  # for a share of late queries: one late one of fewer is more than 2 % of them
LATE_SHARE_MAX = 0.01  # the promise is of the p99
LATE_DECAY_S = 10.0  # of late queries: long enough for a share, short enough to end when they do
