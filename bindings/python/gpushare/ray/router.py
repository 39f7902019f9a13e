"""The request router of Serve that uses the replicas' statistics: it tries the least predicted latency first.

Serve loads the class by its import path in each process that has a handle of the deployment, so that gpushare must be
importable there. Which replica comes first is decided in _ranking.py.
"""

from __future__ import annotations

import time
from typing import Any

from ray.serve.config import RequestRouterConfig
from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from gpushare.ray._ranking import STALE_AFTER_S, Ranking, milliseconds_left

PERIOD_S = 0.2


class LeastLatencyRouter(RequestRouter):
    """Drops replicas that would miss the request's deadline, and takes the least predicted latency of the others.

    A request states its deadline by the keyword argument `within_s` of the deployment's method: seconds from when the
    handle got it. HTTP requests have that of the deployment, deadline_ms of router_config(). If all replicas would miss
    it, the least late one gets the request, and Replica.request() refuses it there, by what is known there.
    """

    def initialize_state(self, *, deadline_ms: float = 0, stale_after_s: float = STALE_AFTER_S) -> None:
        """Called by Serve with the router's arguments."""
        self._deadline_ms = deadline_ms
        self._ranking = Ranking(stale_after_s=stale_after_s)

    async def choose_replicas(self, candidate_replicas: list[RunningReplica],
                              pending_request: PendingRequest | None = None) -> list[list[RunningReplica]]:
        """The ranks of replicas that Serve tries one after another."""
        now_s = time.monotonic()
        by_name = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        ongoing: dict[str, int | None] = {}
        for name, replica in by_name.items():
            self._ranking.note(name, replica.routing_stats, now_s)
            ongoing[name] = self.replica_queue_len_cache.get(replica.replica_id)
        within_ms = None
        if pending_request is not None:
            within_ms = milliseconds_left(pending_request.kwargs.get('within_s'), self._deadline_ms,
                                          time.time() - pending_request.created_at)
            # As Serve's own routers: after a round without a free replica wait before the next one.
            pending_request.routing_context.should_backoff = True
        return [[by_name[name] for name in rank] for rank in self._ranking.order(ongoing, within_ms, now_s)]

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Called by Serve when replicas come, go or report."""
        now_s = time.monotonic()
        self._ranking.keep([replica.replica_id.unique_id for replica in replicas])
        for replica in replicas:  # also while no request comes: a report is as old as when it came
            self._ranking.note(replica.replica_id.unique_id, replica.routing_stats, now_s)
        super().update_replicas(replicas)


def router_config(*, deadline_ms: float = 0, period_s: float = PERIOD_S,
                  stale_after_s: float = STALE_AFTER_S) -> RequestRouterConfig:
    """The option request_router_config of serve.deployment.

    deadline_ms: of a request that states no `within_s`; 0: none. period_s: how often Serve asks each replica for its
    statistics, 0.1 to 0.5 s; its own default of 10 s is useless here. stale_after_s: after which time without a new
    report a replica counts as unknown.
    """
    if not 0.1 <= period_s <= 0.5:
        raise ValueError(f"period_s is {period_s}, and it must be from 0.1 s, the period of Serve's controller, to "
                         '0.5 s.')
    if not deadline_ms >= 0:
        raise ValueError(f'deadline_ms is {deadline_ms}, and it must be at least 0.')
    if not stale_after_s > period_s:
        raise ValueError(f'stale_after_s is {stale_after_s}, and it must be above period_s, {period_s}.')
    arguments: dict[str, Any] = {'deadline_ms': deadline_ms, 'stale_after_s': stale_after_s}
    return RequestRouterConfig(
        request_router_class='gpushare.ray.router:LeastLatencyRouter', request_router_kwargs=arguments,
        request_routing_stats_period_s=period_s, request_routing_stats_timeout_s=10 * period_s)
