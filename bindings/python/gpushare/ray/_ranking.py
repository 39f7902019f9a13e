"""In which order a router tries replicas: those that meet the deadline first, by the least predicted latency.

A replica's statistics are as old as Serve's period (0.1 to 0.5 s) and its controller's broadcast, which is long beside
a query. So the reported wait decays by its age, and Serve's own count of ongoing requests corrects it, which follows
each answer. Statistics that no new report follows for stale_after_s say nothing any more.

Knows no Ray. Threads: one, that of the router's event loop.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

STALE_AFTER_S = 2.0  # ten periods of 0.2 s: the controller of a busy cluster skips some
RANKS_MAX = 8  # of one replica each; Serve tries one rank after another, so that more of them make routing linear
TIE = 0.1  # predictions within a tenth of the least are equal: the choice among them is random


@dataclasses.dataclass
class _Report:
    sequence: int
    seen_s: float
    wait_ms: float
    service_ms: float
    spread_ms: float


class Ranking:
    """Keeps the last report of each replica with the time at which this router saw it first."""

    def __init__(self, *, stale_after_s: float = STALE_AFTER_S, tie: float = TIE,
                 shuffle: Callable[[list[str]], None] = random.shuffle) -> None:
        if not stale_after_s > 0:
            raise ValueError(f'stale_after_s is {stale_after_s}, and it must be above 0.')
        self._stale_after_s = stale_after_s
        self._tie = tie
        self._shuffle = shuffle
        self._reports: dict[str, _Report] = {}

    def note(self, replica: str, stats: Mapping[str, Any] | None, now_s: float) -> None:
        """Notes what a replica reports. An absent or malformed report is as none."""
        try:
            assert stats is not None
            sequence = int(stats['sequence'])
            known = self._reports.get(replica)
            if known is None or known.sequence != sequence:
                numbers = [float(stats[name]) for name in ('wait_ms', 'service_ms', 'spread_ms')]
                if not all(0 <= number < float('inf') for number in numbers):
                    raise ValueError(numbers)
                self._reports[replica] = _Report(sequence, now_s, *numbers)
        except (AssertionError, KeyError, TypeError, ValueError):
            self._reports.pop(replica, None)

    def keep(self, replicas: Sequence[str]) -> None:
        """Forgets the replicas that are gone."""
        self._reports = {name: self._reports[name] for name in replicas if name in self._reports}

    def latency_ms(self, replica: str, ongoing: int | None, now_s: float) -> float | None:
        """The predicted latency of a request that is sent now. None: the replica's statistics are absent or stale.

        It is None too where the replica has no service time, as before its first query or long after its last one.
        ongoing: the requests that Serve counts there; None: it does not know.
        """
        report = self._reports.get(replica)
        if report is None or now_s - report.seen_s > self._stale_after_s or report.service_ms <= 0:
            return None
        wait_ms = max(report.wait_ms - (now_s - report.seen_s) * 1e3, 0.0)
        return max(wait_ms, (ongoing or 0) * report.service_ms) + report.service_ms

    def order(self, replicas: Mapping[str, int | None], within_ms: float | None, now_s: float) -> list[list[str]]:
        """The replicas in ranks, of which Serve tries one after another.

        replicas: their names with the ongoing requests. within_ms: what is left until the deadline; None: there is
        none. First those that meet it, each a rank of its own; then one rank of those that nothing is known of, as a
        replica that has just started; last those that would miss it, of which the replica itself may refuse the
        request. Those that meet it, or miss it, beyond RANKS_MAX share a rank. If nothing is known of any, one rank of
        two random ones is Serve's power of two choices.
        """
        met: list[tuple[float, str]] = []
        late: list[tuple[float, str]] = []
        unknown: list[str] = []
        for replica, ongoing in replicas.items():
            latency_ms = self.latency_ms(replica, ongoing, now_s)
            if latency_ms is None:
                unknown.append(replica)
            elif within_ms is not None and latency_ms + self._reports[replica].spread_ms > within_ms:
                late.append((latency_ms, replica))
            else:
                met.append((latency_ms, replica))
        self._shuffle(unknown)
        if not met and not late:
            return [unknown[:2]] if unknown else []
        ranks = self._by_latency(met)
        if unknown:
            ranks.append(unknown)
        return ranks + self._by_latency(late)

    def _by_latency(self, replicas: list[tuple[float, str]]) -> list[list[str]]:
        """The least first; those that are as good as the least come in a random order."""
        if not replicas:
            return []
        replicas.sort()
        limit = replicas[0][0] * (1 + self._tie)
        equal = [name for latency, name in replicas if latency <= limit]
        self._shuffle(equal)
        names = equal + [name for latency, name in replicas if latency > limit]
        ranks = [[name] for name in names[:RANKS_MAX]]
        return [*ranks, names[RANKS_MAX:]] if names[RANKS_MAX:] else ranks


def milliseconds_left(within_s: object, default_ms: float, elapsed_s: float) -> float | None:
    """What is left of a request's time. within_s: what its caller allows, in seconds; else the deployment's default.

    None: neither states a deadline. Text of HTTP or a wrong type is as none stated.
    """
    allowed_ms = default_ms
    if isinstance(within_s, (int, float)) and not isinstance(within_s, bool) and within_s > 0:
        allowed_ms = within_s * 1e3
    return allowed_ms - elapsed_s * 1e3 if allowed_ms > 0 else None


def replicas_for(used: Sequence[float], target: float, at_least: int, at_most: int) -> int:
    """How many replicas a service needs. used: of each replica the share of its admitted load that is used, 0 to 1.

    The sum is spread so that each uses `target`. A replica goes only when the rest stays a tenth below the target, so
    that the number does not swing.
    """
    if not used:
        return max(at_least, min(1, at_most))
    total, now = sum(used), len(used)
    # Not more than twice at once: the load of a new replica is unknown until it is there.
    wanted = min(_ceil(total / target), now * 2)
    if wanted < now:
        wanted = min(max(wanted, _ceil(total / (target * 0.9))), now)
    return min(max(wanted, at_least), at_most)


def _ceil(number: float) -> int:
    return -int(-(number - 1e-9) // 1)
