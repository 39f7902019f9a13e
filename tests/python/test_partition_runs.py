"""benchmarks/papers/partitions.py: a short run of it on the simulated device, and what it counts."""

import ctypes
import gc
import itertools
import json
import pathlib
import sys
import types

import pytest

import gpushare

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/papers'))

import partition_load
import partition_sets
import partition_worst_cases
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
            slowest = [sum(parts.values()) for parts in app['slowest']]
            assert len(slowest) == min(app['jobs'], partition_load.SLOWEST)
            assert slowest == sorted(slowest, reverse=True)
            assert slowest[0] == app['longest_ns']


def test_the_same_set_misses_without_partitions(three):
    _, result = three
    for policy in ('priority', 'bare'):
        row, = rows_of(result, policy)
        assert 0.05 * row['jobs'] < row['missed'] <= row['jobs'], policy


def test_only_the_guilty_app_loses_by_its_overruns(three):
    _, result = three
    row, = rows_of(result, 'partitioned', overruns=True)
    assert row['kept'] and row['missed'] == 0
    guilty = row['guilty']
    assert guilty['app'] == 'planning' and guilty['missed'] > 0
    assert row['apps']['planning']['overrun_jobs'] == row['apps']['planning']['jobs'] // partitions.OVERRUN_EVERY


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


def test_apps_state_the_largest_measured_response_times_the_margin():
    stated = {}
    job = partition_sets.SETS['kernels3'].jobs[0]
    measured = partition_worst_cases.Measured()
    measured.add(job.key, 16, [300, 100], 'flood')
    measured.add(job.key, 16, [200, 400], 'training')
    measured.add(job.key, 8, [700], 'flood')
    one = types.SimpleNamespace(
        runtime=types.SimpleNamespace(create_app=lambda name, app_class, **given: stated.update(given)),
        _measured=measured, _options=partitions.arguments(['--margin', '1.25']))
    partitions.SetRun._create(one, job)
    assert stated['worst_cases'] == [(8, 875), (16, 500)]
    assert (stated['period_ns'], stated['deadline_ns']) == (MS, MS // 2)


def test_a_limit_of_time_leaves_all_out_and_says_so(tmp_path):
    code, result = run(tmp_path, '--sets', 'kernels3', '--limit-s', '0')
    assert code == 1
    assert result['head']['worst_cases'] == result['head']['rate_alone'] == {}
    assert [row['set'] for row in result['rows']] == ['kernels3']
    assert '--limit-s' in result['rows'][0]['absent']


@pytest.mark.parametrize(('checks', 'sizes', 'windows'), [(2, 2, 0), (7, 4, 2)])
def test_a_limit_of_time_cuts_between_sizes_and_between_windows(tmp_path, monkeypatch, checks, sizes, windows):
    """It is checked before each of four sizes, before the rates alone and before each of five windows."""
    left = itertools.chain([100.0] * checks, itertools.repeat(0.0))
    monkeypatch.setattr(partitions.Bench, 'left_s', lambda bench: next(left))
    code, result = run(tmp_path, '--sets', 'kernels3')
    assert code == 1
    for measured in result['head']['worst_cases'].values():
        assert [int(sms) for sms in measured] == list(partition_worst_cases.SIZES[:sizes])
    for left_out in result['head']['left_out'].values():
        assert all('--limit-s' in reason for reason in left_out.values())
        assert [int(sms) for sms in left_out] == list(partition_worst_cases.SIZES[sizes:])
    assert len(result['head']['left_out']) == (3 if sizes < 4 else 0)
    cut = 5 - windows if sizes == 4 else 1  # rows: windows of the set, or the set
    assert ['absent' in row for row in result['rows']] == [False] * windows + [True] * cut
    assert all('--limit-s' in row['absent'] for row in result['rows'][windows:])


def test_a_run_that_is_cut_off_leaves_its_worst_cases(tmp_path, monkeypatch):
    def cut(*_):
        raise KeyboardInterrupt
    monkeypatch.setattr(partitions.Bench, '_run_set', cut)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, '--sets', 'kernels3', '--runs', '6')
    result = json.loads((tmp_path / 'partitions.json').read_text())
    assert len(result['head']['worst_cases']) == 3
    assert result['rows'] == []


def test_a_size_with_too_few_runs_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(partition_worst_cases, 'GIVE_UP_S', 0.0)
    code, result = run(tmp_path, '--sets', 'kernels3')
    assert code == 1
    assert all(not sizes for sizes in result['head']['worst_cases'].values())
    for left_out in result['head']['left_out'].values():
        assert len(left_out) == len(partition_worst_cases.SIZES)
        assert all('a worst case needs 5' in reason for reason in left_out.values())
    assert 'a worst case needs 5' in result['rows'][0]['absent']


class Training:
    """A training step that runs as kernels of the simulated device, and fails when it is made for the `fails`-th time
    (from 0). sizes: what one_size measured beside what."""

    def __init__(self, monkeypatch, fails):
        self.made, self.sizes, self._fails = 0, [], fails
        one_size = partition_worst_cases.one_size

        def prepare_step(programs, name):
            programs._step, programs.training_is = object(), name

        def recorded(runtime, programs, batches, sms, *rest):
            self.sizes.append((sms, programs.training_is))
            one_size(runtime, programs, batches, sms, *rest)
        monkeypatch.setattr(partition_sets.Programs, 'prepare_step', prepare_step)
        monkeypatch.setattr(partition_sets.Programs, '_training',
                            lambda programs, runtime: self._make(programs, runtime))
        monkeypatch.setattr(partition_worst_cases, 'one_size', recorded)

    def _make(self, programs, runtime):
        self.made += 1
        if self.made == self._fails + 1:
            raise RuntimeError('its graph has a node of the whole device')
        app = runtime.create_app('training-graph', gpushare.BEST_EFFORT)
        return app, [programs.kernel(runtime, {}, 'training-graph', 'adam', 5280)], False


def test_a_training_that_fails_in_the_measurement_is_kernels_in_all_of_it(tmp_path, monkeypatch):
    training = Training(monkeypatch, fails=2)
    code, result = run(tmp_path, '--sets', 'kernels3', '--seconds', '0.2', '--contrast-seconds', '0.05')
    assert code == 0
    assert training.sizes == [(8, 'mlp_small'), (16, 'mlp_small'), (24, 'mlp_small')] + [
        (sms, 'kernels') for sms in partition_worst_cases.SIZES]
    assert result['head']['training'] == 'kernels'
    assert 'a node of the whole device' in result['head']['training_reason']
    assert {row['training_is'] for row in result['rows']} == {'kernels'}


def test_a_set_whose_training_fails_is_absent(tmp_path, monkeypatch):
    """Kernels in its place would be compared with the step's rate alone."""
    Training(monkeypatch, fails=5)  # made for four sizes and for the rates
    code, result = run(tmp_path, '--sets', 'kernels3,shared5', '--runs', '6', '--seconds', '0.1',
                       '--contrast-seconds', '0.05')
    assert code == 1
    assert result['head']['training'] == 'mlp_small'
    first, *others = result['rows']
    assert first == {'set': 'kernels3',
                     'absent': 'TrainingFailedError: RuntimeError: its graph has a node of the whole device'}
    assert {(row['set'], row['training_is']) for row in others} == {('shared5', 'mlp_small')}


def test_the_head_names_the_gpu_and_its_driver(monkeypatch, three):
    assert (three[1]['head']['gpu'], three[1]['head']['driver']) == ('sim', '')

    def library(name):
        def told(text):
            def call(buffer, size, *_):
                buffer.value = text
                return 0
            return call
        if name == 'libcuda.so.1':
            return types.SimpleNamespace(cuDeviceGetName=told(b'NVIDIA H200'))
        return types.SimpleNamespace(nvmlInit_v2=lambda: 0, nvmlSystemGetDriverVersion=told(b'580.1'))
    monkeypatch.setattr(ctypes, 'CDLL', library)
    cuda = types.SimpleNamespace(name='cuda')
    assert partitions.hardware(cuda) == {'gpu': 'NVIDIA H200', 'driver': '580.1'}

    def without_nvml(name):
        if 'nvidia-ml' in name:
            raise OSError(name)
        return library(name)
    monkeypatch.setattr(ctypes, 'CDLL', without_nvml)
    assert partitions.hardware(cuda) == {'gpu': 'NVIDIA H200', 'driver': ''}


def test_collections_are_afterwards_as_they_were():
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            with pytest.raises(KeyError), partition_load.undisturbed():
                assert not gc.isenabled()
                raise KeyError
            assert gc.isenabled() == enabled
        finally:
            gc.enable()


def test_a_skipped_job_is_a_job_that_is_missed():
    app = {'jobs': 5, 'missed': 2, 'skipped': 3, 'failed': 1}
    found = partitions.verdict({'policy': 'bare', 'apps': {'a': app, 'b': app}}, 'b')
    assert (found['jobs'], found['missed']) == (8, 6)
    assert found['guilty'] == {'app': 'b', 'jobs': 8, 'missed': 6}


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
        found = partition_load.run_window(runtime, clock, [app], {}, 0.05, 1, '', 10, 4)
    assert len(arrivals) == partition_load.UNFINISHED_MAX
    assert min(b - a for a, b in itertools.pairwise(arrivals)) >= MS
    row = found['apps']['a']
    assert row['jobs'] == row['failed'] == partition_load.UNFINISHED_MAX
    assert row['skipped'] > 30


def test_a_job_of_a_kernel_has_whole_waves_on_16_sms():
    control = partition_sets.SETS['kernels3'].jobs[0]
    assert control.block_tasks == 15 * 4 * 16
