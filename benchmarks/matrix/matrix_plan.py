"""Which rows the matrix has, the most important first. Needs no GPU and no PyTorch.

A row is a service beside one BE program at one load, under policies that take turns on the same arrivals.
"""

from __future__ import annotations

import dataclasses

SERVICES = ('resnet50_b1', 'resnext50_b1', 'vgg16_b1', 'vgg19_b1', 'inception_b1', 'densenet121_b1', 'bert_b1',
            'decode_b1', 'decode_b16', 'prefill_512')
# Tacker's twelve (its section VIII-A): eight kernels of Parboil, four training steps.
KERNELS = ('mriq', 'fft', 'mrif', 'cutcp', 'cp', 'sgemm', 'lbm', 'tpacf')
TRAININGS = ('resnet50_b32', 'vgg16_b16', 'inception_b16', 'densenet121_b16')
PROGRAMS = KERNELS + TRAININGS
ALONE = ''  # no BE program: the library's own part in the latencies

PEAK = 'peak80'  # 80 % of the highest load that keeps the absolute target
BOUNDED = {'0.3': 0.3, '0.5': 0.5}  # loads with a bound of 1.05 on p99
BOUND = 1.05
FOUR = ('adaptive', 'baymax', 'tacker', 'priority')
# The services of the smoke form, each with its program.
SMOKE = {'vgg16_b1': 'vgg16_b16', 'resnext50_b1': 'densenet121_b16', 'inception_b1': 'inception_b16',
         'densenet121_b1': 'resnet50_b32', 'prefill_512': 'sgemm'}
# All that need no reservation. A row of these is in the full form only.
ALL = ('adaptive', 'adaptive:evict', 'adaptive:partition', 'adaptive:elastic', 'baymax', 'tacker', 'kernelet',
       'kernelet:base', 'priority', 'fifo')
# p99 of these is far from any bound, and fewer queries show it.
FAR = ('priority', 'fifo', 'bare')
FAR_SHARE = 0.4


@dataclasses.dataclass(frozen=True)
class Row:
    service: str
    be: str
    load: str
    policies: tuple[str, ...]


def rows_of(service: str, full: bool) -> list[Row]:
    """The rows of a service. What a limit cuts differs between services: each begins the rest elsewhere."""
    turn = SERVICES.index(service) if service in SERVICES else 0
    first = ('mriq', 'lbm', 'resnet50_b32')
    others = _rotated([name for name in PROGRAMS if name not in first], turn)
    rows = [Row(service, ALONE, '0.5', ('adaptive',))]
    rows += [Row(service, be, '0.5', ('adaptive',)) for be in first]
    rows += [Row(service, be, PEAK, FOUR) for be in ('mriq', 'lbm')]
    rows += [Row(service, be, '0.5', ('adaptive',)) for be in others]
    rows += [Row(service, be, PEAK, FOUR) for be in ('resnet50_b32', *others)]
    rows += [Row(service, be, '0.3', ('adaptive',)) for be in (*first, *others)]
    if full:
        rows += [Row(service, be, PEAK, ALL) for be in _rotated(list(PROGRAMS), 5 * turn)[:2]]
    return rows


def smoke_rows(service: str) -> list[Row]:
    """What is most likely to fail: every program, in few services; the policies once, beside the shortest queries."""
    rows = [Row(service, SMOKE.get(service, 'mriq'), '0.5', ('adaptive',))]
    if service == 'vgg16_b1':
        rows.append(Row(service, 'mriq', PEAK, FOUR))
        rows += [Row(service, be, '0.5', ('adaptive',)) for be in KERNELS if be != 'mriq']
    return rows


def queries_of(policy: str, queries: int) -> int:
    return int(FAR_SHARE * queries) if policy in FAR else queries


def _rotated(names: list[str], turn: int) -> list[str]:
    at = turn % len(names)
    return names[at:] + names[:at]
