#!/usr/bin/env python3
"""Tables of a `gpushare colocate` result: speed-up, ANTT and STP, waits, shares by weight.

  tables.py RESULT.json [--cases PATTERN] [--json ROWS.json --command COMMAND]
             [--over POLICY | --cells FIELD | --shares SCENARIO.json]

RESULT.json is what `gpushare colocate` writes, or the rows that --json wrote from it. Without a choice the table has
one line for each policy.

  --over POLICY    adds how much faster LC queries are on the mean than under POLICY, the share of the ceiling, ANTT and
                   STP (SMGuard eq. 9-10). The ceiling is LC alone: no policy makes LC faster than that
  --cells FIELD    a line for each case, a column for each policy: p99 (over alone), wait (p99 minus alone, us),
                   late (share of the queries), kept (p99 over its limit), be (of its rate alone, summed)
  --shares FILE    by case and policy: the largest deviation of an app's share of the BE work from its weight's share
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import pathlib
import sys
from collections.abc import Iterable
from typing import Any

ALONE = 'lc_alone'
LEFT_OUT = ('library_alone', 'be_alone')
FIELDS = ('p99', 'wait', 'late', 'kept', 'be')
Row = dict[str, Any]


def rows_of(result: dict[str, Any]) -> list[Row]:
    """The rows of a result.json, rounded and without what no table here needs; rows stay as they are."""
    if 'rows' in result:
        return list(result['rows'])
    return [_row(run) for run in result['runs'] if run['policy'] not in LEFT_OUT]


def _row(run: dict[str, Any]) -> Row:
    row: Row = {'case': run['case'], 'policy': run['policy'], 'lc': [_app(app) for app in run['lc']]}
    if run['policy'] != ALONE:
        row['be'] = {app['app']: round(app['rate_of_solo'], 5) for app in run['be']}
        row['antt'], row['stp'] = round(run['antt'], 3), round(run['stp'], 3)
        row['limit'] = round(run['time_sharing_limit'], 3)
    return row


def _app(app: dict[str, Any]) -> Row:
    return {'app': app['app'], 'queries': app['queries'], 'p50_us': round(app['p50_ns'] / 1000, 1),
            'p99_us': round(app['p99_ns'] / 1000, 1), 'mean_us': round(app['mean_ns'] / 1000, 1),
            'p99_over_alone': round(app['p99_over_alone'], 4), 'qos_us': round(app['qos_ns'] / 1000, 1),
            'late': round(app['violation_share'], 4), 'kept': app['qos_met']}


def of_cases(rows: Iterable[Row], pattern: str) -> list[Row]:
    return [row for row in rows if fnmatch.fnmatchcase(row['case'], pattern)]


def policies_of(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row['policy'] for row in rows if row['policy'] != ALONE))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def speed_ups(rows: Iterable[Row], over: str) -> dict[str, list[float]]:
    """By policy, for each case: the mean LC latency under `over` over that under the policy, a mean over LC apps.

    Of ALONE it is the ceiling. Only cases that have a row of `over` count.
    """
    rows = list(rows)
    latency = {(row['case'], row['policy'], app['app']): app['mean_us'] for row in rows for app in row['lc']}
    found: dict[str, list[float]] = {}
    for row in rows:
        ratios = [latency[row['case'], over, app['app']] / app['mean_us'] for app in row['lc']
                  if (row['case'], over, app['app']) in latency]
        if ratios:
            found.setdefault(row['policy'], []).append(mean(ratios))
    return found


def share_of_ceiling(faster: dict[str, list[float]], policy: str) -> float | None:
    """The mean speed-up under the policy over the mean that LC alone has; None where rows are missing."""
    if policy not in faster or len(faster[policy]) != len(faster.get(ALONE, [])):
        return None
    return mean(faster[policy]) / mean(faster[ALONE])


def by_policy(rows: list[Row], over: str | None = None) -> list[list[str]]:
    header = ['policy', 'cases', 'target or bound kept', 'worst p99 over alone', 'BE, mean']
    if over:
        header += [f'LC faster than {over}: mean, most', 'of the ceiling', 'ANTT: mean, most', 'STP: mean, least']
    table = [header]
    faster = speed_ups(rows, over) if over else {}
    if ALONE in faster:
        ceiling = faster[ALONE]
        table.append([f'{ALONE}, the ceiling', str(len(ceiling)), '-', '1', '-',
                      f'{mean(ceiling):.2f}, {max(ceiling):.1f}', '1', '-', '-'])
    for policy in policies_of(rows):
        own = [row for row in rows if row['policy'] == policy]
        kept = sum(all(app['kept'] for app in row['lc']) for row in own)
        line = [policy, str(len(own)), str(kept), f"{max(a['p99_over_alone'] for row in own for a in row['lc']):.3g}",
                f"{mean([sum(row['be'].values()) for row in own]):.3f}"]
        if over:
            share = share_of_ceiling(faster, policy)
            line += [f'{mean(faster[policy]):.2f}, {max(faster[policy]):.1f}' if policy in faster else '-',
                     '-' if share is None else f'{share:.2f}',
                     f"{mean([r['antt'] for r in own]):.2f}, {max(r['antt'] for r in own):.2f}",
                     f"{mean([r['stp'] for r in own]):.2f}, {min(r['stp'] for r in own):.2f}"]
        table.append(line)
    return table


def cell(row: Row, field: str, alone: dict[tuple[str, str], float]) -> str:
    """The worst of the row's LC apps; BE summed."""
    if field == 'be':
        return f"{sum(row['be'].values()):.2f}"
    if field == 'wait':
        return f"{max(app['p99_us'] - alone[row['case'], app['app']] for app in row['lc']):+.0f}"
    if field == 'late':
        return f"{max(app['late'] for app in row['lc']):.1%}"
    if field == 'kept':
        return f"{max(app['p99_us'] / app['qos_us'] for app in row['lc']):.2f}"
    return f"{max(app['p99_over_alone'] for app in row['lc']):.3f}"


def by_case(rows: list[Row], field: str) -> list[list[str]]:
    alone = {(row['case'], app['app']): app['p99_us'] for row in rows if row['policy'] == ALONE for app in row['lc']}
    policies = policies_of(rows)
    table = [['case', *policies]]
    for case in dict.fromkeys(row['case'] for row in rows):
        own = {row['policy']: row for row in rows if row['case'] == case}
        table.append([case] + [cell(own[name], field, alone) if name in own else '-' for name in policies])
    return table


def deviations(row: Row, weights: dict[str, float]) -> dict[str, float]:
    """By BE app: its share of the row's BE work over its weight's share, minus 1."""
    work = sum(row['be'].values())
    whole = sum(weights.get(app, 1) for app in row['be'])
    return {app: (rate / work) / (weights.get(app, 1) / whole) - 1 for app, rate in row['be'].items()}


def by_share(rows: list[Row], weights: dict[str, float]) -> list[list[str]]:
    table = [['case', 'policy', 'BE', 'largest deviation from the weight', 'of']]
    for row in rows:
        if row['policy'] == ALONE or sum(row['be'].values()) == 0:
            continue
        found = deviations(row, weights)
        app = max(found, key=lambda name: abs(found[name]))
        table.append([row['case'], row['policy'], f"{sum(row['be'].values()):.3f}", f'{found[app]:+.1%}', app])
    return table


def weights_of(scenario: dict[str, Any]) -> dict[str, float]:
    return {app['name']: app.get('weight', 1) for app in scenario['be']}


def markdown(table: list[list[str]]) -> str:
    lines = [f'| {" | ".join(line)} |' for line in table]
    return '\n'.join([lines[0], '| ' + ' | '.join('---' for _ in table[0]) + ' |', *lines[1:]])


def rows_text(result: dict[str, Any], rows: list[Row], command: str) -> str:
    """What --json writes: one row a line, so that a change of a row is a change of a line."""
    head = {'scenario': result['scenario'], 'simulated': result['simulated'], 'seed': result['seed'],
            'profile': result['manifest']['profile'], 'command': command}
    text = json.dumps(head)[1:-1]
    return '{' + text + ', "rows": [\n' + ',\n'.join(json.dumps(row) for row in rows) + '\n]}\n'


def read(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pathlib.Path(path).read_text(encoding='utf-8'))
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('result')
    parser.add_argument('--cases', default='*')
    parser.add_argument('--json')
    parser.add_argument('--command', default='')
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument('--over')
    choice.add_argument('--cells', choices=FIELDS)
    choice.add_argument('--shares')
    given = parser.parse_args(arguments)
    result = read(given.result)
    rows = of_cases(rows_of(result), given.cases)
    if not policies_of(rows):
        print(f"'{given.result}' has no row of a policy in a case like '{given.cases}'.", file=sys.stderr)
        return 2
    if given.json:
        pathlib.Path(given.json).write_text(rows_text(result, rows, given.command), encoding='utf-8')
    if given.shares:
        table = by_share(rows, weights_of(read(given.shares)))
    else:
        table = by_case(rows, given.cells) if given.cells else by_policy(rows, given.over)
    print(markdown(table))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
