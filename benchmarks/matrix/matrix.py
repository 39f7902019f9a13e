#!/usr/bin/env python3
"""The matrix: LC services beside BE programs under several policies, on the same Poisson arrivals.

  matrix.py --catalogue LIB --out ROWS.jsonl --smoke      every program once, about a minute
  matrix.py --catalogue LIB --out ROWS.jsonl --short      as many rows as 8 minutes have room for
  matrix.py --catalogue LIB --out ROWS.jsonl --today      adaptive beside what users do today, two pairs a service
  matrix.py --catalogue LIB --out ROWS.jsonl              all rows

Rows that are in the file are skipped, if commit, profile and settings are the same: run it again to go on. Each
service has a process of its own and a share of --seconds by the length of its queries; its most important rows come
first. A row that fails is named, and the others go on. Exit code 0: no row failed; 1: one did; 77: there is no GPU or
no PyTorch.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import time
import traceback
from typing import Any

from finished import ROOT, Finished, commit_of, hash_of
from matrix_plan import (
    BASELINES,
    PROGRAMS,
    SERVICES,
    SMOKE,
    Row,
    rows_of,
    share_of,
    smoke_rows,
    today_rows,
    with_policies,
)

FORMS: dict[str, dict[str, float]] = {
    'smoke': {'seconds': 75, 'queries': 600, 'rounds': 1, 'alone_age': 20},
    'short': {'seconds': 470, 'queries': 1000, 'rounds': 1, 'alone_age': 20},
    'today': {'seconds': 560, 'queries': 600, 'rounds': 1, 'alone_age': 20},
    'full': {'seconds': 86400, 'queries': 2400, 'rounds': 2, 'alone_age': 0}}
# Beyond a service's share, until its process is ended. Above the 60 s after which the load driver says what does
# not complete (kDrainNs of examples/pytorch).
PATIENCE_S = 90
SKIPPED = 77


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--catalogue', default='libgpushare_catalogue.so', help='the library of examples/pytorch')
    parser.add_argument('--out', type=pathlib.Path, required=True, help='JSON lines, one a row')
    parser.add_argument('--smoke', action='store_true')
    parser.add_argument('--short', action='store_true')
    parser.add_argument('--today', action='store_true')
    parser.add_argument('--services', help='default: all; of --smoke five')
    parser.add_argument('--programs', default=','.join(PROGRAMS), help='rows with other BE programs are left out')
    parser.add_argument('--loads', default='0.3,0.5,peak80')
    parser.add_argument('--policies', default='', help='instead of those of each row; also '
                        + ', '.join(BASELINES))
    parser.add_argument('--seconds', type=float, help='no row begins that would end later')
    parser.add_argument('--queries', type=int, help='of a condition, in all rounds')
    parser.add_argument('--rounds', type=int)
    parser.add_argument('--alone-age', type=float, help='seconds after which bare launches are measured again')
    parser.add_argument('--target-over-solo', type=float, default=8.0, help='the absolute target over one query alone')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--profile', default='', help='default: the built-in one')
    parser.add_argument('--commit', default='', help='default: what git says')
    parser.add_argument('--worker', default='', help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.form = next((form for form in ('smoke', 'short', 'today') if getattr(arguments, form)), 'full')
    for name, value in FORMS[arguments.form].items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, type(value)(value))
    arguments.services = arguments.services or ','.join(SMOKE if arguments.smoke else SERVICES)
    arguments.commit = arguments.commit or commit_of()
    return arguments


def start(name: str, arguments: argparse.Namespace) -> subprocess.Popen[str]:
    """The process of a service. It imports, then waits for a line before it touches the GPU."""
    given = [*sys.argv[1:], '--commit', arguments.commit, '--worker', name]
    return subprocess.Popen([sys.executable, '-B', str(pathlib.Path(__file__).resolve()), *given],
                            stdin=subprocess.PIPE, text=True)


def serve(worker: subprocess.Popen[str], name: str, deadline: float) -> int:
    """Waits for a service's process, which was told its deadline. One that hangs is ended."""
    try:
        return worker.wait(timeout=max(1.0, deadline - time.monotonic()) + PATIENCE_S)
    except subprocess.TimeoutExpired:
        print(f'{name}: no answer {PATIENCE_S} s after its share of the time; its process is ended', flush=True)
        worker.kill()
        return worker.wait()


def tell(worker: subprocess.Popen[str], deadline: float) -> None:
    assert worker.stdin is not None
    try:
        worker.stdin.write(f'{deadline}\n')
        worker.stdin.close()
    except BrokenPipeError:  # it has ended: its exit code says why
        pass


def run_services(arguments: argparse.Namespace) -> int:
    """One service after another; the process of the next one imports meanwhile."""
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + arguments.seconds
    names = arguments.services.split(',')
    codes = []
    worker = current = start(names[0], arguments)
    try:
        for number, name in enumerate(names):
            deadline = time.monotonic() + (end - time.monotonic()) * share_of(name, names[number:])
            tell(worker, deadline)
            current = worker
            if number + 1 < len(names):
                worker = start(names[number + 1], arguments)
            codes.append(serve(current, name, deadline))
            if codes[-1] == SKIPPED:
                break
    finally:
        for process in (current, worker):
            if process.poll() is None:
                process.kill()
    if SKIPPED in codes:
        return SKIPPED
    return 1 if any(codes) else 0


def rows_wanted(arguments: argparse.Namespace) -> list[Row]:
    """The rows of the worker's service that are not left out."""
    programs, loads = arguments.programs.split(','), arguments.loads.split(',')
    if arguments.smoke:
        rows = smoke_rows(arguments.worker)
    else:
        every = today_rows(arguments.worker) if arguments.today else rows_of(arguments.worker, arguments.form == 'full')
        rows = [row for row in every if row.load in loads and (not row.be or row.be in programs)]
    return with_policies(rows, arguments.policies.split(',')) if arguments.policies else rows


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What tells whether a row of the file is the same."""
    profile = pathlib.Path(arguments.profile) if arguments.profile else ROOT / 'profiles/h200.json'
    return {'commit': arguments.commit, 'profile': hash_of(profile), 'queries': arguments.queries,
            'rounds': arguments.rounds, 'seed': arguments.seed, 'target_over_solo': arguments.target_over_solo}


def run_worker(arguments: argparse.Namespace) -> int:
    # cuBLAS gives the same bits in every run only with a fixed workspace; read when its handle is made.
    os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
    sys.path.insert(0, str(ROOT / 'examples/pytorch'))
    try:
        import worker
    except ImportError:
        traceback.print_exc()
        return SKIPPED
    deadline = float(sys.stdin.readline() or 0)
    rows = rows_wanted(arguments)
    finished = Finished(arguments.out, settings_of(arguments))
    left = [row for row in rows if not finished.has(row)]
    if len(left) < len(rows):
        print(f'{arguments.worker}: {len(rows) - len(left)} of {len(rows)} rows are in {arguments.out}', flush=True)
    return worker.work(arguments, left, finished, deadline) if left else 0


def main() -> int:
    arguments = parsed()
    return run_worker(arguments) if arguments.worker else run_services(arguments)


if __name__ == '__main__':
    sys.exit(main())
