"""gpushare under Ray: Serve replicas that own a GPU, a router that knows their predicted latency, best-effort jobs.

    @serve.deployment(num_replicas=2, ray_actor_options=gpushare.ray.actor_options(lc_load=0.4),
                      request_router_config=gpushare.ray.router_config(deadline_ms=50))
    class Chat(gpushare.ray.Replica): ...

    jobs = gpushare.ray.start_jobs()
    jobs.submit('tune', Tune, epochs=3)

Ray routes, places and restarts; gpushare says what each replica can take. docs/ray.md explains it. It needs
`pip install "gpushare-runtime[ray]"`. The decisions are plain Python (_estimate, _ranking, _ledger, _placement) and
know no Ray.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpushare.ray._placement import Pair
    from gpushare.ray._running import JobGpu
    from gpushare.ray.deployment import (
        HeadroomPolicy,
        Replica,
        WouldBeLateError,
        actor_options,
        admitted_fraction,
        partition_fraction,
    )
    from gpushare.ray.jobs import Jobs, JobsActor, connect_jobs, start_jobs
    from gpushare.ray.metrics import Metrics
    from gpushare.ray.router import LeastLatencyRouter, router_config

_WHERE = {
    'HeadroomPolicy': 'deployment',
    'JobGpu': '_running',
    'Jobs': 'jobs',
    'JobsActor': 'jobs',
    'LeastLatencyRouter': 'router',
    'Metrics': 'metrics',
    'Pair': '_placement',
    'Replica': 'deployment',
    'WouldBeLateError': 'deployment',
    'actor_options': 'deployment',
    'admitted_fraction': 'deployment',
    'connect_jobs': 'jobs',
    'partition_fraction': 'deployment',
    'router_config': 'router',
    'start_jobs': 'jobs',
}

__all__ = [
    'HeadroomPolicy',
    'JobGpu',
    'Jobs',
    'JobsActor',
    'LeastLatencyRouter',
    'Metrics',
    'Pair',
    'Replica',
    'WouldBeLateError',
    'actor_options',
    'admitted_fraction',
    'connect_jobs',
    'partition_fraction',
    'router_config',
    'start_jobs',
]


def __getattr__(name: str) -> Any:
    """Imports the module of a name when it is first used, so that what needs no Ray works without it."""
    if name not in _WHERE:
        raise AttributeError(f"module 'gpushare.ray' has no attribute '{name}'")
    try:
        return getattr(importlib.import_module(f'gpushare.ray.{_WHERE[name]}'), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition('.')[0] != 'ray':
            raise
        raise ModuleNotFoundError(
            f"gpushare.ray.{name} needs Ray Serve 2.60, and this Python has no module '{error.name}'. Install it by: "
            "pip install 'gpushare-runtime[ray]'", name=error.name) from error
