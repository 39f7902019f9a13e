#!/usr/bin/env python3
"""Figures 3.4 to 3.6 of the thesis on predictable GPUs: random task sets through the planner.

Runs `gpushare evaluate-planner` in both readings of the serial share and all three analyses, keeps what it prints,
and prints for each way the utilisation at which half of the sets are admitted.

  planner.py --out FOLDER [--command gpushare] [--tasks 50,200] [--sets 100] [--seed 1]
  planner.py --out FOLDER --fold benchmarks/results/simulated_planner.json

The first writes FOLDER/TASKS-SHARE-ANALYSIS.json; a file that is there is not run again. The second makes one file of
all of them, without running anything.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import subprocess

SHARES = ('per-sm', 'printed')
ANALYSES = ('concurrent', 'exclusive', 'evictable')


def half(points, way):
    """Where the rate of `way` falls through one half, as a utilisation by a line between points; None: nowhere."""
    for before, after in itertools.pairwise(points):
        high, low = before['schedulable'][way], after['schedulable'][way]
        if high >= 0.5 > low:
            share = (high - 0.5) / (high - low)
            return before['utilisation'] + share * (after['utilisation'] - before['utilisation'])
    return None


def run(path, command, tasks, share, analysis, sets, seed):
    done = subprocess.run(
        [command, 'evaluate-planner', '--tasks', str(tasks), '--serial-share', share, '--analysis', analysis,
         '--sets', str(sets), '--seed', str(seed), '--json'], check=True, stdout=subprocess.PIPE, text=True)
    path.write_text(done.stdout)


def summary(result):
    """A row for each way: where half of the sets pass, sets that only 1G schedules, mean and largest time."""
    points = result['points']
    rows = []
    for way in points[0]['lost_to_1G']:
        at = half(points, way)
        rows.append((way, '-' if at is None else f'{at:.1f}', sum(point['lost_to_1G'][way] for point in points),
                     max(point['analysis_ms'][way] for point in points)))
    return rows


def one_line_points(results):
    """The JSON text with a line for each point, so that a difference shows what moved."""
    parts = []
    for result in results:
        head = {name: value for name, value in result.items() if name != 'points'}
        points = ',\n'.join('   ' + json.dumps(point) for point in result['points'])
        parts.append(f' {{"head": {json.dumps(head)},\n  "points": [\n{points}]}}')
    return '[\n' + ',\n'.join(parts) + '\n]\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--command', default='gpushare')
    parser.add_argument('--tasks', default='50,200')
    parser.add_argument('--sets', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--fold', type=pathlib.Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results = []
    for tasks in given.tasks.split(','):
        for share in SHARES:
            for analysis in ANALYSES:
                path = given.out / f'{tasks}-{share}-{analysis}.json'
                if given.fold is None and not path.exists():
                    run(path, given.command, tasks, share, analysis, given.sets, given.seed)
                if not path.exists():
                    continue
                results.append(json.loads(path.read_text()))
                print(f'{tasks} tasks, {share}, {analysis}, {results[-1]["sets"]} sets a point')
                for way, at, lost, ms in summary(results[-1]):
                    print(f'  {way:9} half at {at:>5}  lost to 1G {lost:4}  {ms:8.3f} ms a set at most')
    if given.fold is not None:
        given.fold.write_text(one_line_points(results))


if __name__ == '__main__':
    main()
