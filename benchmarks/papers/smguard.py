#!/usr/bin/env python3
"""Three experiments of SMGuard 6 as scenarios of `gpushare colocate`, and the tables of two of them.

  smguard.py one_ms > one_ms.json        6.1: the query comes 1 ms after the BE kernels
  smguard.py reserved > reserved.json    6.2.2, fig. 11: random queries, over the number of reserved CapSMs
  smguard.py evicted > evicted.json      6.3.2, fig. 16: CapSMs are taken from a BE kernel in its middle
  smguard.py curve RESULT.json           fig. 11: mean latency over that alone, by pair
  smguard.py remapped RESULT.json        fig. 16: time of the kernel over its time alone, by kernel

Kernels and sizes are those of papers_smguard.json. The paper's GPU has 13 SMs; here each of its CapSMs is 132 / 13.
`tables.py --over bare` (on a GPU `--over plain_streams`) makes the table of the first one.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = ROOT / 'examples' / 'scenarios' / 'papers_smguard.json'
LC = ('nn', 'pathfinder', 'vector_add', 'bfs')
SM_COUNT, PAPERS_SMS = 132, 13
# Kernels of the BE app that are submitted at once: the one that runs, and how many MPS had behind it.
AHEAD = (1, 2)
# Fig. 11 has 'several pairs': BE kernels with short, long and very long block tasks.
CURVE_BE = ('md5', 'lava_md', 'sgemm')
EVICTED = (2, 4, 6, 8, 10)  # of 13
# Their time alone on a simulated H200, ms: CapSMs are taken after half of it.
SOLO_MS = {'particle_filter': 3.27, 'myocyte': 2.01, 'lava_md': 5.26, 'sgemm': 4.09, 'black_scholes': 13.5, 'md5': 39.1}
# Alone 9 us: what asks for the CapSMs.
SHORT = {'kernel': 'softmax', 'block_tasks': 216}
Json = dict[str, Any]


def capsms(of_13: int) -> int:
    return round(of_13 * SM_COUNT / PAPERS_SMS)


def apps(names: tuple[str, ...], kind: str) -> list[Json]:
    given: Json = json.loads(SCENARIO.read_text(encoding='utf-8'))
    return [app for name in names for app in given[kind] if app['name'] == name]


def scenario(name: str, description: str, policies: list[str], **parts: Any) -> Json:
    return {'schema_version': 1, 'name': name, 'description': description, 'profile': str(ROOT / 'profiles/h200.json'),
            'seed': 1, 'be_alone_ns': 500_000_000, 'policies': policies, 'reservation_policies': ['smguard'], **parts}


def one_ms() -> Json:
    lc = apps(LC, 'lc')
    for app in lc:
        app['arrivals'] = {'type': 'after_be', 'after_ns': 1_000_000, 'pause_ns': 10_000_000}
    be = [app | {'name': f"{app['name']}_x{ahead}", 'queues': ahead, 'depth': 1}
          for ahead in AHEAD for app in apps(tuple(SOLO_MS), 'be')]
    cases = [{'name': f'{query}-{app["name"]}', 'lc': [query], 'be': [app['name']]} for app in be for query in LC]
    return scenario('papers_smguard_1ms', 'SMGuard 6.1: the LC kernel comes 1 ms after one BE kernel or two.',
                    ['bare', 'priority', 'smguard', 'smguard:active', 'smguard:packed', 'adaptive', 'plain_streams',
                     'plain_priority'],
                    queries=20, lc=lc, be=be, cases=cases)


def reserved() -> Json:
    lc = [app | {'name': f"{app['name']}_{of_13}", 'reserve_capsms': capsms(of_13)}
          for app in apps(LC, 'lc') for of_13 in range(1, PAPERS_SMS)]
    for app in lc:
        del app['p99_bound']
    cases = [{'name': f"{app['name']}-{be}", 'lc': [app['name']], 'be': [be]} for app in lc for be in CURVE_BE]
    return scenario('papers_smguard_reserved', 'SMGuard 6.2.2: random queries, over the number of reserved CapSMs.',
                    ['smguard'], queries=100, lc=lc, be=apps(CURVE_BE, 'be'), cases=cases)


def evicted() -> Json:
    lc = [{'name': f'{be}_{of_13}', **SHORT, 'reserve_capsms': capsms(of_13),
           'arrivals': {'type': 'after_be', 'after_ns': round(solo_ms * 5e5), 'pause_ns': 5_000_000}}
          for be, solo_ms in SOLO_MS.items() for of_13 in EVICTED]
    be = [app | {'depth': 1} for app in apps(tuple(SOLO_MS), 'be')]
    cases = [{'name': f'{name}-{of_13}', 'lc': [f'{name}_{of_13}'], 'be': [name]}
             for name in SOLO_MS for of_13 in EVICTED]
    return scenario('papers_smguard_evicted', 'SMGuard 6.3.2: CapSMs are taken from a kernel in its middle.',
                    ['smguard:active'], queries=20, lc=lc, be=be, cases=cases)


def runs_of(path: str, policy: str) -> dict[str, Json]:
    result: Json = json.loads(pathlib.Path(path).read_text(encoding='utf-8'))
    rows = result['rows'] if 'rows' in result else result['runs']
    return {row['case']: row for row in rows if row['policy'] == policy}


def slowdown_of(row: Json, alone: Json) -> float:
    key = 'mean_us' if 'mean_us' in row['lc'][0] else 'mean_ns'
    return float(row['lc'][0][key]) / float(alone['lc'][0][key])


def rate_of(row: Json) -> float:
    """Of its rate alone, the row's only BE app."""
    be = row['be']
    return float(next(iter(be.values())) if isinstance(be, dict) else be[0]['rate_of_solo'])


def curve(path: str) -> list[list[str]]:
    runs, alone = runs_of(path, 'smguard'), runs_of(path, 'lc_alone')
    table = [['LC beside', *(f'{of_13}' for of_13 in range(1, PAPERS_SMS))]]
    for be in CURVE_BE:
        for query in LC:
            names = [f'{query}_{of_13}-{be}' for of_13 in range(1, PAPERS_SMS)]
            cells = [f'{slowdown_of(runs[name], alone[name]):.2f}' if name in runs else '-' for name in names]
            table.append([f'{query}, {be}', *cells])
    return table


def remapped(path: str) -> list[list[str]]:
    runs = runs_of(path, 'smguard:active')
    table = [['kernel', *(f'{of_13} of 13' for of_13 in EVICTED)]]
    for be in SOLO_MS:
        rows = [runs.get(f'{be}-{of_13}') for of_13 in EVICTED]
        table.append([be, *('-' if row is None else f'{1 / rate_of(row):.2f}' for row in rows)])
    # The first half of the work on all CapSMs, the second on those that are left.
    left = [1 / (1 - capsms(of_13) / SM_COUNT) for of_13 in EVICTED]
    table.append(['in proportion to what is left', *(f'{0.5 + 0.5 * more:.2f}' for more in left)])
    return table


def markdown(table: list[list[str]]) -> str:
    lines = [f'| {" | ".join(line)} |' for line in table]
    return '\n'.join([lines[0], '| ' + ' | '.join('---' for _ in table[0]) + ' |', *lines[1:]])


SCENARIOS = {'one_ms': one_ms, 'reserved': reserved, 'evicted': evicted}
TABLES = {'curve': curve, 'remapped': remapped}


def main(arguments: list[str]) -> int:
    if len(arguments) == 1 and arguments[0] in SCENARIOS:
        print(json.dumps(SCENARIOS[arguments[0]](), indent=1))
        return 0
    if len(arguments) == 2 and arguments[0] in TABLES:
        print(markdown(TABLES[arguments[0]](arguments[1])))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
