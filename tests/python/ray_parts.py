"""What the tests of gpushare.ray share."""

from gpushare.ray import _ranking
from gpushare.ray._ledger import Held, Ledger, Spec
from gpushare.ray._placement import Room, by_value

MS = 1_000_000


def report(sequence=1, wait_ms=0.0, service_ms=10.0, spread_ms=0.0):
    return {'sequence': sequence, 'wait_ms': wait_ms, 'service_ms': service_ms, 'spread_ms': spread_ms}


def room(replica='r1', **changes):
    return Room(**{'replica': replica, 'lc_kind': 'chat', 'load': 0.3, 'p99_bound': 1.05, 'headroom': 0.5,
                   'jobs_max': 1, **changes})


def ranking(**options):
    return _ranking.Ranking(shuffle=lambda names: names.sort(), **options)


def ledger(place=None, **options):
    book = Ledger(place or by_value(), lease_s=2.0, **options)
    book.submit(Spec('tune', 'lora', b'code'))
    return book


def held(start, **changes):
    return Held(**{'job': start.spec.name, 'lease': start.lease, 'steps': start.steps, 'kind': start.spec.kind,
                   'memory_bytes': start.spec.memory_bytes, **changes})
