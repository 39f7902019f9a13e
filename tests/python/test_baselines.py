"""The matrix's conditions without the library, on a PyTorch whose GPU does everything at once."""

import contextlib
import ctypes
import pathlib
import sys
import time
import types

import fake_torch
import pytest

from gpushare import abi

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'benchmarks/matrix'), str(ROOT / 'examples/pytorch')]
from matrix_plan import Row  # noqa: E402

MODULES = ('baselines', 'clock', 'green', 'grids', 'pairs')  # those that use PyTorch
ARRIVALS = [2_000_000 * number for number in range(1, 31)]


class Stream:
    def __init__(self, priority=0):
        self.priority, self.cuda_stream = priority, 0x500 - priority


class Event:
    def __init__(self, enable_timing):
        self.at_ns = 0

    def record(self):
        self.at_ns = time.monotonic_ns()

    def synchronize(self):
        time.sleep(1e-4)

    def elapsed_time(self, later):
        return (later.at_ns - self.at_ns) / 1e6


class Graph:
    """Replays the functions that were called while it was captured."""

    capturing = None

    def __init__(self):
        self.work = []

    def replay(self):
        for function in self.work:
            function()


@contextlib.contextmanager
def captured_into(graph, stream, capture_error_mode):
    Graph.capturing = graph
    try:
        yield
    finally:
        Graph.capturing = None


class Work:
    """A function whose calls are counted, those of its graphs too. It refuses captures with few SMs."""

    def __init__(self, least_sms=0):
        self.runs, self.least_sms, self.streams = 0, least_sms, set()

    def __call__(self):
        if 132 - (fake_torch.carve_out[0] or 0) < self.least_sms:
            raise RuntimeError('CUDA error: cluster misconfiguration\nMore lines.')
        Graph.capturing.work.append(self.run)

    def run(self):
        self.runs += 1
        self.streams.add(fake_torch.cuda.current_stream())


class Launched:
    """Launches itself, as a grid does."""

    def __init__(self):
        self.runs = 0

    def replay(self):
        self.runs += 1


@pytest.fixture
def matrix(monkeypatch):
    """The modules of the matrix that need PyTorch, by name."""
    torch = fake_torch.install(monkeypatch)
    cuda = types.SimpleNamespace(**vars(torch.cuda))
    cuda.Stream, cuda.Event, cuda.CUDAGraph, cuda.graph = Stream, Event, Graph, captured_into
    cuda.synchronize = lambda: None
    monkeypatch.setattr(torch, 'cuda', cuda)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    # Only their types are used.
    programs = types.SimpleNamespace(Program=object, TrainingProgram=object, program=None)
    monkeypatch.setitem(sys.modules, 'programs', programs)
    monkeypatch.setitem(sys.modules, 'served', types.SimpleNamespace(Served=object))
    import baselines
    import green
    import grids
    import pairs
    yield types.SimpleNamespace(baselines=baselines, green=green, grids=grids, pairs=pairs)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)


def green_of(sms):
    return types.SimpleNamespace(sms=(sms, 132 - sms), streams=(Stream(), Stream()))


def test_each_way_runs_every_query_and_the_step_beside_it(matrix):
    service, step = Work(), Work()
    made, absent = matrix.baselines.ways(service, step, {'green64': green_of(64)},
                                         ('alone', 'streams', 'priorities', 'gated', 'green64'))
    assert (list(made), absent) == (['alone', 'streams', 'priorities', 'gated', 'green64'], {})
    assert made['priorities']._lc.priority < made['streams']._lc.priority == 0
    for name, way in made.items():
        queries, steps = service.runs, step.runs
        run = way.run(ARRIVALS)
        assert service.runs - queries == len(run['latencies']) == len(ARRIVALS), name
        assert min(run['latencies']) >= 0 and max(run['latencies']) < 2_000_000_000, name
        assert (run['steps'] > 0) == (name != 'alone') == (step.runs > steps), name
        assert run['steps'] <= step.runs - steps


def test_only_wanted_ways_are_made(matrix):
    service = Work()
    made, _ = matrix.baselines.ways(service, Work(), {'green64': green_of(64)}, ('alone', 'gated'))
    assert list(made) == ['alone', 'gated']
    assert service.runs == 2  # each once, before it is measured


def test_a_step_that_cannot_run_in_a_green_context_is_absent_and_no_failure(matrix):
    step = Work(least_sms=60)
    made, absent = matrix.baselines.ways(Work(), step, {'green64': green_of(64), 'green96': green_of(96)},
                                         ('alone', 'streams', 'green64', 'green96'))
    assert list(made) == ['alone', 'streams', 'green64']  # 68 SMs are left for the step, and 36
    assert absent == {'green96': 'CUDA error: cluster misconfiguration'}


def test_a_step_that_fails_in_its_thread_fails_the_run(matrix):
    class Fails(Launched):
        def replay(self):
            super().replay()
            if self.runs > 3:
                raise RuntimeError('The driver returned CUresult 700 for a grid.')

    made, _ = matrix.baselines.ways(Work(), Fails(), {}, ('streams',))
    with pytest.raises(RuntimeError, match='700'):
        made['streams'].run(ARRIVALS)


def served_of(service):
    checks = []
    return types.SimpleNamespace(call=service, answer='answer', clear=lambda: checks.append('clear'),
                                 check=lambda name, answer: checks.append((name, answer))), checks


def test_the_baselines_of_a_row_count_the_work_of_its_program(matrix, monkeypatch):
    monkeypatch.setattr(matrix.baselines, 'GreenContexts', green_of)
    step = Launched()
    be = types.SimpleNamespace(plain=lambda: step, work=5280)
    served, checks = served_of(Work())
    interval = sys.getswitchinterval()
    row = matrix.baselines.RowBaselines(served, be, ['streams', 'green64'], matrix.baselines.Greens())
    alone, beside = row.run(matrix.baselines.REPLAYED, ARRIVALS), row.run('green64', ARRIVALS)
    assert alone['work'] == 0
    assert beside['work'] > 0 and beside['work'] % 5280 == 0
    assert beside['span_ns'] >= ARRIVALS[-1]
    assert checks == ['clear', ('alone', 'answer'), 'clear', ('green64', 'answer')]
    assert (row.absent, sys.getswitchinterval()) == ({}, interval)


def test_without_green_contexts_their_conditions_are_absent(matrix, monkeypatch):
    def refuses(sms):
        raise RuntimeError(f'The driver returned CUresult 801 for {sms} SMs.')

    monkeypatch.setattr(matrix.baselines, 'GreenContexts', refuses)
    served, _ = served_of(Work())
    be = types.SimpleNamespace(plain=Launched, work=1)
    row = matrix.baselines.RowBaselines(served, be, ['gated', 'green64'], matrix.baselines.Greens())
    assert row.absent == {'green64': 'The driver returned CUresult 801 for 64 SMs.'}
    assert row.run('gated', ARRIVALS)['work'] > 0


def test_a_row_has_policies_and_baselines_on_the_same_arrivals(matrix, monkeypatch):
    monkeypatch.setattr(matrix.baselines, 'GreenContexts', green_of)
    pairs = object.__new__(matrix.pairs.Pairs)
    pairs.served, _ = served_of(Work(least_sms=90))  # of 64 and of 96 SMs
    pairs.served.confined = ''
    be = types.SimpleNamespace(plain=Launched, work=10, facts={}, check=lambda: {'checked': 1})
    pairs._settings = matrix.pairs.Settings(40, 2, 1, 8.0, 20.0)
    pairs._greens, pairs._solo, pairs._programs = matrix.baselines.Greens(), {'mriq': 1e-3}, {}
    pairs.solo_ns, pairs.service_ns, pairs.target_ns, pairs.peak = 400_000, 400_000.0, 3_200_000, 0.7
    ran = []
    monkeypatch.setattr(pairs, '_program', lambda name: be, raising=False)
    monkeypatch.setattr(pairs, '_bare_latencies', lambda load, number, arrivals: [1000] * len(arrivals))

    def run(policy, load, arrivals, p99_alone, program):
        ran.append((policy, len(arrivals), p99_alone))
        return {'latencies': [1100] * len(arrivals), 'span_ns': arrivals[-1], 'work': 5, 'evictions': 0, 'launches': 1,
                'held_s': {}, 'places': {}}

    monkeypatch.setattr(pairs, '_run', run)
    row = Row('bert_b1', 'mriq', '0.5', ('adaptive', 'streams', 'gated', 'green64', 'green96'))
    assert pairs.seconds(row) > pairs.seconds(Row('bert_b1', 'mriq', '0.5', ('adaptive',)))
    result = pairs.measure(row)
    found = result['conditions']
    assert list(found) == ['adaptive', 'streams', 'gated', 'green96']
    assert {name: one['queries'] for name, one in found.items()} == {'adaptive': 40, 'streams': 16, 'gated': 40,
                                                                     'green96': 40}
    assert ran == [('adaptive', 20, 1000)] * 2
    assert found['adaptive']['p99_over_alone'] == 1.1
    assert found['streams']['p99_over_alone'] != found['streams']['p99_us']  # over replayed launches, not bare ones
    assert result['absent'] == {'green64': 'CUDA error: cluster misconfiguration'}
    assert result['alone_us'] == {'p50': 1.0, 'p99': 1.0} != result['replayed_us']
    assert found['gated']['be'] > 0 and 'evictions' in found['adaptive'] and 'evictions' not in found['gated']


def test_a_grid_launches_its_kernel_with_its_shape_on_the_current_stream(matrix, monkeypatch):
    launches = []

    def launch(*given):
        launches.append(given)
        return 0

    def current(where):
        where._obj.value = 0xc0
        return 0

    driver = types.SimpleNamespace(cuLaunchKernel=launch, cuCtxGetCurrent=current,
                                   cuCtxSetCurrent=lambda context: 0)
    monkeypatch.setattr(ctypes, 'CDLL', lambda name: driver)
    kernel = abi.init(abi.gpushare_kernel_options, threads_per_block=256, dynamic_shared_memory_bytes=65536)
    kernel.original_function = 0xf0
    task = abi.init(abi.gpushare_task_options, grid_x=40, grid_y=3)
    task.arguments = 0xa0
    grid = matrix.grids.Grid(kernel, task)
    with fake_torch.cuda.stream(Stream(priority=-5)):
        grid.replay()
    (given,) = launches
    assert given[:9] == (0xf0, 40, 3, 1, 256, 1, 1, 65536, 0x505)
    assert given[9][0] == 0xa0 and given[10] is None
    assert len(given) == len(driver.cuLaunchKernel.argtypes)


def test_a_grid_that_the_driver_refuses_says_so(matrix):
    with pytest.raises(RuntimeError, match='CUresult 1 for a grid'):
        matrix.green.check(1, 'a grid')
