#!/usr/bin/env python3
"""The library beside what users do today: a table and a plot. Needs no GPU and no PyTorch.

  today.py FILE... [--load 0.5] [--out TABLE.md] [--svg PLOT.svg]

A FILE is rows of matrix.py or a report of unprepared.py, of which the bound of 1.05 counts. Only pairs that have a
baseline are in it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
from collections.abc import Iterable
from typing import Any

from finished import read
from matrix_plan import BASELINES, BOUND
from paired import mean
from plot import Cloud, scatter

UNPREPARED = {'green 64/68': 'green64', 'green 96/36': 'green96', f'library {BOUND:.2f}': 'adaptive'}
LABELS = {'adaptive': 'gpushare adaptive', 'streams': 'plain streams', 'priorities': 'stream priorities',
          'gated': 'gated by hand', 'green64': 'green contexts, 64 SMs', 'green96': 'green contexts, 96 SMs'}
OURS = ('adaptive',)  # first in the table; other policies of the library follow, then the baselines


@dataclasses.dataclass(frozen=True)
class Pair:
    """A service beside a BE program under one condition."""

    service: str
    be_name: str
    condition: str
    p99_over_alone: float
    be: float


def pairs_of_rows(lines: Iterable[dict[str, Any]], load: str) -> list[Pair]:
    """Those of the matrix's rows at a load that have a baseline."""
    return _compared(all_pairs(lines, load))


def all_pairs(lines: Iterable[dict[str, Any]], load: str) -> list[Pair]:
    """Of the matrix's rows at a load; the last line of a pair and condition counts."""
    found = {}
    for line in lines:
        if line['be'] and line['load'] == load:
            for name, figures in line.get('conditions', {}).items():
                found[line['service'], line['be'], name] = _pair(line['service'], line['be'], name, figures)
    return list(found.values())


def pairs_of_unprepared(report: dict[str, Any], load: str) -> list[Pair]:
    wanted = {**UNPREPARED, **{name: name for name in BASELINES}}
    return _compared([_pair(row['service'], row['step'], wanted[name], figures) for row in report['rows']
                      if float(row['load']) == float(load)
                      for name, figures in row['conditions'].items() if name in wanted])


def _pair(service: str, be_name: str, condition: str, figures: dict[str, Any]) -> Pair:
    return Pair(service, be_name, condition, figures['p99_over_alone'], figures['be'])


def _compared(pairs: list[Pair]) -> list[Pair]:
    """Those whose service and program have a baseline."""
    with_baseline = {(one.service, one.be_name) for one in pairs if one.condition in BASELINES}
    return [one for one in pairs if (one.service, one.be_name) in with_baseline]


def conditions_of(pairs: Iterable[Pair]) -> list[str]:
    """Ours first, then the baselines."""
    names = {one.condition for one in pairs}
    ours = [name for name in OURS if name in names]
    return [*ours, *sorted(names - set(ours) - set(BASELINES)), *[name for name in BASELINES if name in names]]


def summary_of(pairs: list[Pair]) -> list[dict[str, Any]]:
    """Per condition: mean and worst p99 over alone, mean BE, and how many pairs are within the bound."""
    result = []
    for name in conditions_of(pairs):
        some = [one for one in pairs if one.condition == name]
        ratios, shares = [one.p99_over_alone for one in some], [one.be for one in some]
        result.append({'condition': name, 'pairs': len(some), 'p99_over_alone': round(mean(ratios), 4),
                       'p99_over_alone_median': round(statistics.median(ratios), 4),
                       'p99_over_alone_max': max(ratios), 'be': round(mean(shares), 4),
                       f'within_{BOUND:.2f}': sum(ratio <= BOUND for ratio in ratios)})
    return result


def table(pairs: list[Pair]) -> list[str]:
    """Lines of Markdown; none without pairs."""
    if not pairs:
        return []
    text = [f'| condition | p99 over alone: mean, median | worst | BE of solo, mean | pairs within {BOUND:.2f} |',
            '| --- | --- | --- | --- | --- |']
    return text + [
        f"| {LABELS.get(one['condition'], one['condition'])} | {one['p99_over_alone']:.3f}, "
        f"{one['p99_over_alone_median']:.3f} | {one['p99_over_alone_max']:.3f} | {one['be']:.3f} "
        f"| {one[f'within_{BOUND:.2f}']} of {one['pairs']} |" for one in summary_of(pairs)]


def plot(pairs: list[Pair], gpu: str, load: str) -> str:
    """The plot as SVG text. A condition that could not run beside every program says beside how many it ran."""
    every = len({(one.service, one.be_name) for one in pairs})
    clouds = []
    for name in conditions_of(pairs):
        points = [(one.be, one.p99_over_alone) for one in pairs if one.condition == name]
        label = LABELS.get(name, name) + (f' ({len(points)} pairs)' if len(points) < every else '')
        clouds.append(Cloud(name, label, points))
    return scatter(clouds, f'{gpu}, load {load}, {every} pairs of a service and BE work')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='+', type=pathlib.Path)
    parser.add_argument('--load', default='0.5')
    parser.add_argument('--out', type=pathlib.Path, help='default: standard output')
    parser.add_argument('--svg', type=pathlib.Path)
    arguments = parser.parse_args()
    pairs, gpus = list[Pair](), set[str]()
    for path in arguments.files:
        lines = read(path)
        report = {} if lines else json.loads(path.read_text(encoding='utf-8'))
        pairs += pairs_of_rows(lines, arguments.load) if lines else pairs_of_unprepared(report, arguments.load)
        gpus |= {one['gpu'] for one in [*lines, report] if 'gpu' in one}
    if not pairs:
        print(f'The files have no pair with a baseline at load {arguments.load}.', file=sys.stderr)
        return 2
    text = '\n'.join(table(pairs)) + '\n'
    if arguments.out:
        arguments.out.write_text(text, encoding='utf-8')
    else:
        print(text, end='')
    if arguments.svg:
        arguments.svg.write_text(plot(pairs, ', '.join(sorted(gpus)), arguments.load), encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
