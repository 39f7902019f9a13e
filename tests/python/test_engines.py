"""What the benchmark of engines computes without a GPU: requests, batching, the loop, times of tokens, the plan."""

import contextlib
import dataclasses
import importlib
import json
import pathlib
import sys
import time
import types

import fake_torch
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/matrix'))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/engines'))

import loop
import plan
import process
import timing
import traffic
from batching import Batching, Decode, Line, Prefill
from plan import Case, Condition
from traffic import Draw, Lengths, Request

FOLDERS = sys.path[:2]
LENGTHS = Lengths(768, 256)
TIMES = {'d1': 2e6, 'd2': 2e6, 'd4': 3e6, 'p64': 4e6, 'p256': 5e6}
MS = 1_000_000


def batching():
    return Batching((1, 2, 4), (64, 256))


def request(number=0, arrival_ns=0, prompt=40, output=3):
    return Request(number, arrival_ns, prompt, output)


def run_all(engine, now=0):
    """Runs steps until nothing is left. Each takes 1 ms and gives its number as the token. The names of the steps."""
    names = []
    while (step := engine.next()) is not None:
        now += MS
        names.append(step.name)
        engine.finish(step, [len(names)] * (1 if isinstance(step, Prefill) else len(step.rows)), now)
    return names


def test_the_modules_of_the_loop_need_no_pytorch(run_python):
    program = f"""
        import sys
        sys.path[:0] = {FOLDERS!r}
        sys.modules['torch'] = None
        import batching, loop, plan, timing, traffic
    """
    run_python(program)


# --- requests ---


def test_requests_repeat_by_seed_and_keep_their_lengths_at_every_load():
    draws = traffic.poisson(3, 200, LENGTHS)
    assert draws == traffic.poisson(3, 200, LENGTHS) != traffic.poisson(4, 200, LENGTHS)
    slow, fast = (traffic.spread(draws, gap, 10**9) for gap in (2e7, 1e7))
    assert len(fast) > 1.5 * len(slow)
    assert [(one.prompt, one.output) for one in slow] == [(one.prompt, one.output) for one in fast[:len(slow)]]
    assert all(two.arrival_ns == pytest.approx(2 * one.arrival_ns, abs=2)
               for one, two in zip(fast, slow, strict=False))
    assert max(one.arrival_ns for one in fast) < 10**9


def test_lengths_have_their_means_and_stay_within_what_the_engine_takes():
    draws = traffic.poisson(1, 20000, Lengths(100_000, 100_000))
    assert sum(one.prompt for one in draws) / len(draws) == pytest.approx(traffic.PROMPT_MEAN, rel=0.03)
    assert sum(one.output for one in draws) / len(draws) == pytest.approx(traffic.OUTPUT_MEAN, rel=0.03)
    cut = traffic.poisson(1, 20000, Lengths(128, 32))
    assert {max(one.prompt for one in cut), max(one.output for one in cut)} == {128, 32}
    assert min(one.prompt for one in cut) == traffic.PROMPT_MIN


def test_azures_trace_keeps_its_order_and_gets_a_mean_gap_of_one(tmp_path):
    path = tmp_path / 'trace.csv'
    path.write_text('TIMESTAMP,ContextTokens,GeneratedTokens\n'
                    '2023-11-16 18:15:46.5000000,374,44\n2023-11-16 18:15:48.5000000,9000,0\n'
                    '2023-11-16 18:16:06.5000000,91,16\n', encoding='utf-8')
    assert traffic.azure(str(path), 1, 3, LENGTHS) == [
        Draw(0, 374, 44), Draw(pytest.approx(0.2), 768, 1), Draw(pytest.approx(2), 91, 16)]


def test_the_gap_of_a_load_gives_the_share_of_the_time_with_an_active_request():
    draws = traffic.poisson(5, 2000, Lengths(256, 64))
    window = 20 * 10**9

    def share(requests):
        return timing.active_share(loop.simulated(requests, batching, TIMES)) if requests else 0.0

    found = {load: share(traffic.spread(draws, traffic.gap_of(draws, load, window, share), window))
             for load in (0.3, 0.5, 0.7)}
    assert found == {load: pytest.approx(load, abs=0.04) for load in found}


def test_a_prompt_is_the_same_in_every_run():
    one = traffic.prompt_tokens(request(7, prompt=50), 1000)
    assert one == traffic.prompt_tokens(request(7, 99, 50), 1000) != traffic.prompt_tokens(request(8, prompt=50), 1000)
    assert len(one) == 50
    assert all(0 <= token < 1000 for token in one)


# --- batching ---


def test_a_request_is_prefilled_in_the_smallest_bucket_and_then_decoded():
    engine = batching()
    engine.arrive(request(prompt=65, output=3))
    assert run_all(engine) == ['p256', 'd1', 'd1']
    line, = engine.done
    assert (line.length, line.last, line.times_ns) == (67, 3, [MS, 2 * MS, 3 * MS])
    assert not engine.busy


def test_a_request_of_one_token_is_complete_with_its_prefill():
    engine = batching()
    engine.arrive(request(output=1))
    assert run_all(engine) == ['p64']
    assert len(engine.done) == 1


def test_between_two_prefills_the_others_decode():
    engine = batching()
    for number in range(3):
        engine.arrive(request(number, output=4))
    assert run_all(engine) == ['p64', 'd1', 'p64', 'd2', 'p64', 'd4', 'd4', 'd4']


def test_a_new_request_takes_the_lowest_free_slot_and_rows_are_slots():
    engine = batching()
    for number, output in enumerate((2, 9, 9)):
        engine.arrive(request(number, output=output))
    for _ in range(5):  # p, d1 (the first ends), p, d, p
        step = engine.next()
        engine.finish(step, [0] * (1 if isinstance(step, Prefill) else len(step.rows)), 0)
    assert [line.request.number for line in engine.done] == [0]
    step = engine.next()
    assert [None if row is None else row.request.number for row in step.rows] == [1, 2]
    assert [row.slot for row in step.rows] == [0, 1]


def test_more_requests_than_slots_wait_and_all_end():
    engine = batching()
    for number in range(11):
        engine.arrive(request(number, output=5))
    run_all(engine)
    assert sorted(line.request.number for line in engine.done) == list(range(11))
    assert all(len(line.times_ns) == 5 for line in engine.done)


def test_a_step_knows_whether_another_one_follows():
    engine = batching()
    engine.arrive(request(0, output=2))
    step = engine.next()
    assert engine.follows(step)  # its second token is left
    engine.finish(step, [0], 1)
    last = engine.next()
    assert not engine.follows(last)
    engine.arrive(request(1, output=1))
    assert engine.follows(last)  # a request waits
    engine.finish(last, [0], 2)
    assert not engine.follows(engine.next())


def test_a_prefill_is_followed_by_the_decode_of_others():
    engine = batching()
    engine.arrive(request(0, output=5))
    for _ in range(2):
        engine.finish(engine.next(), [0], 0)
    engine.arrive(request(1, output=1))
    step = engine.next()
    assert isinstance(step, Prefill)
    assert engine.follows(step)


def test_a_prompt_that_no_bucket_holds_is_an_error_and_without_buckets_a_prefill_is_eager():
    engine = batching()
    engine.arrive(request(prompt=257))
    with pytest.raises(ValueError, match='257 tokens'):
        engine.next()
    eager = Batching((1,), ())
    eager.arrive(request(prompt=257, output=2))
    assert run_all(eager) == ['p0', 'd1']


# --- the loop ---


class Noted(loop.Simulated):
    """Notes when requests are active, and what the steps are told of those that follow."""

    def __init__(self):
        super().__init__(TIMES, host_ns=0)
        self.notes = []

    def run(self, step, follows):
        self.notes.append((step.name, follows))
        return super().run(step, follows)

    def busy(self):
        self.notes.append('busy')

    def idle(self):
        self.notes.append('idle')


def test_requests_are_served_open_loop_and_busy_periods_are_told():
    runner = Noted()
    run = loop.serve([request(0, 0, 40, 2), request(1, 3 * MS, 40, 1), request(2, 100 * MS, 40, 1)], {}, batching(),
                     runner, runner)
    assert runner.notes == ['busy', ('p64', True), ('d1', True), ('p64', False), 'idle', 'busy', ('p64', False), 'idle']
    assert [line.times_ns for line in run.lines] == [[4 * MS, 6 * MS], [10 * MS], [104 * MS]]
    assert timing.first_token_ns(run) == [4 * MS, 7 * MS, 4 * MS]  # from the arrival, not from the step
    assert timing.between_tokens_ns(run) == [2 * MS]
    assert timing.active_share(run) == pytest.approx(14 / 104)
    assert run.window_ns == 104 * MS


def test_the_host_clock_serves_in_real_time():
    class Instant:
        def run(self, step, follows):
            return [5] * (1 if isinstance(step, Prefill) else len(step.rows))

        def busy(self):
            pass

        idle = busy

    began = time.monotonic()
    run = loop.serve([request(0, 20 * MS, 40, 3)], {0: [1] * 40}, batching(), Instant())
    assert time.monotonic() - began >= 0.02
    assert run.lines[0].prompt == [1] * 40
    assert timing.first_token_ns(run)[0] < 15 * MS


# --- times ---


def a_run(times_ns, arrivals, steps=(), window_ns=100 * MS):
    lines = [Line(request(number, arrival, 1, len(times)), (), times_ns=times)
             for number, (arrival, times) in enumerate(zip(arrivals, times_ns, strict=True))]
    return loop.Run(lines, list(steps), window_ns, 0)


def test_overlapping_requests_are_active_once():
    run = a_run([[30 * MS, 40 * MS], [50 * MS], [90 * MS]], [10 * MS, 20 * MS, 80 * MS])
    assert timing.active_share(run) == pytest.approx(0.5)
    assert timing.active_share(a_run([[40 * MS], [20 * MS]], [0, 10 * MS])) == pytest.approx(0.4)


def test_figures_pool_the_runs_and_ratios_are_over_bares():
    bare = [a_run([[10 * MS, 12 * MS, 14 * MS]], [0], [('p64', 0, 10 * MS), ('d1', 10 * MS, 12 * MS)])] * 2
    beside = [a_run([[20 * MS, 22 * MS, 27 * MS]], [0], [('p64', 0, 20 * MS), ('d1', 20 * MS, 23 * MS)])]
    found, alone = timing.figures(beside), timing.figures(bare)
    assert (alone['requests'], alone['tokens'], alone['tbt_p99_us']) == (2, 6, 2000)
    assert not dataclasses.asdict(Case(0.5)).keys() & alone.keys()  # a row has both
    assert (alone['active'], alone['window_s']) == (0.14, 0.2)
    assert timing.over(found, alone) == {'tbt_p50': 1, 'tbt_p99': 2.5, 'ttft_p50': 2, 'ttft_p99': 2, 'step_p50': 1.5,
                                         'step_p99': 1.5, 'prefill_p50': 2, 'prefill_p99': 2}
    text = timing.table([{'condition': 'library 1.05 + lora', 'over_bare': timing.over(found, alone), 'be': 0.4,
                          'be_limit': 0.5, 'token_check': {'tokens': 9, 'differ': 2}},
                         {'condition': 'gated + vit', 'failed': 'No room.'}])
    assert '2.500' in text
    assert '2 of 9' in text
    assert 'No room.' in text


def test_goals_are_counted_over_the_rows_of_the_library_beside_a_job():
    def row(way, job, tbt, ttft, be):
        return {'way': way, 'job': job, 'over_bare': {'tbt_p99': tbt, 'ttft_p99': ttft}, 'be_of_limit': be}

    rows = [row('library', 'lora', 1.04, 1.05, 0.95), row('library', 'vit', 1.06, 1.0, 0.9),
            row('query', 'vit', 1.0, 1.0, 0.89), row('library', '', 1.0, 1.0, None), row('gated', 'vit', 1.0, 1.0, 1.0),
            {'way': 'library', 'job': 'gpt2c', 'failed': 'No room.'}]
    assert timing.goals([row('library', 'eager', 1.0, 1.0, 0.76), row('library', 'eager', 1.0, 1.0, 0.74)])['be'] == 1
    assert timing.goals(rows) == {'rows': 4, 'tbt_p99': 2, 'ttft_p99': 3, 'be': 2, 'all': 1}
    good = row('library', 'lora', 1.0, 1.0, 1.0)
    for bad in ({**good, 'over_bare': {}}, {**good, 'failed': 'In the second round.'},
                {**good, 'token_check': {'tokens': 9, 'differ': 1}}):
        assert timing.goals([bad])['all'] == 0
        assert timing.goals([bad])['tbt_p99'] == 0
    assert timing.goals([{**good, 'token_check': {'tokens': 9, 'differ': 0}}])['all'] == 1


# --- the plan ---


def test_conditions_with_a_bound_have_each_job_and_bare_comes_first():
    chosen = plan.conditions('library:1.05,library,gated', ['lora', 'vit'])
    assert chosen == [Condition('bare'), Condition('library', 1.05), Condition('library', 1.05, 'lora'),
                      Condition('gated', 0, 'lora'), Condition('library', 1.05, 'vit'), Condition('gated', 0, 'vit')]
    assert [one.name for one in chosen[:3]] == ['bare', 'library', 'library 1.05 + lora']
    assert plan.conditions('bare', []) == [Condition('bare')]
    assert [one.name for one in plan.conditions('library:1.05,stopped', ['eager'])] == [
        'bare', 'library 1.05 + eager', 'stopped + eager']
    for words in ('fast', 'gated:1.05', 'query'):
        with pytest.raises(ValueError, match='no condition'):
            plan.conditions(words, [])


def test_each_law_has_all_loads_and_what_is_none_is_refused():
    assert plan.cases('0.5,0.3', 'poisson,azure') == [Case(0.5), Case(0.3), Case(0.5, 'azure'), Case(0.3, 'azure')]
    assert Case(0.7, 'azure').name == 'azure at 0.7'
    for loads, laws, words in (('0.5', 'steady', 'no law'), ('1.5', 'poisson', 'between 0 and 1')):
        with pytest.raises(ValueError, match=words):
            plan.cases(loads, laws)


def test_each_round_begins_with_another_condition_behind_bare():
    chosen = plan.conditions(plan.FULL, ['lora'])
    first, second = plan.order(chosen, 0), plan.order(chosen, 1)
    assert first[0] == second[0] == Condition('bare')
    assert first[1] != second[1]
    assert sorted(map(str, first)) == sorted(map(str, second)) == sorted(map(str, chosen))
    rest = len(chosen) - 1
    assert {plan.order(chosen, number)[1] for number in range(rest)} == set(chosen[1:])
    for length in range(2, 9):  # an even number of the rest too
        some = chosen[:length]
        assert len({str(plan.order(some, number)) for number in range(length - 1)}) == length - 1
    assert plan.order([Condition('bare')], 3) == [Condition('bare')]


def test_phases_are_timed_and_end_at_the_limit(capsys):
    phases = plan.Phases(0.5)
    with phases.phase('one'):
        time.sleep(0.01)
    assert phases.seconds['one'] >= 0.01
    assert 'one' in capsys.readouterr().err
    assert phases.has_room(0.2)
    assert not phases.has_room(0.6)


def test_the_command_has_a_short_and_a_full_form(run_python):
    program = f"""
        import json, sys
        sys.path[:0] = {FOLDERS!r}
        sys.modules['torch'] = None
        import engines
        for arguments in ([], ['--full'], ['--full', '--rounds', '5', '--model', '8b']):
            given = engines.parsed(arguments)
            print(json.dumps([given.model, given.rounds, given.limit_s, given.jobs, len(given.conditions)]))
    """
    assert [json.loads(line) for line in run_python(program).splitlines()] == [
        ['1b', 2, 112.0, ['lora', 'vit'], 6], ['1b', 2, 570.0, ['lora', 'gpt2c', 'vit', 'eager'], 30],
        ['8b', 5, 570.0, ['lora', 'gpt2c', 'vit', 'eager'], 30]]


def test_a_decode_step_is_named_by_its_rows():
    assert Decode([None] * 8).name == 'd8'


def test_a_job_in_another_process_runs_between_two_words(monkeypatch):
    program = """if True:
        import sys, time
        print('ready', flush=True)
        for word in sys.stdin:
            print('running' if word == 'run\\n' else 'ended[5, 10, 20]', flush=True)
    """
    started = process.subprocess.Popen

    def popen(command, **options):
        assert command[1:] == [process.__file__, 'lora']
        assert options['env']['SHARE'] == '50'
        return started([sys.executable, '-c', program], **options)

    monkeypatch.setattr(process.subprocess, 'Popen', popen)
    job = process.JobProcess('lora', {'SHARE': '50'})
    with job as running:
        assert running is job
    assert job.within(5, 20) == 2
    job.close()


def test_a_process_that_fails_is_an_error(monkeypatch):
    started = process.subprocess.Popen
    monkeypatch.setattr(process.subprocess, 'Popen', lambda command, **options: started(
        [sys.executable, '-c', 'raise SystemExit(1)'], **options))
    with pytest.raises(RuntimeError, match='ready'):
        process.JobProcess('lora', {})


def test_a_process_that_never_answers_is_an_error(monkeypatch):
    started, children = process.subprocess.Popen, []
    monkeypatch.setattr(process.subprocess, 'Popen', lambda command, **options: children.append(started(
        [sys.executable, '-c', 'import time; time.sleep(60)'], **options)) or children[0])
    monkeypatch.setattr(process, 'READY_S', 0.2)
    with pytest.raises(TimeoutError, match="gave no 'ready' within"):
        process.JobProcess('lora', {})
    assert children[0].poll() is not None


# --- through the library ---


@pytest.fixture
def by_server(monkeypatch, torch, capturing):
    """A library.ByServer with one graph of 1 ms, without an engine."""
    for name in ('bare', 'engine'):
        module = types.ModuleType(name)
        module.Log, module.Engine = list, object
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, 'library', raising=False)
    library = importlib.import_module('library')
    capturing.node_ns = MS
    made = library.ByServer.__new__(library.ByServer)
    made._query, made._server = None, torch.Server(capturing)
    made._server.add('d1', fake_torch.double, fake_torch.Tensor([1]))
    yield library, made
    del sys.modules['library']


def test_a_run_through_a_server_begins_without_the_credit_of_the_run_before(by_server):
    library, made = by_server
    promise, got = library.Promise(1.05, 2 * MS, 2 * MS), []
    for _ in range(2):
        made.open(promise)
        got.append(made._app.guarantee())
        for _ in range(200):
            made._run('d1', None, {})
        got.append(made._app.guarantee())
        made.close_app()
    assert [found.queries for found in got] == [0, 200, 0, 200]
    assert got[0].tail_credit == got[2].tail_credit < got[1].tail_credit
    assert got[2].p99_bound == 1.05


# --- jobs beside the engine ---


@pytest.fixture
def beside(monkeypatch):
    torch = fake_torch.install(monkeypatch)
    cuda = types.SimpleNamespace(**vars(torch.cuda))
    cuda.Event = lambda: types.SimpleNamespace(record=lambda: None, synchronize=lambda: time.sleep(0.002))
    monkeypatch.setattr(torch, 'cuda', cuda)
    monkeypatch.delitem(sys.modules, 'beside', raising=False)
    yield importlib.import_module('beside')
    del sys.modules['beside']


class Training:
    """Its steps end 1 ms after one another, on a clock that is 5 s ahead of the host's."""

    ahead_ns = 5_000_000_000

    def __init__(self):
        self.steps_done, self.end_ns, self.calls = 0, 0, []

    def submit(self):
        self.end_ns = max(self.end_ns, time.monotonic_ns()) + MS
        return [types.SimpleNamespace(wait=self.wait_until(self.end_ns), release=lambda: None)]

    def wait_until(self, end_ns):
        def wait(timeout_s):
            time.sleep(max(0, end_ns - time.monotonic_ns()) / 1e9)
            return types.SimpleNamespace(complete_ns=end_ns + self.ahead_ns, evictions=2)
        return wait

    def start(self, outstanding):
        self.calls.append(outstanding)

    def stop(self, timeout_s):
        self.calls.append('stop')
        self.steps_done += 100  # those that were submitted still


def test_steps_that_end_in_the_window_are_counted_on_the_hosts_clock(beside):
    feeder = beside.Submitted(Training(), Training.ahead_ns)
    begin = time.monotonic_ns()
    with feeder:
        time.sleep(0.05)
    ends = feeder.ends_ns
    assert 5 <= feeder.within(begin, time.monotonic_ns() + MS) == len(ends) <= 80
    assert feeder.within(ends[3], ends[10]) == 7
    assert feeder.evictions == 2 * len(ends)


def test_a_started_training_is_counted_until_the_run_ends(beside):
    training = Training()
    with beside.Started(training) as feeder:
        training.steps_done += 7
    assert feeder.within(0, 1) == 7
    assert training.calls == [beside.SUBMITTED, 'stop']


def test_a_gated_job_runs_while_no_request_is_active_one_step_at_a_time(beside):
    gate, launched = beside.Gate(), []
    with beside.Launched(lambda: launched.append(1), fake_torch.Stream(), gate) as feeder:
        time.sleep(0.02)
        assert not launched
        gate.open()
        time.sleep(0.05)
        gate.close()
        time.sleep(0.05)
        few = len(launched)
        time.sleep(0.02)
        assert len(launched) == few
    assert 5 <= few == len(feeder.ends_ns)


def test_an_engine_that_waits_for_the_job_never_runs_beside_a_step(beside):
    gate, running, beside_a_step = beside.Gate(), [], []

    def step():
        running.append(1)
        time.sleep(0.005)
        running.pop()

    with beside.Launched(step, fake_torch.Stream(), gate) as feeder:
        for _ in range(20):
            gate.open()
            time.sleep(0.007)
            gate.close_and_wait()
            began = time.monotonic_ns()
            beside_a_step.append(bool(running))
            time.sleep(0.002)
            assert not feeder.within(began + MS, time.monotonic_ns())
    assert not any(beside_a_step)
    assert len(feeder.ends_ns) >= 10


def test_an_eager_job_is_held_by_the_library(beside, monkeypatch):
    held = []

    @contextlib.contextmanager
    def eager_be(runtime):
        held.append(f'begin {runtime}')
        yield
        held.append('end')

    package = types.ModuleType('gpushare.torch')
    package.eager_be = eager_be
    monkeypatch.setitem(sys.modules, 'gpushare.torch', package)
    with beside.Held(lambda: held.append('step'), 'runtime') as feeder:
        time.sleep(0.02)
    assert held[:2] == ['begin runtime', 'step']
    assert held[-1] == 'end'
    assert held.count('step') == len(feeder.ends_ns) >= 2


def test_a_job_that_fails_fails_its_run(beside):
    def fails():
        raise ValueError('No step.')

    with pytest.raises(ValueError, match='No step'), beside.Launched(fails, fake_torch.Stream()):
        time.sleep(0.01)


def test_the_rate_alone_is_that_between_the_first_and_the_last_step(beside):
    assert 200 < beside.rate(beside.Submitted(Training(), Training.ahead_ns), 0.2) <= 1010
