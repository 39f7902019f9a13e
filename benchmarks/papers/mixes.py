#!/usr/bin/env python3
"""Do predictions of pairs place well? Twenty mixes of three to five BE apps beside an LC app, predicted and measured.

  mixes.py scenario > mixes.json         the mixes and their pairs, as a scenario of `gpushare colocate`
  mixes.py compare RESULT.json [--json OUT]   predicted against measured, and the placement's regret

Four LC apps have a GPU each, and eighteen BE instances of eight kinds go beside them, at most five a GPU, all at once.
Five placements (assignment, greedy, first-fit, two random ones) are made from pairs that the cost model predicts
(docs/placement.md); each gives four mixes. `compare` predicts the mixes from those pairs and from the pairs as they
were measured, so that the error of the rule for several instances stands apart from that of a pair. The regret is what
the assignment's measured BE rate lacks of the best of the five. GPUSHARE_LIBRARY names the library where the package
has none. No GPU is needed to make the scenario.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import statistics
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tables import markdown

import gpushare
from gpushare.options import PlaceBe, PlaceGpu, PlaceLc, PlacePair

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / 'examples' / 'scenarios'
PROFILE = ROOT / 'profiles' / 'h200.json'
BOUND = 1.05
LOADS = {'chain1': 0.5, 'decode16': 0.4, 'encoder': 0.5, 'decoder': 0.3}
# The last instance of each of the first two kinds is the third.
BE_KINDS = ('mriq', 'fft', 'mrif', 'cutcp', 'cp', 'sgemm', 'lbm', 'tpacf')
INSTANCES = {kind: 3 if kind in BE_KINDS[:2] else 2 for kind in BE_KINDS}
BE_PER_GPU = 5
# A placement is made whatever is predicted of bounds: the scheduler on the GPU has to keep them (Baymax 7.6).
PLACEMENTS: dict[str, dict[str, Any]] = {
    'assignment': {'algorithm': gpushare.PlaceAlgorithm.ASSIGNMENT},
    'greedy': {'algorithm': gpushare.PlaceAlgorithm.GREEDY},
    'first-fit': {'algorithm': gpushare.PlaceAlgorithm.FIRST_FIT},
    'random-1': {'algorithm': gpushare.PlaceAlgorithm.RANDOM, 'seed': 1},
    'random-2': {'algorithm': gpushare.PlaceAlgorithm.RANDOM, 'seed': 2}}
Json = dict[str, Any]
Pairs = dict[tuple[str, str], PlacePair]  # by LC app and BE kind


def apps() -> tuple[list[Json], list[Json]]:
    """The LC apps, and a BE app for each instance."""
    bounds = json.loads((SCENARIOS / 'h200_bounds.json').read_text(encoding='utf-8'))
    decode = json.loads((SCENARIOS / 'h200_gpu.json').read_text(encoding='utf-8'))
    known = {app['name']: app for app in [*decode['lc'], *bounds['lc']]}
    lc = [known[name] | {'p99_bound': BOUND} for name in LOADS]
    kinds = {app['name']: app for app in bounds['be']}
    be = [kinds[kind] | {'name': instance(kind, number)} for kind in BE_KINDS for number in range(INSTANCES[kind])]
    return lc, be


def instance(kind: str, number: int) -> str:
    return kind if number == 0 else f'{kind}_{number + 1}'


def kind_of(name: str) -> str:
    return name.partition('_')[0]


def launches(tasks: list[Json]) -> Iterator[tuple[str, int]]:
    """The kernels of a query in order, with their block tasks."""
    for task in tasks:
        inner = task.get('tasks')
        for _ in range(task.get('repeat', 1)):
            if inner is None:
                yield task['kernel'], task.get('block_tasks', 0)
            else:
                yield from launches(inner)


def predicted_pairs(lc: list[Json], be: list[Json]) -> Pairs:
    with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL, profile_path=str(PROFILE)) as runtime:
        kernels: dict[str, gpushare.Kernel] = {}

        def kernel(name: str) -> gpushare.Kernel:
            if name not in kernels:
                kernels[name] = runtime.register_kernel(name)
            return kernels[name]

        pairs: Pairs = {}
        for app in lc:
            query = [(kernel(name), block_tasks) for name, block_tasks in launches(app.get('tasks', [app]))]
            for other in (one for one in be if one['name'] in BE_KINDS):
                pairs[app['name'], other['name']] = {
                    'lc': app['name'], 'be': other['name']} | runtime.predict_pair(  # type: ignore[assignment]
                        query, (kernel(other['kernel']), other['block_tasks']), LOADS[app['name']], BOUND)
        return pairs


def mixes(pairs: Pairs) -> dict[str, dict[str, list[str]]]:
    """By placement and LC app: the BE instances beside it."""
    gpus: list[PlaceGpu] = [{'name': 'gpu', 'memory_bytes': 100, 'count': len(LOADS)}]
    lc: list[PlaceLc] = [{'name': name, 'kind': name, 'load': load, 'memory_bytes': 1}
                                  for name, load in LOADS.items()]
    be: list[PlaceBe] = [{'name': kind, 'kind': kind, 'memory_bytes': 1, 'instances': count}
                                  for kind, count in INSTANCES.items()]
    found = {}
    for name, options in PLACEMENTS.items():
        placed = gpushare.place(gpus, lc, be, list(pairs.values()), be_per_gpu=BE_PER_GPU, ignore_bounds=True,
                                together=gpushare.PlaceTogether.AT_ONCE, **options)
        at: dict[int | None, list[str]] = collections.defaultdict(list)
        for kind in BE_KINDS:
            for number, gpu in enumerate(placed.gpus[kind]):
                at[gpu].append(instance(kind, number))
        found[name] = {app: at[placed.gpus[app][0]] for app in LOADS}
    return found


def scenario() -> Json:
    lc, be = apps()
    pairs = predicted_pairs(lc, be)
    cases = [{'name': f'pair-{app}-{kind}', 'lc': [app], 'be': [kind], 'load': load}
             for app, load in LOADS.items() for kind in BE_KINDS]
    cases += [{'name': f'{placement}-{app}', 'lc': [app], 'be': beside, 'load': LOADS[app]}
              for placement, gpus in mixes(pairs).items() for app, beside in gpus.items()]
    return {'schema_version': 1, 'name': 'placement_mixes',
            'description': 'Five placements of eighteen BE instances beside four LC apps, and their pairs.',
            'profile': str(PROFILE), 'seed': 1, 'queries': 300, 'be_alone_ns': 100_000_000, 'policies': ['adaptive'],
            'reservation_policies': [], 'lc': lc, 'be': be, 'cases': cases}


# --- comparison ---


def at_once(pairs: Mapping[tuple[str, str], Mapping[str, Any]], app: str, beside: list[str]) -> tuple[float, float]:
    """The rule for several instances at once: what each adds to the p99 added up, and the mean BE rate."""
    rows = [pairs[app, kind_of(name)] for name in beside]
    return 1 + sum(row['p99_ratio'] - 1 for row in rows), statistics.mean(row['be_rate'] for row in rows)


def compare(result: Json) -> Json:
    runs = {run['case']: run for run in result['runs'] if run['policy'] == 'adaptive'}
    lc, be = apps()
    predicted = predicted_pairs(lc, be)
    made = {f'{placement}-{app}': beside for placement, gpus in mixes(predicted).items()
            for app, beside in gpus.items()}
    ran = {case: [one['app'] for one in runs[case]['be']] for case in made}
    if ran != made:
        raise SystemExit('The placements were made from other predictions: compare with the library and the profile '
                         'that made the scenario.')
    measured = {(app, kind): {'p99_ratio': run['lc'][0]['p99_over_alone'], 'be_rate': run['be_rate_of_solo']}
                for app in LOADS for kind in BE_KINDS if (run := runs.get(f'pair-{app}-{kind}')) is not None}
    rows = []
    for placement in PLACEMENTS:
        for app in LOADS:
            run = runs[f'{placement}-{app}']
            beside = [one['app'] for one in run['be']]
            p99, be_rate = at_once(predicted, app, beside)
            row = {'placement': placement, 'lc': app, 'be': beside, 'predicted_p99': p99, 'predicted_be': be_rate,
                   'p99': run['lc'][0]['p99_over_alone'], 'be_rate': run['be_rate_of_solo']}
            if all((app, kind_of(name)) in measured for name in beside):
                row['p99_of_pairs'], row['be_of_pairs'] = at_once(measured, app, beside)
            rows.append(row)
    pair_rows = [{'lc': app, 'be': kind, **values, 'predicted_p99': predicted[app, kind]['p99_ratio'],
                  'p99_error': predicted[app, kind]['p99_error'], 'predicted_be': predicted[app, kind]['be_rate'],
                  'be_error': predicted[app, kind]['be_error']} for (app, kind), values in measured.items()]
    sums = {placement: {'be_rate': sum(row['be_rate'] for row in rows if row['placement'] == placement),
                        'predicted_be': sum(row['predicted_be'] for row in rows if row['placement'] == placement)}
            for placement in PLACEMENTS}
    best = max(one['be_rate'] for one in sums.values())
    return {'device': result['device'], 'simulated': result['simulated'], 'bound': BOUND, 'pairs': pair_rows,
            'mixes': rows, 'placements': sums, 'regret': 1 - sums['assignment']['be_rate'] / best}


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def text(found: Json) -> str:
    mix_rows, pair_rows = found['mixes'], found['pairs']
    table = [[row['placement'], row['lc'], ' '.join(row['be']), f"{row['predicted_p99']:.3f}", f"{row['p99']:.3f}",
              f"{row['predicted_be']:.3f}", f"{row.get('be_of_pairs', float('nan')):.3f}", f"{row['be_rate']:.3f}"]
             for row in mix_rows]
    lines = ['SIMULATED' if found['simulated'] else found['device'], '',
             markdown([['placement', 'LC app', 'BE', 'p99 predicted', 'measured', 'BE predicted', 'from measured pairs',
                        'measured'], *table]), '']
    for name, rows, p99 in (('pairs', pair_rows, 'p99_ratio'), ('mixes', mix_rows, 'p99')):
        over = sum(row[p99] > BOUND for row in rows)
        be_error = statistics.mean(abs(row['predicted_be'] - row['be_rate']) for row in rows)
        lines.append(f'{len(rows)} {name}: {over} with a p99 above {BOUND}; BE rate predicted within {be_error:.3f} on '
                     'the mean.')
    of_pairs = [abs(row['be_of_pairs'] - row['be_rate']) for row in mix_rows if 'be_of_pairs' in row]
    if of_pairs:
        lines.append(f'From measured pairs the mixes are within {statistics.mean(of_pairs):.3f} on the mean and '
                     f'{max(of_pairs):.3f} at most.')
    lines += [f"{name}: BE rate {one['be_rate']:.3f} GPUs, predicted {one['predicted_be']:.3f}"
              for name, one in found['placements'].items()]
    lines.append(f"The assignment's regret is {found['regret']:.4f} of the best of these.")
    return '\n'.join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('action', choices=('scenario', 'compare'))
    parser.add_argument('result', nargs='?', type=pathlib.Path)
    parser.add_argument('--json', type=pathlib.Path)
    options = parser.parse_args()
    if options.action == 'scenario':
        print(json.dumps(scenario(), indent=1))
        return 0
    if options.result is None:
        parser.error('compare needs a RESULT.json')
    found = compare(json.loads(options.result.read_text(encoding='utf-8')))
    print(text(found))
    if options.json:
        options.json.write_text(json.dumps(rounded(found), indent=1) + '\n', encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
