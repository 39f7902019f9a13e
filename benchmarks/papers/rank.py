#!/usr/bin/env python3
"""Does the simulator rank the policies as a GPU does?

  rank.py SIMULATED.json MEASURED.json [SIMULATED.json MEASURED.json...] [--margin 0.01] [--tolerance 0.05] [--json OUT]

SIMULATED.json is the result.json of `gpushare colocate --device sim` with the same scenario and number of queries.
MEASURED.json has a GPU's rows (benchmarks/results/h200_*.json): case, policy, p99_over_alone, BE's rate and, where
there is a target, the number of late queries. Of a case that was measured in several runs each run counts.
Exit code 2: a file has no row that its partner has.

A pair (a case of a run) ranks the same when both have the same policies that keep the target or bound, in the same
order by BE. Two policies whose BE differs by at most --margin have no order. A row of adaptive is near when its p99
over alone and its BE are both within --tolerance of the measured ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import pathlib
import sys
from typing import Any

from tables import markdown, read

LATE_SHARE_MAX = 0.01  # of the queries: a target on p99
REFERENCES = ('lc_alone', 'library_alone', 'be_alone')


@dataclasses.dataclass(frozen=True)
class Figure:
    p99: float  # over alone
    be: float
    kept: bool


Ranking = dict[str, Figure]  # by policy
Key = tuple[str, str]  # run, case


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a case asks of its LC apps."""
    p99_bound: float
    queries: int


def simulated(result: dict[str, Any]) -> tuple[dict[str, Ranking], dict[str, Limits]]:
    """By case: its figures and its limits, of the first LC app."""
    rankings: dict[str, Ranking] = {}
    limits: dict[str, Limits] = {}
    for run in result['runs']:
        if run['policy'] in REFERENCES:
            continue
        app = run['lc'][0]
        be = sum(one['rate_of_solo'] for one in run['be'])
        rankings.setdefault(run['case'], {})[run['policy']] = Figure(app['p99_over_alone'], be, app['qos_met'])
        limits[run['case']] = Limits(app['p99_bound'], app['queries'])
    return rankings, limits


def adaptive_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of h200_unmet_neighbours.json, which has three profiles of one policy: that of the committed profile."""
    if 'measured' not in row:
        return row
    found = row['measured']
    return {'case': row['case'], 'policy': 'adaptive', 'p99_over_alone': found['p99_over_alone'],
            'be': found['be_of_alone']}


def measured(rows: list[dict[str, Any]], limits: dict[str, Limits]) -> dict[Key, Ranking]:
    """By run and case. Rows of cases that were not simulated are left out."""
    rankings: dict[Key, Ranking] = {}
    for found in rows:
        row = adaptive_row(found)
        if row['policy'] in REFERENCES or row['case'] not in limits:
            continue
        limit = limits[row['case']]
        if limit.p99_bound > 0:
            kept = row['p99_over_alone'] <= limit.p99_bound
        else:
            kept = row['violations'] <= LATE_SHARE_MAX * limit.queries
        be = row['be'] if 'be' in row else row['be_rate_of_solo']
        key = row.get('run', ''), row['case']
        rankings.setdefault(key, {})[row['policy']] = Figure(row['p99_over_alone'], be, kept)
    return rankings


def order(ranking: Ranking, policies: set[str]) -> list[str]:
    """The policies that keep their limit, the most BE first."""
    return sorted((name for name in policies if ranking[name].kept), key=lambda name: -ranking[name].be)


def same_order(left: Ranking, right: Ranking, policies: set[str], margin: float) -> bool:
    """Whether both keep the limit under the same policies, and no two of these change places."""
    kept = order(left, policies)
    if set(kept) != set(order(right, policies)):
        return False
    return all(_agree(left[a].be - left[b].be, right[a].be - right[b].be, margin)
               for a, b in itertools.combinations(kept, 2))


def _agree(left: float, right: float, margin: float) -> bool:
    return min(abs(left), abs(right)) <= margin or (left > 0) == (right > 0)


def near(left: Figure, right: Figure, tolerance: float) -> bool:
    return abs(left.p99 - right.p99) <= tolerance and abs(left.be - right.be) <= tolerance


def named(ranking: Ranking, policies: set[str]) -> str:
    return ' > '.join(f'{name} {ranking[name].be:.2f}' for name in order(ranking, policies)) or 'none keeps it'


@dataclasses.dataclass
class Comparison:
    ranks: list[list[str]]  # the pairs that two policies or more ran in: scenario, case, measured, simulated, same
    rows: list[list[str]]  # adaptive's: scenario, case, p99 and BE, each measured and simulated, near


def compare(scenario: str, sim: dict[str, Ranking], gpu: dict[Key, Ranking], margin: float, tolerance: float
            ) -> Comparison:
    found = Comparison([], [])
    for (run, case), ranking in gpu.items():
        both = set(ranking) & set(sim[case])
        name = f'{case}, {run}' if run else case
        if len(both) > 1:
            same = same_order(ranking, sim[case], both, margin)
            found.ranks.append([scenario, name, named(ranking, both), named(sim[case], both), 'yes' if same else 'no'])
        if 'adaptive' in both:
            one, other = ranking['adaptive'], sim[case]['adaptive']
            found.rows.append([scenario, name, f'{one.p99:.3f}', f'{other.p99:.3f}', f'{one.be:.3f}',
                               f'{other.be:.3f}', 'yes' if near(one, other, tolerance) else 'no'])
    return found


RANK_HEADER = ['scenario', 'case', 'on the GPU', 'simulated', 'same']
ROW_HEADER = ['scenario', 'case', 'p99 over alone', 'simulated', 'BE', 'simulated', 'near']


def share(lines: list[list[str]], what: str) -> str:
    hits = sum(line[-1] == 'yes' for line in lines)
    return f'{what}: {hits} of {len(lines)} ({hits / len(lines):.0%})'


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='+')
    parser.add_argument('--margin', type=float, default=0.01)
    parser.add_argument('--tolerance', type=float, default=0.05)
    parser.add_argument('--json')
    given = parser.parse_args(arguments)
    if len(given.files) % 2 != 0:
        parser.error('Files come in pairs: what was simulated, and what a GPU measured.')
    whole = Comparison([], [])
    for simulated_path, measured_path in zip(given.files[::2], given.files[1::2], strict=True):
        result = read(simulated_path)
        sim, limits = simulated(result)
        gpu = measured(read(measured_path)['rows'], limits)
        if not gpu:
            print(f"'{measured_path}' has no case and policy of '{simulated_path}'.", file=sys.stderr)
            return 2
        found = compare(result['scenario'], sim, gpu, given.margin, given.tolerance)
        whole.ranks += found.ranks
        whole.rows += found.rows
    for header, lines, what in ((RANK_HEADER, whole.ranks, 'pairs ranked the same'),
                                (ROW_HEADER, whole.rows, f'rows of adaptive within {given.tolerance}')):
        if lines:
            print(markdown([header, *lines]), share(lines, what), sep='\n\n', end='\n\n')
    if given.json:
        pathlib.Path(given.json).write_text(comparison_text(whole), encoding='utf-8')
    return 0


def comparison_text(found: Comparison) -> str:
    parts = []
    for name, header, lines in (('pairs', RANK_HEADER, found.ranks), ('adaptive', ROW_HEADER, found.rows)):
        rows = ',\n'.join(json.dumps(line) for line in [header, *lines])
        parts.append(f'"{name}": [\n{rows}\n]')
    return '{' + ', '.join(parts) + '}\n'


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
