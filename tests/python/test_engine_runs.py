"""The long run, the campaign, MPS and transformers' steps in virtual time: what needs no GPU of them."""

import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time
import types

import fake_torch
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/matrix'))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/engines'))

import batching
import campaign
import chunked
import endurance
import engines
import loop
import mps
import timing
import watch
from plan import Condition
from traffic import Request

FOLDERS = sys.path[:2]
MS = 1_000_000


def request(number=0, arrival_ns=0, prompt=40, output=3):
    return Request(number, arrival_ns, prompt, output)


# --- transformers' steps ---


def test_a_prompt_is_cut_into_steps_and_others_decode_beside_it():
    engine, names, counts = chunked.Chunked(256, 64, 16), [], []
    engine.arrive(request(0, prompt=40, output=4))
    for step_number in range(5):
        if step_number == 1:
            engine.arrive(request(1, prompt=300, output=1))
        step = engine.next()
        names.append(step.name)
        counts.append(step.counts)
        engine.finish(step, [0] * len(step.rows), step_number * MS)
        if not engine.busy:
            break
    assert counts == [[40], [1, 255], [1, 45], [1]]
    assert names == ['d64', 'p256', 'd64', 'd64']
    assert [(line.request.number, line.times_ns) for line in engine.done] == [
        (1, [2 * MS]), (0, [0, MS, 2 * MS, 3 * MS])]


def test_no_step_has_more_tokens_or_requests_than_the_engine_takes():
    engine = chunked.Chunked(256, 64, 4)
    for number in range(9):
        engine.arrive(request(number, prompt=200, output=5))
    while (step := engine.next()) is not None:
        assert sum(step.counts) <= step.padded <= 256
        assert len(step.rows) <= 4
        engine.finish(step, [0] * len(step.rows), 0)
    assert sorted(line.request.number for line in engine.done) == list(range(9))
    assert all(line.length == 204 for line in engine.done)


def test_the_gap_of_a_load_may_be_found_with_transformers_steps():
    times = {'d64': 2e6, 'p128': 3e6, 'p192': 4e6, 'p256': 5e6}
    run = loop.simulated([request(number, number * 100 * MS) for number in range(10)],
                         lambda: chunked.Chunked(256, 64, 16), times)
    assert timing.active_share(run) == pytest.approx(10 * 3 * 2.04 / (900 + 3 * 2.04), rel=0.01)


def test_the_tokens_of_the_first_second_are_checked_and_of_one_request_at_least():
    requests = [request(0, 0), request(1, 999 * MS), request(2, 1000 * MS)]
    assert chunked.first_of(requests, {0: 'a', 1: 'b', 2: 'c'}) == (requests[:2], {0: 'a', 1: 'b'})
    assert chunked.first_of([request(5, 2000 * MS)], {5: 'a'})[1] == {5: 'a'}


def test_transformers_engine_refuses_what_its_loop_has_not(monkeypatch, capsys):
    program = importlib.import_module('transformers_engine')
    assert program.refused([Condition('bare'), Condition('library', 1.05, 'vit')]) == []
    assert program.refused([Condition('gated'), Condition('priority')]) == ['gated', 'priority']
    monkeypatch.setattr(sys, 'argv', ['transformers_engine.py', '--conditions', 'bare,gated'])
    assert program.main() == 2
    assert 'gated' in capsys.readouterr().err


# --- the long run ---


def test_memory_is_watched_until_the_block_ends():
    sizes = iter(range(100, 1000))
    with watch.Watch(lambda: next(sizes), 0.005) as watched:
        time.sleep(0.1)
    seen = len(watched.samples)
    time.sleep(0.03)
    assert seen == len(watched.samples) >= 5
    assert [one['device_mib'] for one in watched.samples] == list(range(100, 100 + seen))
    assert 1 < watched.samples[0]['host_mib'] < 100_000
    assert watched.samples[0]['at_s'] < watched.samples[-1]['at_s']


def samples(device, host=None):
    return [{'at_s': number, 'device_mib': one, 'host_mib': 10 if host is None else host[number]}
            for number, one in enumerate(device)]


def test_growth_is_that_behind_the_first_phases_and_one_peak_is_none():
    rising = [0, 500, 1000, *range(1000, 1100)]
    assert watch.grown(samples(rising), 3)['device_mib'] == pytest.approx(75, abs=2)
    assert watch.grown(samples([0, 900, 900, 900, 5000, 900, 900, 900, 900]), 1)['device_mib'] == 0
    assert watch.grown(samples([1]), 0) == {}


def a_report(**changes):
    row = {'phase': 0, 'submitted': 9, 'complete': 9, 'tokens_checked': {'steps': 5, 'tokens': 7, 'differ': 0}}
    app = {'submitted': 50, 'completed': 50, 'failed': 0, 'dropped': 0, 'cancelled': 0}
    return {'phases': [row], 'stats': {'engine': app}, 'growth': {'device_mib': 0, 'host_mib': 3},
            'health': {'vit': {'right': True}}, 'be_steps': {'vit': 4}, **changes}


@pytest.mark.parametrize(('changes', 'words'), [
    ({}, ''),
    ({'phases': []}, 'No phase'),
    ({'phases': [{**a_report()['phases'][0], 'complete': 8}]}, '8 of 9 requests'),
    ({'phases': [{**a_report()['phases'][0], 'tokens_checked': {'steps': 5, 'differ': 1}}]}, '1 tokens differ'),
    ({'phases': [{**a_report()['phases'][0], 'tokens_checked': {'steps': 0, 'differ': 0}}]}, 'in 0 steps'),
    ({'stats': {'engine': {**a_report()['stats']['engine'], 'completed': 49}}}, 'lost tasks'),
    ({'stats': {'engine': {**a_report()['stats']['engine'], 'dropped': 1}}}, 'lost tasks'),
    ({'growth': {'device_mib': 65, 'host_mib': 0}}, 'device_mib grew by 65'),
    ({'growth': {}}, 'too few samples'),
    ({'health': {'vit': {'right': False}}}, 'wrong results'),
    ({'be_steps': {'vit': 0}}, 'ran no step')])
def test_each_way_to_lose_something_is_told(changes, words):
    wrong = watch.verdict(a_report(**changes))
    assert bool(wrong) == bool(words)
    assert words in ' '.join(wrong)


def test_the_long_run_needs_room_for_a_phase(capsys):
    assert endurance.parsed(['--seconds', '60', '--phase-s', '60']).phase_s == 60
    with pytest.raises(SystemExit):
        endurance.parsed(['--seconds', '60', '--phase-s', '61'])
    assert '61.0 s' in capsys.readouterr().err


# --- the campaign ---


def test_an_item_gets_what_is_left_and_begins_only_where_it_has_room():
    item = campaign.Item('one', 'engines.py', 100, 200)
    assert campaign.given_s(item, 570) == 200
    assert campaign.given_s(item, 150) == 150 - campaign.END_S
    assert campaign.given_s(item, 100 + campaign.END_S - 1) == 0


def test_every_item_is_a_command_that_its_program_takes(run_python):
    program = f"""
        import sys
        sys.path[:0] = {FOLDERS!r}
        sys.modules['torch'] = None
        import campaign, endurance, engines, pathlib
        for item in campaign.ITEMS:
            if item.command.startswith('services.py'):  # test_forms.py: it imports PyTorch
                continue
            options = campaign.command_of(item, 300, pathlib.Path('out.json'))[2:]
            given = (endurance if item.name == 'endurance' else engines).parsed(options)
            print(item.name, given.out, given.seconds if item.name == 'endurance' else given.limit_s)
    """
    lines = run_python(program).splitlines()
    assert len(lines) == sum(not item.command.startswith('services.py') for item in campaign.ITEMS)
    assert 'main out.json 300.0' in lines
    assert 'endurance out.json 210.0' in lines


def test_the_campaign_starts_as_a_program():
    """Its folder is on Python's path then, and that of the matrix is not."""
    ran = subprocess.run([sys.executable, '-B', str(pathlib.Path(campaign.__file__)), '--help'], capture_output=True,
                         text=True, timeout=60, check=True)
    assert '--items' in ran.stdout


def test_items_run_in_order_until_the_time_is_over(tmp_path, monkeypatch, capsys):
    fake = tmp_path / 'fake.py'
    fake.write_text('import json, pathlib, sys\n'
                    'path = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])\n'
                    'row = {"condition": "bare", "load": 0.5, "law": "azure"}\n'
                    'path.write_text(json.dumps({"rows": [row]}))\n')
    monkeypatch.setattr(campaign, 'FOLDER', tmp_path)
    monkeypatch.setattr(campaign, 'END_S', 1.0)
    items = [campaign.Item('one', 'fake.py', 5, 9), campaign.Item('two', 'fake.py', 1000, 2000),
             campaign.Item('three', 'fake.py', 5, 9)]
    assert campaign.campaign(items, 60, tmp_path) == 0
    found = json.loads((tmp_path / 'campaign.json').read_text(encoding='utf-8'))
    assert [end.partition(' after')[0] for end in found['ends'].values()] == [
        'exit code 0', 'left out: no time', 'exit code 0']
    assert [row['condition'] for row in found['rows']] == ['one a0.5 bare', 'three a0.5 bare']
    assert 'three a0.5 bare' in capsys.readouterr().out


def test_an_item_that_hangs_or_fails_is_told_and_the_next_one_runs(tmp_path, monkeypatch):
    (tmp_path / 'hangs.py').write_text('import time; time.sleep(60)\n')
    (tmp_path / 'fails.py').write_text('raise SystemExit(1)\n')
    monkeypatch.setattr(campaign, 'FOLDER', tmp_path)
    monkeypatch.setattr(campaign, 'END_S', 0.3)
    items = [campaign.Item('hangs', 'hangs.py', 0.1, 0.2), campaign.Item('fails', 'fails.py', 1, 9)]
    assert campaign.campaign(items, 30, tmp_path) == 1
    ends = json.loads((tmp_path / 'campaign.json').read_text(encoding='utf-8'))['ends']
    assert ends['hangs'].startswith('ended after')
    assert ends['fails'].startswith('exit code 1')


def test_what_is_no_item_is_refused():
    assert [item.name for item in campaign.chosen('mps,main')] == ['mps', 'main']
    with pytest.raises(ValueError, match="'all' is no item"):
        campaign.chosen('all')


# --- MPS ---


CONTROL = """#!{python}
import os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ['CUDA_MPS_PIPE_DIRECTORY'])
if sys.argv[1:] == ['-f']:
    {start}
    (folder / 'control').touch()
    {wait}
else:
    assert sys.stdin.read() == 'quit\\n'
    (folder / 'quit').touch()
"""
WAITS = "while not (folder / 'quit').exists(): time.sleep(0.01)"
IGNORES = 'signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)'


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    """Installs a control program, and keeps the daemons that were started."""
    started = []
    popen = subprocess.Popen

    def noted(*given, **named):
        started.append(popen(*given, **named))
        return started[-1]

    def install(start='pass', wait=WAITS, seconds=20.0):
        path = tmp_path / mps.CONTROL
        path.write_text(CONTROL.format(python=sys.executable, start=start, wait=wait), encoding='utf-8')
        path.chmod(0o755)
        monkeypatch.setenv('PATH', f'{tmp_path}{os.pathsep}{os.environ["PATH"]}')
        monkeypatch.setattr(mps, 'subprocess', types.SimpleNamespace(**vars(subprocess)))
        mps.subprocess.Popen = noted
        for name in ('READY_S', 'QUIT_S', 'END_S'):
            monkeypatch.setattr(mps, name, 20.0 if name == 'READY_S' else seconds)

    yield install, started
    for one in started:
        if one.poll() is None:
            one.kill()
            one.wait()


def test_the_daemon_of_mps_ends_with_the_block(daemon):
    install, started = daemon
    install()
    with mps.mps() as added:
        assert started[0].poll() is None
        assert pathlib.Path(added['CUDA_MPS_PIPE_DIRECTORY'], 'control').exists()
    assert started[0].returncode == 0  # it was asked, and not killed
    assert not pathlib.Path(added['CUDA_MPS_PIPE_DIRECTORY']).exists()


def test_a_daemon_that_does_not_quit_is_ended_also_where_the_block_fails(daemon):
    install, started = daemon
    install(wait=IGNORES, seconds=0.5)
    with pytest.raises(ValueError, match='In the block'), mps.mps():
        raise ValueError('In the block.')
    assert started[0].returncode == -9


def test_a_daemon_that_does_not_start_is_an_error(daemon, monkeypatch):
    install, started = daemon
    install(start='raise SystemExit(3)', seconds=0.5)
    with pytest.raises(mps.NoMpsError, match='exit code 3'), mps.mps():
        pass
    install(start='time.sleep(60)', seconds=0.5)
    monkeypatch.setattr(mps, 'READY_S', 0.3)
    with pytest.raises(mps.NoMpsError, match='no pipe'), mps.mps():
        pass
    assert all(one.poll() is not None for one in started)


def test_a_machine_without_mps_leaves_its_items_out(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', str(tmp_path))
    assert campaign.run(campaign.Item('mps', 'fake.py', 1, 9, True), 9, tmp_path / 'out.json') == \
        "'nvidia-cuda-mps-control' is not installed."


# --- transformers' engine against a stub ---


class Number(list):
    """A tensor of tokens."""

    def clone(self):
        return Number(self)

    def copy_(self, other):
        self[:] = other

    def __getitem__(self, place):
        return Number(list.__getitem__(self, place[1])) if isinstance(place, tuple) else list.__getitem__(self, place)

    def __ne__(self, other):
        wrong = sum(one != two for one, two in zip(self, other, strict=True))
        return types.SimpleNamespace(sum=lambda: types.SimpleNamespace(item=lambda: wrong))


class Manager:
    """Answers each request when it is added: a step for each token, which adds 1 to what it reads."""

    def __init__(self, graph, io):
        self.graph, self.io, self.results, self.short = graph, io, [], 0

    def add_request(self, tokens, max_new_tokens, record_timestamps):
        times = []
        for number in range(max_new_tokens - self.short):
            self.io._bulk_input_tensor[:] = [tokens[0] + number]
            self.graph.replay()
            times.append(time.perf_counter())
        name = f'req_{len(self.results)}'
        self.results.append(types.SimpleNamespace(request_id=name, timestamps=times, error=None))
        return name

    def get_result(self, timeout):
        return self.results.pop(0)

    def is_running(self):
        return True


@pytest.fixture
def served(monkeypatch):
    """The module, with an engine of one graph. `ran` says how its steps ran."""
    torch, ran = fake_torch.install(monkeypatch), []
    cuda = types.SimpleNamespace(**vars(torch.cuda))
    io = types.SimpleNamespace(_bulk_input_tensor=Number([0]), write_index_storage=Number(), num_q_tokens=64,
                               read_index_storage=Number(), attention_mask=None, num_request_in_batch=1,
                               output_ids=Number([0]), compute_stream=fake_torch.Stream())

    def step(how):
        ran.append(how)
        io.output_ids[:] = [io._bulk_input_tensor[0] + 1]

    class Graph:
        def replay(self):
            step('bare')

    class Step(Graph):
        def replay(self):
            step('library')

    cuda.CUDAGraph = Graph
    monkeypatch.setattr(torch, 'cuda', cuda)
    module = types.ModuleType
    batching = types.SimpleNamespace(max_batch_tokens=256, q_padding_interval_size=64, max_requests_per_batch=16)
    for name, names in (('transformers', ('GenerationConfig', 'LlamaConfig', 'LlamaForCausalLM')),
                        ('llm', ()), ('llama', ())):
        made = module(name)
        vars(made).update(dict.fromkeys(names), BATCHING=batching, StepGraph=Step, SHAPES={})
        monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.delitem(sys.modules, 'continuous', raising=False)
    program = importlib.import_module('continuous')
    engine = program.Served.__new__(program.Served)
    engine.io, program.Switched.engine = io, engine
    engine._manager = Manager(program.Switched(), io)
    yield program, engine, ran
    del sys.modules['continuous']


def test_one_engine_runs_its_steps_bare_or_through_the_library(served):
    program, engine, ran = served
    requests, prompts = [request(0, 0, 4, 2), request(1, 20 * MS, 4, 3)], {0: [5] * 4, 1: [8] * 4}
    run = engine.serve(requests, prompts)
    assert ran == ['bare'] * 5
    program.Switched.through = True
    engine.serve(requests[:1], prompts)
    assert ran[5:] == ['library'] * 2
    assert [line.request.number for line in run.lines] == [0, 1]
    assert [len(line.times_ns) for line in run.lines] == [2, 3]
    assert 20 * MS <= run.lines[1].times_ns[0] < run.window_ns  # from the begin of the run
    assert [name for name, _, _ in run.steps] == ['d64'] * 5
    assert all(0 <= begin <= end for _, begin, end in run.steps)


def test_an_answer_that_is_too_short_is_an_error(served):
    _, engine, _ = served
    engine._manager.short = 1
    with pytest.raises(RuntimeError, match='for 3 tokens got 2'):
        engine.serve([request(0, 0, 4, 3)], {0: [5] * 4})


def test_steps_of_the_library_are_replayed_bare_with_what_they_read(served):
    program, engine, ran = served
    program.Switched.through, program.Switched.snapshots = True, []
    engine.serve([request(0, 0, 4, 3)], {0: [5] * 4})
    log, program.Switched.snapshots = program.Switched.snapshots, None
    assert [given[0] for _, _, given, _ in log] == [[5], [6], [7]]
    assert engine.differing(log) == {'steps': 3, 'tokens': 3, 'differ': 0}
    assert ran[3:] == ['bare'] * 3
    log[1][3][:] = [99]
    assert engine.differing(log)['differ'] == 1


def test_the_time_of_a_step_has_the_hosts_share(served):
    program, _, _ = served
    steps = [('d64', 0, 10), ('d64', 13, 23), ('p128', 26, 46), ('d64', 1000, 1010)]
    assert program.step_times(steps) == {'d64': 13, 'p128': 23}


# --- the long run's own loop ---


class Engine:
    """Steps at once, each with as many tokens as it has rows."""

    def __init__(self):
        self.log = types.SimpleNamespace(begin=lambda steps_max: self.logs.append(steps_max))
        self.logs, self.opened, self.app = [], [], None
        self.shape = types.SimpleNamespace(vocabulary=100)

    def batching(self):
        return batching.Batching((1, 2, 4), (64,))

    def run(self, step, follows):
        return [0] * (1 if isinstance(step, batching.Prefill) else len(step.rows))

    def busy(self):
        pass

    idle = close = close_app = busy

    def open(self, promise):
        self.opened.append(promise)

    def guarantee(self):
        return {}


class Job:
    """A job with one step every look."""

    step = 'step'

    def __init__(self):
        stats = types.SimpleNamespace(submitted=7, completed=7, failed=0, dropped=0, cancelled=0)
        self.training = types.SimpleNamespace(app=types.SimpleNamespace(stats=lambda: stats))
        self.ends_ns = [1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends_ns.append(2)

    def within(self, begin_ns, end_ns):
        return 3


def test_the_long_run_cycles_through_the_loads_until_its_time_is_over(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'jobs', types.SimpleNamespace(health=lambda step: {'right': step == 'step'}))
    monkeypatch.setattr(endurance, 'Watch', lambda: watch.Watch(lambda: 500, 0.02))
    engine, job = Engine(), Job()
    engine.app = job.training.app

    class Run(endurance.Endurance):
        def prepared(self):
            self.engine = engine
            return {'vit': job}, engine

        def rounds_of(self, *given):
            return types.SimpleNamespace(replayed=lambda log: {'steps': 5, 'tokens': 5, 'differ': 0})

        def requests(self, case, number):
            assert self.given.seconds == (endurance.BARE_S if number >= 900 else self.own.phase_s)
            return [request(one, one * 10 * MS, 40, 2) for one in range(5)]

        def served_bare(self, case, number):
            self.report.setdefault('bare', {})[case.name] = {'tbt_p99_us': 1.0}
            self.report.setdefault('bare_steps_ns', []).append(7)

        def promise(self, library):
            return self.report.pop('bare_steps_ns')

        def feeder(self, job, library):
            return job

    own = endurance.parsed(['--seconds', '1', '--phase-s', '0.25', '--jobs', 'vit'])
    given = engines.parsed(['--load', '0.3,0.5', '--requests', 'poisson', '--jobs', 'vit'])
    long = Run(given, own)
    assert long.measure(), long.report['wrong']
    cases = [row['case'] for row in long.report['phases']]
    assert cases[:4] == ['poisson at 0.3', 'poisson at 0.5'] * 2
    assert len(cases) >= 4
    assert engine.logs == [endurance.CHECK_STEPS] * len(cases)
    assert engine.opened == [[7, 7]]  # one promise, of all bare runs
    assert long.report['phases'][0]['be_steps'] == {'vit': 3}
    assert {row['complete'] for row in long.report['phases']} == {5}
    assert long.report['stats'].keys() == {'engine', 'vit'}
    long.print()
    assert 'wrong: nothing' in capsys.readouterr().out


# --- transformers' rounds ---


@pytest.fixture
def rounds(monkeypatch):
    """Rounds of an engine that gives each request its tokens 1 ms after one another. `notes` is what happened."""
    fake_torch.install(monkeypatch)
    notes = []

    class Switched:
        steps, snapshots, through = [], None, False

    class Served:
        def serve(self, requests, prompts):
            notes.append(f'{len(requests)} requests' + (' with snapshots' if Switched.snapshots is not None else ''))
            lines = [batching.Line(one, (), times_ns=[one.arrival_ns + MS, one.arrival_ns + 2 * MS])
                     for one in requests]
            return loop.Run(lines, [('d64', 0, MS)], 4000 * MS, 0)

        def differing(self, log):
            notes.append(f'replay of {log}')
            return {'steps': 1, 'tokens': 2, 'differ': 0}

    class Library:
        log = None

        def open(self, promise, one_query=False):
            notes.append(f'open {promise.p99_bound} {promise.p99_alone_ns}')

        def close_app(self):
            notes.append('close')

        def guarantee(self):
            return {}

    for name, names in (('continuous', {'Served': Served, 'Switched': Switched}), ('engine', {'Engine': object}),
                        ('bare', {'Bare': type('Bare', (), {}), 'Log': list}), ('baselines', {
                            'undisturbed': contextlib.nullcontext})):
        made = types.ModuleType(name)
        vars(made).update(names)
        monkeypatch.setitem(sys.modules, name, made)
    mine = ('through', 'rounds', 'library', 'beside')
    for name in mine:
        monkeypatch.delitem(sys.modules, name, raising=False)
    through = importlib.import_module('through')
    made = through.TransformersRounds(Served(), Library(), {}, 200, 'steps', False)
    yield made, notes, Switched
    for name in mine:
        sys.modules.pop(name, None)


def test_tokens_of_transformers_are_checked_in_a_run_of_their_own(rounds):
    made, notes, switched = rounds
    requests = [request(number, number * 600 * MS, 40, 2) for number in range(4)]
    prompts = {number: [1] * 40 for number in range(4)}
    for condition in (Condition('bare'), Condition('library', 1.05)):
        made.run(condition, 0, requests, prompts)
    assert notes == ['4 requests', f'open 1.05 {MS}', '4 requests', 'close', f'open 1.05 {MS}',
                     '2 requests with snapshots', 'close', 'replay of []']
    assert switched.snapshots is None
    row = made.row(Condition('library', 1.05))
    assert row['token_check'] == {'steps': 1, 'tokens': 2, 'differ': 0}
    assert row['over_bare']['tbt_p99'] == 1
    assert 'token_check' not in made.row(Condition('bare'))


def test_a_check_of_tokens_that_fails_fails_its_condition(rounds):
    made, _, switched = rounds
    made._engine.differing = lambda log: [][0]
    for condition in (Condition('bare'), Condition('library', 1.05)):
        made.run(condition, 0, [request(0, 0, 40, 2)], {0: [1]})
    assert 'check of the tokens' in made.row(Condition('library', 1.05))['failed']
    assert switched.snapshots is None
