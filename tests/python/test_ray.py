"""gpushare.ray under Ray Serve: two simulated GPUs, a service, a job, a replica that is killed; the example.

It runs in the Python that has Ray: that of GPUSHARE_RAY_PYTHON, else that of tools/setup.sh --ray, else this one.
The other tests of gpushare.ray need no Ray. benchmarks/ray/compare.py is the program; its full run is the nightly one.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = '2.60.0'
LIMIT_S = 480  # of a machine that does other things meanwhile; alone it takes less than 90 s
STARTS = 2  # of Ray: a try that fails takes a minute
IMPORT_LIMIT_S = 60  # of importing Ray; alone it takes 3 s


def ray_python():
    """The interpreter with Ray, or the test is skipped."""
    installed = ROOT / 'build/ray-python/bin/python'
    given = os.environ.get('GPUSHARE_RAY_PYTHON')
    python = given or (str(installed) if installed.is_file() else sys.executable)
    try:
        asked = subprocess.run([python, '-c', 'import ray, ray.serve; print(ray.__version__)'], capture_output=True,
                               text=True, timeout=IMPORT_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f'{python} has not imported Ray within {IMPORT_LIMIT_S} s: the host is too busy.')
    if asked.returncode != 0:
        if given:
            pytest.fail(f'GPUSHARE_RAY_PYTHON is {given}, which has no Ray Serve: {asked.stderr[-500:]}')
        pytest.skip('There is no Ray Serve: tools/setup.sh --ray installs it, or GPUSHARE_RAY_PYTHON names a Python '
                    'that has it.')
    if asked.stdout.strip() != RELEASE:
        pytest.skip(f'Ray is {asked.stdout.strip()}, and request routers are alpha: this is for {RELEASE}.')
    return python


def run(program, *arguments):
    variables = {**os.environ, 'PYTHONPATH': str(ROOT / 'bindings/python'), 'RAY_USAGE_STATS_ENABLED': '0'}
    python = ray_python()
    for _ in range(STARTS):
        done = subprocess.run([python, str(ROOT / program), *arguments], env=variables, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        if done.returncode == 0 or 'The current node timed out during startup' not in done.stderr:
            break
    else:
        pytest.skip(f'Ray itself has not started, {STARTS} times: it gives its own processes 15 s, and the host is too '
                    'busy.')
    assert done.returncode == 0, f'{done.stdout[-4000:]}\n{done.stderr[-4000:]}'
    return done.stdout


def test_no_request_is_lost_or_answered_twice_when_a_replica_is_killed():
    """And the job of that replica goes on from its checkpoint."""
    said = run('benchmarks/ray/compare.py', '--smoke', '--seconds', '8')
    assert 'No request was lost, and none was answered twice.' in said


def test_the_example_answers_all_beside_a_job():
    said = run('examples/ray/laptop.py', '3')
    # On a busy host some requests are refused as late, and a lease may end before a step does.
    answered, refused = map(int, re.search(r'(\d+) answered, (\d+) refused', said).groups())
    assert answered > 0, said
    assert answered + refused == 120, said
    assert 'tune: 200 steps' in said
