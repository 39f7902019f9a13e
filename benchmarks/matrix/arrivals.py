"""Poisson arrivals, quantiles, and what a queue of one server makes of them. Needs no GPU and no PyTorch."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

LOAD_MAX = 0.98  # of a server: at 1 the queue grows without end
SEARCH_STEPS = 16  # halvings: the load to 2e-5
SEARCH_QUERIES = 12000


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile by nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def poisson(seed: int, count: int, gap_ns: float) -> list[int]:
    """Arrival times in ns from 0, with exponential gaps."""
    draw, now, arrivals = random.Random(seed), 0.0, []
    for _ in range(count):
        now += draw.expovariate(1.0) * gap_ns
        arrivals.append(int(now))
    return arrivals


def queries_of_round(queries: int, rounds: int, gap_ns: float, window_s: float) -> int:
    """A round's part of the queries, but as many as fill its window: BE work waits in the first tenths of a second."""
    return max(queries // rounds, math.ceil(window_s * 1e9 / gap_ns))


def busy_distances(arrivals: Sequence[int], found_ns: Sequence[int]) -> list[float]:
    """From each query's end to the next one's: the service times, if the server was never idle between."""
    ends = [arrival + latency for arrival, latency in zip(arrivals, found_ns, strict=True)]
    return [float(after - before) for before, after in itertools.pairwise(ends)]


def latencies(arrivals: Sequence[int], service_ns: Sequence[float], overhead_ns: float = 0) -> list[float]:
    """Latencies of one server in order of arrival (Lindley's recursion). The service times are used in turn."""
    free, result = 0.0, []
    for number, arrival in enumerate(arrivals):
        free = max(free, arrival) + service_ns[number % len(service_ns)]
        result.append(free - arrival + overhead_ns)
    return result


def peak_load(service_ns: Sequence[float], overhead_ns: float, target_ns: float, seed: int = 1) -> float:
    """The highest load whose p99 latency keeps the target, by halving; 0 if none does.

    Load is the arrival rate times the mean service time. The latencies are those of a queue with the measured service
    times, so that the search itself takes no time of the GPU.
    """
    mean = sum(service_ns) / len(service_ns)

    def keeps(load: float) -> bool:
        found = latencies(poisson(seed, SEARCH_QUERIES, mean / load), service_ns, overhead_ns)
        return quantile(found, 0.99) <= target_ns

    low, high = 0.0, LOAD_MAX
    if keeps(high):
        return high
    for _ in range(SEARCH_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def slowest(latencies: Sequence[int], count: int = 12) -> list[list[float]]:
    """The number and the latency in us of the slowest queries, in their order: neighbours tell of one stall."""
    numbers = sorted(sorted(range(len(latencies)), key=lambda number: -latencies[number])[:count])
    return [[number, round(latencies[number] / 1e3, 1)] for number in numbers]
