"""benchmarks/papers/partitions.py: a short run of it on the simulated device, and what it counts."""

import itertools
import json
import pathlib
import sys

import pytest

import gpushare

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/papers'))

import partition_load
import partition_sets
import partitions

MS = 1_000_000
SHORT = ['--device', 'sim', '--seconds', '0.4', '--contrast-seconds', '0.15', '--runs', '20',
         '--measure-seconds', '0.05']


def run(tmp_path, *arguments):
    out = tmp_path / 'partitions.json'
    code = partitions.Bench(partitions.arguments([*SHORT, '--out', str(out), *arguments])).run()
    return code, json.loads(out.read_text())


@pytest.fixture(scope='module')
def three(tmp_path_factory):
    return run(tmp_path_factory.mktemp('three'), '--sets', 'kernels3')


def rows_of(result, policy, overruns=False):
    return [row for row in result['rows'] if row['policy'] == policy and row['overruns'] == overruns]


def test_a_set_keeps_its_deadlines_and_bounds_in_partitions(three):
    code, result = three
    assert code == 0
    assert [row['beside'] for row in rows_of(result, 'partitioned')] == ['flood', 'training']
    for row in rows_of(result, 'partitioned'):
        assert (row['partitions'], row['missed'], row['over_bound'], row['overrun_jobs']) == (3, 0, 0, 0)
        assert 0.5 < row['tightness'] <= 1
        assert row['be_share'] > 0.5 * row['rest_sms'] / 132
        for app in row['apps'].values():
            assert app['jobs_counted'] == app['jobs'] > 0
            assert app['missed_counted'] == 0
            assert app['longest_ns'] <= app['response_ns_max'] <= app['bound_ns']


def test_the_same_set_misses_without_partitions(three):
    _, result = three
    for policy in ('priority', 'bare'):
        row, = rows_of(result, policy)
        assert row['missed'] > 0.05 * row['jobs'], policy


def test_only_the_guilty_app_loses_by_its_overruns(three):
    _, result = three
    row, = rows_of(result, 'partitioned', overruns=True)
    assert row['kept'] and row['missed'] == 0
    guilty = row['guilty']
    assert guilty['app'] == 'planning' and guilty['missed'] > 0
    assert row['apps']['planning']['overrun_jobs'] == guilty['jobs'] // partitions.OVERRUN_EVERY


def test_worst_cases_are_the_largest_of_the_runs_beside_both(three):
    _, result = three
    for sizes in result['head']['worst_cases'].values():
        for found in sizes.values():
            assert found['max_ns'] == max(found['flood']['max_ns'], found['training']['max_ns'])
            assert found['flood']['runs'] >= 5


def test_networks_and_shared_partitions_run_too(tmp_path):
    code, result = run(tmp_path, '--sets', 'networks5,shared5', '--contrast-seconds', '0.1')
    assert code == 0
    kept = {row['set']: row['partitions'] for row in rows_of(result, 'partitioned')}
    assert kept['networks5'] == 5
    assert kept['shared5'] < 5


def test_worst_cases_that_are_too_short_are_seen(tmp_path):
    code, result = run(tmp_path, '--sets', 'kernels3', '--margin', '0.5')
    assert code == 1
    first = rows_of(result, 'partitioned')[0]
    assert not first['kept']
    assert first['over_bound'] > 0
    assert first['overrun_jobs'] > 0


def test_a_limit_of_time_leaves_windows_out_and_says_so(tmp_path):
    code, result = run(tmp_path, '--sets', 'kernels3', '--limit-s', '0')
    assert code == 1
    assert len(result['rows']) == 5
    assert all('--limit-s' in row['absent'] for row in result['rows'])


def test_a_miss_or_a_response_over_its_bound_is_not_kept():
    def row(missed=0, longest=10):
        return {'policy': 'partitioned', 'apps': {'a': {
            'jobs': 5, 'missed': missed, 'skipped': 0, 'failed': 0, 'bound_ns': 10, 'response_ns_max': longest,
            'overrun_jobs': 0, 'tightness': longest / 10}}}
    assert partitions.verdict(row(), '')['kept']
    assert not partitions.verdict(row(missed=1), '')['kept']
    assert not partitions.verdict(row(longest=11), '')['kept']
    assert partitions.verdict(row(missed=1), 'a')['kept'], 'the guilty app alone'


def test_releases_are_a_period_apart_and_stop_at_a_backlog():
    arrivals = []

    class Ticket:
        def done(self):
            return False

    with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL) as runtime:
        clock = partition_load.Clock(runtime)

        def submit(app, times):
            arrivals.append(runtime.now_ns())
            return Ticket()
        app = partition_load.LcApp('a', MS, MS, None, submit)
        found = partition_load.run_window(runtime, clock, [app], {}, 0.05, seed=1)
    assert len(arrivals) == partition_load.UNFINISHED_MAX
    assert min(b - a for a, b in itertools.pairwise(arrivals)) >= MS
    row = found['apps']['a']
    assert row['jobs'] == row['failed'] == partition_load.UNFINISHED_MAX
    assert row['skipped'] > 30


def test_a_job_of_a_kernel_has_whole_waves_on_16_sms():
    control = partition_sets.SETS['kernels3'].jobs[0]
    assert control.block_tasks == 15 * 4 * 16
