"""gpushare.place: placements of a cluster, what runs, and bad input; pairs that the cost model predicts."""

import pytest

import gpushare

GPUS = [{'name': 'a', 'memory_bytes': 100, 'count': 2}, {'name': 'b', 'memory_bytes': 100}]
CHAT = {'name': 'chat', 'kind': 'decode', 'load': 0.4, 'memory_bytes': 60, 'replicas': 2}
TUNE = {'name': 'tune', 'kind': 'lora', 'memory_bytes': 20, 'instances': 3}
PAIR = {'lc': 'decode', 'be': 'lora', 'load': 0.5, 'p99_ratio': 1.01, 'p99_error': 0.002, 'be_rate': 0.5,
        'be_error': 0.02}


def without(values, key):
    return {name: value for name, value in values.items() if name != key}


def test_each_replica_and_instance_has_a_gpu():
    placed = gpushare.place(GPUS, [CHAT], [TUNE], [PAIR])
    assert placed.gpus == {'chat': (0, 1), 'tune': (0, 1, 2)}
    assert (placed.result.lc_placed, placed.result.be_placed, placed.result.free_gpus) == (2, 3, 0)
    assert placed.result.be_rate == pytest.approx(0.5 + 0.5 + 1)
    assert placed.result.value == pytest.approx(0.48 + 0.48 + 1)
    assert placed.result.value <= placed.result.upper_bound + 1e-5


def test_what_runs_stays_and_few_move():
    before = {'chat': (2, None), 'tune': (None, 1)}
    placed = gpushare.place(GPUS, [CHAT], [TUNE], [PAIR], before)
    assert placed.gpus['chat'][0] == 2
    assert placed.gpus['tune'][1] == 1
    assert placed.result.moved == 0
    # A higher load has no row: BE beside the service moves to the GPU of its own, at most one.
    busy = {**CHAT, 'load': 0.6}
    for moves, has_gpu in ((0, 1), (1, 2)):
        again = gpushare.place(GPUS, [busy], [TUNE], [PAIR], {'chat': (0, 1), 'tune': (0, 1, 2)}, be_per_gpu=2,
                               moves_max=moves)
        assert again.result.moved == moves
        assert sum(gpu is not None for gpu in again.gpus['tune']) == has_gpu


@pytest.mark.parametrize('before', [(0, None), (None, 0)])
def test_a_running_instance_takes_a_place_before_a_new_one(before):
    busy = {**CHAT, 'load': 0.9, 'replicas': 1}
    jobs = {**TUNE, 'instances': 2}
    running = {'chat': (0,), 'tune': before}
    moved = gpushare.place(GPUS[:1], [busy], [jobs], [PAIR], running, moves_max=1)
    assert moved.gpus == {'chat': (0,), 'tune': tuple(None if gpu is None else 1 for gpu in before)}
    assert moved.result.moved == 1
    stopped = gpushare.place(GPUS[:1], [busy], [jobs], [PAIR], running)
    assert stopped.gpus['tune'] == tuple(1 if gpu is None else None for gpu in before)
    assert stopped.result.moved == 0


def test_a_name_may_be_bytes():
    placed = gpushare.place(GPUS, [{**CHAT, 'name': b'chat'}], [TUNE], [PAIR], {'chat': (2,)})
    assert placed.gpus['chat'][0] == 2


def test_an_app_that_leaves_takes_its_last_entries():
    placed = gpushare.place(GPUS, [{**CHAT, 'replicas': 1}], [{**TUNE, 'instances': 0}], [PAIR],
                            {'chat': (1, 2), 'tune': (0,)})
    assert placed.gpus == {'chat': (1,), 'tune': ()}


def test_without_bounds_and_risk():
    strict = gpushare.place(GPUS[:1], [CHAT], [TUNE], [{**PAIR, 'p99_ratio': 1.2}])
    assert strict.gpus['tune'] == (None, None, None)
    loose = gpushare.place(GPUS[:1], [CHAT], [TUNE], [{**PAIR, 'p99_ratio': 1.2}], ignore_bounds=True, risk=-1,
                           be_per_gpu=2, together=gpushare.PlaceTogether.AT_ONCE)
    assert loose.result.bounds_broken == 2
    assert loose.result.value == pytest.approx(1.0)


@pytest.mark.parametrize('algorithm', list(gpushare.PlaceAlgorithm))
def test_every_algorithm_places(algorithm):
    assert gpushare.place(GPUS, [CHAT], [TUNE], [PAIR], algorithm=algorithm, seed=3).result.be_placed == 3


@pytest.mark.parametrize(('change', 'sentence'), [
    ({'lc_apps': [{**CHAT, 'load': 2}]}, "LC app 'chat' has the load 2, and it must be from 0 to 1"),
    ({'lc_apps': [{**CHAT, 'load': float('nan')}]}, 'load nan'),
    ({'lc_apps': [{**CHAT, 'name': None}]}, r"lc_apps\[0\] has no 'name', and it must be given"),
    ({'lc_apps': [CHAT, without(CHAT, 'load')]}, r"lc_apps\[1\] has no 'load'"),
    ({'lc_apps': [without(CHAT, 'memory_bytes')]}, r"lc_apps\[0\] has no 'memory_bytes'"),
    ({'lc_apps': [without(CHAT, 'kind')]}, r"lc_apps\[0\] has no 'kind'"),
    ({'gpus': [{'name': 'a'}]}, r"gpus\[0\] has no 'memory_bytes'"),
    ({'be_apps': [without(TUNE, 'memory_bytes')]}, r"be_apps\[0\] has no 'memory_bytes'"),
    ({'pairs': [without(PAIR, 'load')]}, r"pairs\[0\] has no 'load'"),
    ({'pairs': [without(PAIR, 'p99_ratio')]}, r"pairs\[0\] has no 'p99_ratio'"),
    ({'pairs': [PAIR, without(PAIR, 'be_rate')]}, r"pairs\[1\] has no 'be_rate'"),
    ({'be_apps': [{**TUNE, 'name': 'chat'}]}, "'chat' is stated twice"),
    ({'be_apps': [{**TUNE, 'instances': 2**31}]}, 'must be from'),
    ({'be_apps': [{**TUNE, 'instances': 2**31 - 1}]}, 'must be from 0 to 1000000'),
    ({'be_apps': [{**TUNE, 'name': str(i), 'instances': 1_000_000} for i in range(3)]},
     'the limit of each is 1000000'),
    ({'be_apps': [{**TUNE, 'instances': -1}]}, 'number of instances -1'),
    ({'gpus': []}, 'no GPU'),
    ({'pairs': [{**PAIR, 'p99_ratio': 0}]}, 'must be given'),
    ({'running': {'chat': (3,)}}, 'is 3, and a GPU is from 0 to 2'),
    ({'running': {'chat': (-1,)}}, "GPU -1 for app 'chat'"),
    ({'running': {'other': (0,)}}, "'other', and there is no such app"),
    ({'running': {'chat': (0, 0)}}, 'one LC replica at most'),
    ({'moves_max': -1}, 'number of moves is -1'),
])
def test_bad_input_is_one_sentence(change, sentence):
    arguments = {'gpus': GPUS, 'lc_apps': [CHAT], 'be_apps': [TUNE], 'pairs': [PAIR], **change}
    with pytest.raises(gpushare.InvalidArgumentError, match=sentence):
        gpushare.place(**arguments)


def test_an_unknown_field_is_a_type_error():
    with pytest.raises(TypeError, match="did you mean 'memory_bytes'"):
        gpushare.place([{'name': 'a', 'memory_byte': 1}])


def test_a_predicted_pair_is_a_row():
    with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL) as runtime:
        decode, training = runtime.register_kernel('decode16'), runtime.register_kernel('sincos_27us')
        rows = [{'lc': 'decode', 'be': 'lora'} | runtime.predict_pair([(decode, 0)], (training, 50_000), load)
                for load in (0.2, 0.6)]
        twice = runtime.predict_pair([(decode, 0, 2)], (training, 50_000), 0.6)
        with pytest.raises(gpushare.InvalidArgumentError, match=r'pair\.load is 1'):
            runtime.predict_pair([(decode, 0)], (training, 50_000), 1)
    assert rows[0]['be_rate'] > rows[1]['be_rate'] > 0.3
    assert twice['p99_ratio'] < rows[1]['p99_ratio'] < 1.05
    assert gpushare.place(GPUS, [CHAT], [TUNE], rows).result.be_placed == 3
