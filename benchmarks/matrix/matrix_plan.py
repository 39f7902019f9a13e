"""Which rows the matrix has, the most important first. Needs no GPU and no PyTorch.

A row is a service beside one BE program at one load, under policies that take turns on the same arrivals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

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
THREE = ('adaptive', 'baymax', 'tacker')
FOUR = (*THREE, 'priority')
# --short: priority misses every target, and four pairs show it.
WITH_PRIORITY = ('resnext50_b1', 'vgg16_b1', 'densenet121_b1', 'bert_b1')
BEFORE_PEAK = 6  # its rows at 0.5 before the first at the peak, so that a limit cuts no service to 0.5
# About how long a query takes (H200), for each service's share of the time.
QUERY_MS = {'resnet50_b1': 0.5, 'resnext50_b1': 0.85, 'vgg16_b1': 0.45, 'vgg19_b1': 0.5, 'inception_b1': 1.6,
            'densenet121_b1': 1.75, 'bert_b1': 0.8, 'decode_b1': 0.7, 'decode_b16': 0.8, 'prefill_512': 1.6}
# The services of the smoke form, each with its program.
SMOKE = {'vgg16_b1': 'vgg16_b16', 'resnext50_b1': 'densenet121_b16', 'inception_b1': 'inception_b16',
         'densenet121_b1': 'resnet50_b32', 'prefill_512': 'sgemm'}
# All that need no reservation. A row of these is in the full form only.
ALL = ('adaptive', 'adaptive:evict', 'adaptive:partition', 'adaptive:elastic', 'baymax', 'tacker', 'kernelet',
       'kernelet:base', 'priority', 'fifo')
# What users do today, without the library: names of conditions in rows beside those of its policies.
GREEN_SMS = {'green64': 64, 'green96': 96}  # SMs of the service; the step has the others
BASELINES = ('streams', 'priorities', 'gated', *GREEN_SMS)
# p99 of these is far from any bound, and fewer queries show it.
FAR = ('priority', 'fifo', 'bare', 'streams', 'priorities')
FAR_SHARE = 0.4


@dataclasses.dataclass(frozen=True)
class Row:
    service: str
    be: str
    load: str
    policies: tuple[str, ...]


def rows_of(service: str, full: bool) -> list[Row]:
    """The rows of a service. What a limit cuts differs between services: each begins elsewhere."""
    turn = SERVICES.index(service) if service in SERVICES else 0
    kernels, trainings = _rotated(list(KERNELS), turn), _rotated(list(TRAININGS), turn)
    return _full_rows(service, kernels + trainings, turn) if full else _short_rows(service, kernels, trainings, turn)


def _full_rows(service: str, programs: list[str], turn: int) -> list[Row]:
    rows = [Row(service, ALONE, '0.5', ('adaptive',))]
    rows += [Row(service, be, '0.5', ('adaptive',)) for be in programs]
    rows += [Row(service, be, PEAK, FOUR) for be in programs]
    rows += [Row(service, be, '0.3', ('adaptive',)) for be in programs]
    return rows + [Row(service, be, PEAK, ALL) for be in _rotated(list(PROGRAMS), 5 * turn)[:2]]


def _short_rows(service: str, kernels: list[str], trainings: list[str], turn: int) -> list[Row]:
    """At 0.5 beside the kernels and one training (others take seconds to register), with one pair at the peak."""
    first = trainings[0]
    at_peak = [first, *kernels] if turn % 3 == 0 else [*kernels, first]
    peak = [Row(service, be, PEAK, THREE) for be in at_peak + trainings[1:]]
    if service in WITH_PRIORITY:
        peak[0] = dataclasses.replace(peak[0], policies=FOUR)
    rows = [Row(service, be, '0.5', ('adaptive',)) for be in (first, *kernels)]
    rows.insert(BEFORE_PEAK, peak[0])
    rows += [Row(service, trainings[1], '0.5', ('adaptive',)), peak[1]]
    rows += [Row(service, be, '0.5', ('adaptive',)) for be in (ALONE, *trainings[2:])]
    rows += peak[2:]
    return rows + [Row(service, be, '0.3', ('adaptive',)) for be in (first, *kernels, *trainings[1:])]


def share_of(service: str, left: Sequence[str]) -> float:
    """The service's share of the time that is left for it and those after it.

    A service takes about 12 s for its start and its programs' registrations, and its rows last with its queries.
    """
    def weight(name: str) -> float:
        return 12 + 17 * QUERY_MS.get(name, 1.0)

    return weight(service) / sum(weight(name) for name in left)


def smoke_rows(service: str) -> list[Row]:
    """What is most likely to fail: every program, in few services; the policies once, beside the shortest queries."""
    rows = [Row(service, SMOKE.get(service, 'mriq'), '0.5', ('adaptive',))]
    if service == 'vgg16_b1':
        rows.append(Row(service, 'mriq', PEAK, FOUR))
        rows += [Row(service, be, '0.5', ('adaptive',)) for be in KERNELS if be != 'mriq']
    return rows


def today_rows(service: str) -> list[Row]:
    """A kernel, then a training step at 0.5, under adaptive and every baseline. Rotated: ten services have them all.

    The training step comes last: some fail in a green context, and nothing is captured after that.
    """
    turn = SERVICES.index(service) if service in SERVICES else 0
    return [Row(service, _rotated(list(names), turn)[0], '0.5', ('adaptive', *BASELINES))
            for names in (KERNELS, TRAININGS)]


def with_policies(rows: Sequence[Row], policies: Sequence[str]) -> list[Row]:
    """The rows under these policies instead, each once. Without BE there is nothing for a baseline to run."""
    found = []
    for row in rows:
        kept = tuple(name for name in policies if row.be or name not in BASELINES)
        if kept:
            found.append(dataclasses.replace(row, policies=kept))
    return list(dict.fromkeys(found))


def queries_of(policy: str, queries: int) -> int:
    return int(FAR_SHARE * queries) if policy in FAR else queries


def _rotated(names: list[str], turn: int) -> list[str]:
    at = turn % len(names)
    return names[at:] + names[:at]
