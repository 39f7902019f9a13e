#!/usr/bin/env python3
"""Tables, means and a plot of the matrix's rows.

  summary.py ROWS.jsonl... [--out TABLES.md] [--json SUMMARY.json] [--svg PLOT.svg]

Of several lines of one row under one policy the last counts. Files with several settings are refused. Rows with
baselines also give a table and PLOT-LOAD-today.svg, as today.py does.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Iterable
from typing import Any

import today
from finished import read
from matrix_plan import ALONE, BOUND, KERNELS, PEAK, PROGRAMS, SERVICES, TRAININGS
from paired import geometric_mean, interval, mean

ABOVE = (BOUND, 1.10)  # the bounds of the goals
COMPARED = (('adaptive', 'baymax'), ('tacker', 'baymax'))
Condition = dict[str, Any]


def conditions(lines: Iterable[dict[str, Any]]) -> list[Condition]:
    """One record for each service, program, load and policy, in the order of the plan."""
    found: dict[tuple[str, str, str, str], Condition] = {}
    for line in lines:
        for policy, figures in line.get('conditions', {}).items():
            found[line['service'], line['be'], line['load'], policy] = {
                'service': line['service'], 'be_name': line['be'], 'load_name': line['load'], 'policy': policy,
                'target_us': line['target_us'], 'solo_us': line['solo_us'],
                'kept': figures['p99_us'] <= line['target_us'], **figures}
    return sorted(found.values(), key=lambda one: (one['load_name'], _at(SERVICES, one['service']),
                                                   _at(PROGRAMS, one['be_name']), one['policy']))


def _at(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else -1


def failures(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that failed and were not measured by a later line."""
    left: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line in lines:
        key = line['service'], line['be'], line['load']
        if 'failed' in line:
            left[key] = line
        else:
            left.pop(key, None)
    return list(left.values())


def beside(records: Iterable[Condition], load: str, policy: str, programs: tuple[str, ...] = PROGRAMS
           ) -> list[Condition]:
    return [one for one in records
            if (one['load_name'], one['policy']) == (load, policy) and one['be_name'] in programs]


def of_policy(records: list[Condition], load: str, policy: str) -> dict[str, Any]:
    """Means over the pairs of a load and a policy; shares of the pairs within each limit."""
    pairs = beside(records, load, policy)
    result: dict[str, Any] = {'load': load, 'policy': policy, 'pairs': len(pairs)}
    if not pairs:
        return result
    ratios, rates = [one['p99_over_alone'] for one in pairs], [one['be'] for one in pairs]
    result.update(p99_over_alone=round(mean(ratios), 4), p99_over_alone_max=max(ratios), be=round(mean(rates), 4),
                  be_95=[round(one, 4) for one in interval(rates)], kept=round(mean([one['kept'] for one in pairs]), 4))
    for limit in ABOVE:
        result[f'within_{limit:.2f}'] = round(mean([ratio <= limit for ratio in ratios]), 4)
    for name, programs in (('kernels', KERNELS), ('trainings', TRAININGS)):
        some = [one['be'] for one in beside(records, load, policy, programs)]
        if some:
            result[f'be_{name}'] = round(mean(some), 4)
    return result


def over(records: list[Condition], load: str, policy: str, other: str) -> dict[str, Any]:
    """BE of one policy over another's on the pairs that both ran: geometric mean and its paired interval.

    A pair where a policy ran nothing has no ratio; such pairs are counted.
    """
    left = {(one['service'], one['be_name']): one for one in beside(records, load, policy)}
    right = {(one['service'], one['be_name']): one for one in beside(records, load, other)}
    both = sorted(left.keys() & right.keys())
    ratios = [left[pair]['be'] / right[pair]['be'] for pair in both if left[pair]['be'] > 0 and right[pair]['be'] > 0]
    result: dict[str, Any] = {'load': load, 'policy': policy, 'over': other, 'pairs': len(both),
                              'without_ratio': len(both) - len(ratios)}
    if ratios:
        result.update(geometric_mean=round(geometric_mean(ratios), 4),
                      geometric_mean_95=[round(one, 4) for one in interval(ratios, geometric_mean)],
                      least=round(min(ratios), 4), most=round(max(ratios), 4))
    return result


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    records = conditions(lines)
    loads = sorted({one['load_name'] for one in records})
    policies = sorted({one['policy'] for one in records})
    cells = [of_policy(records, load, policy) for load in loads for policy in policies]
    ratios = [over(records, load, *names) for load in loads for names in COMPARED]
    beside_today = {load: today.summary_of(today.pairs_of_rows(lines, load)) for load in loads}
    return {'setting': lines[0]['setting'] if lines else {},
            'gpu': sorted({line['gpu'] for line in lines if 'gpu' in line}),
            'policies': [cell for cell in cells if cell['pairs']], 'ratios': [one for one in ratios if one['pairs']],
            'today': {load: found for load, found in beside_today.items() if found},
            'failed': [{key: line[key] for key in ('service', 'be', 'load', 'failed')} for line in failures(lines)]}


# --- text ----------------------------------------------------------------------------------------


def markdown(lines: list[dict[str, Any]]) -> str:
    found, records = summary(lines), conditions(lines)
    text = ['| load, policy | pairs | p99 over alone, mean (most) | within 1.05, 1.10 | target kept '
            '| BE of solo, mean (95 %) | kernels, training |', '| --- | --- | --- | --- | --- | --- | --- |']
    for one in found['policies']:
        kept = f"{one['kept']:.2f}" if one['load'] == PEAK else '-'
        parts = [f"{one[name]:.3f}" if name in one else '-' for name in ('be_kernels', 'be_trainings')]
        text.append(
            f"| {one['load']}, {one['policy']} | {one['pairs']} | {one['p99_over_alone']:.3f} "
            f"({one['p99_over_alone_max']:.3f}) | {one['within_1.05']:.2f}, {one['within_1.10']:.2f} "
            f"| {kept} | {one['be']:.3f} ({one['be_95'][0]:.3f} to {one['be_95'][1]:.3f}) "
            f"| {', '.join(parts)} |")
    if found['ratios']:
        text += ['', '| BE of one policy over another | pairs | geometric mean (95 %) | least, most |',
                 '| --- | --- | --- | --- |']
    for one in found['ratios']:
        if 'geometric_mean' not in one:
            text.append(f"| {one['load']}: {one['policy']} over {one['over']} | {one['pairs']} | - | - |")
            continue
        without = f", {one['without_ratio']} without BE" if one['without_ratio'] else ''
        text.append(f"| {one['load']}: {one['policy']} over {one['over']} | {one['pairs']}{without} "
                    f"| {one['geometric_mean']:.3f} ({one['geometric_mean_95'][0]:.3f} to "
                    f"{one['geometric_mean_95'][1]:.3f}) | {one['least']:.3f}, {one['most']:.3f} |")
    for load in found['today']:
        text += ['', f'Beside what users do today, load {load}:', '', *today.table(today.pairs_of_rows(lines, load))]
    text += ['', '| load | LC | BE | policy | p99 over alone (95 %) | p50 over alone | BE of solo |',
             '| --- | --- | --- | --- | --- | --- | --- |']
    for one in records:
        low, high = one['p99_over_alone_95']
        missed = '' if one['kept'] or one['load_name'] != PEAK else ', target missed'
        be = f"{one['be']:.3f}" if one['be_name'] != ALONE else '-'
        text.append(f"| {one['load_name']} | {one['service']} | {one['be_name'] or 'none'} | {one['policy']} "
                    f"| {one['p99_over_alone']:.3f} ({low:.3f} to {high:.3f}){missed} "
                    f"| {one['p50_over_alone']:.3f} | {be} |")
    text += [f"- failed: {one['service']} beside {one['be'] or 'nothing'}, {one['load']}: {one['failed']}"
             for one in found['failed']]
    text += [f"- cannot run: {line['service']} beside {line['be']}, {line['load']}, {name}: {why}"
             for line in lines for name, why in line.get('absent', {}).items()]
    return '\n'.join(text) + '\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='+', type=pathlib.Path)
    parser.add_argument('--out', type=pathlib.Path, help='default: standard output')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--svg', type=pathlib.Path, help='a plot for each load: PLOT-LOAD.svg')
    arguments = parser.parse_args()
    lines = [line for path in arguments.rows for line in read(path)]
    settings = {json.dumps(line['setting'], sort_keys=True) for line in lines}
    if len(settings) != 1:
        print(f'The files have rows of {len(settings)} settings, and a summary is of one.', file=sys.stderr)
        return 2
    text = markdown(lines)
    if arguments.out:
        arguments.out.write_text(text, encoding='utf-8')
    else:
        print(text, end='')
    if arguments.json:
        arguments.json.write_text(json.dumps(summary(lines), indent=1) + '\n', encoding='utf-8')
    if arguments.svg:
        gpus = ', '.join(sorted({line['gpu'] for line in lines if 'gpu' in line}))
        for load in sorted({line['load'] for line in lines}):
            for name, pairs_of in ((load, today.all_pairs), (f'{load}-today', today.pairs_of_rows)):
                pairs = pairs_of(lines, load)
                if pairs:
                    path = arguments.svg.with_name(f'{arguments.svg.stem}-{name}{arguments.svg.suffix}')
                    path.write_text(today.plot(pairs, gpus, load), encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
