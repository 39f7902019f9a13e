"""The figures of replicas and jobs as Ray's metrics, which Ray's agents export to Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray.util import metrics

# Of each replica: the key of its routing statistics, and what it says.
REPLICA_GAUGES = {
    'wait_ms': 'Predicted time that the next LC query waits',
    'service_ms': 'Decayed mean of what an LC query takes',
    'p99_ms': 'p99 latency of the LC queries in the window',
    'p99_bound_ms': 'Promised p99 latency; 0: none',
    'headroom': 'Share of the admitted LC load that is free',
    'load': 'Share of time in which LC queries are served',
    'be_share': 'Device time of best-effort jobs over time',
    'at_risk': '1: a guarantee is at risk, and jobs are paused',
    'jobs': 'Best-effort jobs that the replica holds',
}


class Metrics:
    """Ray's gauges of one replica, with the tags `deployment` and `replica`. Their names begin with gpushare_ray_."""

    def __init__(self, deployment: str, replica: str) -> None:
        tags = {'deployment': deployment, 'replica': replica}
        self._gauges = {key: _gauge(key, text, tuple(tags), tags) for key, text in REPLICA_GAUGES.items()}
        self._refused = metrics.Counter('gpushare_ray_refused', 'Requests refused because they would be late',
                                        tuple(tags))
        self._refused.set_default_tags(tags)

    def set(self, stats: Mapping[str, Any]) -> None:
        """Sets the gauges to a replica's routing statistics."""
        for key, gauge in self._gauges.items():
            gauge.set(float(stats[key]))

    def refuse(self) -> None:
        """Counts a request that was refused."""
        self._refused.inc()


def job_metrics(jobs: str) -> Callable[[Mapping[str, int]], None]:
    """What sets Ray's gauge of a Jobs actor, its jobs by state, to the counts that it is called with."""
    gauge = _gauge('jobs_by_state', 'Best-effort jobs by state', ('jobs', 'state'), {'jobs': jobs})

    def set_counts(counts: Mapping[str, int]) -> None:
        for state, count in counts.items():
            gauge.set(count, tags={'state': state})
    return set_counts


def _gauge(key: str, text: str, keys: tuple[str, ...], tags: Mapping[str, str]) -> Any:
    gauge = metrics.Gauge(f'gpushare_ray_{key}', text, keys)
    gauge.set_default_tags(dict(tags))
    return gauge
