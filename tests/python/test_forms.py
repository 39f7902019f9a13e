"""Forms of compiled steps: what is compared, and a dry run of a row whose GPU is a stub."""

import argparse
import contextlib
import importlib
import json
import pathlib
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/matrix'))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/engines'))

import campaign
import engines
import forms
import plan
from forms import Cell

FOLDERS = sys.path[:2]
MS = 1_000_000


def test_forms_are_registered_without_twins_first():
    assert [form.name for form in forms.chosen('twins,cublas')] == ['cublas', 'twins']
    with pytest.raises(ValueError, match=r"'eager' is no form\. There are cublas, segments, twins\."):
        forms.chosen('twins,eager')
    assert forms.in_order(['gpt2_twins', 'lora', 'gpt2_segments']) == ['lora', 'gpt2_segments', 'gpt2_twins']
    assert engines.parsed(['--jobs', 'gpt2_twins,gpt2_cublas']).jobs == ['gpt2_cublas', 'gpt2_twins']


@pytest.mark.parametrize(('job', 'found'), [
    ('gpt2_twins', ('gpt2', 'twins')), ('resnet50_cublas', ('resnet50', 'cublas')), ('gpt2c', ('', '')),
    ('_twins', ('', '')), ('resnet50_b32', ('', '')), ('', ('', ''))])
def test_a_job_is_a_step_in_a_form(job, found):
    assert forms.split(job) == found


def test_shares_are_of_the_kernels_time():
    kernels = [('product', 500.0), ('product', 300.0), ('norm', 50.0), ('cublas', 150.0), ('copy', 1000.0)]
    found = forms.shares(kernels, {'product', 'norm', 'unused'}, 100.0)
    assert found == {
        'with_twin_at_most_by_name': 0.425, 'evictable_at_most_by_name': 0.4,
        'long_without_twin_at_least_by_name': 0.575, 'longest_without_twin_at_least_us': 1000.0}
    assert forms.shares([('cublas', 100.0)], set(), 100.0) == {
        'with_twin_at_most_by_name': 0.0, 'evictable_at_most_by_name': 0.0,
        'long_without_twin_at_least_by_name': 0.0, 'longest_without_twin_at_least_us': 100.0}
    assert forms.shares([], set(), 100.0) == {}


def engine_row(job, steps, **more):
    return {'condition': f'library 1.05 + {job}', 'job': job, 'bound': 1.05, 'be_steps': steps, 'be_limit': 0.5,
            'window_s': 10.0, 'over_bare': {'tbt_p99': 1.01, 'ttft_p99': 1.06}, **more}


def test_be_of_an_engines_row_counts_against_the_fastest_form_of_the_same_step():
    rows = [engine_row('gpt2_twins', 200), engine_row('gpt2_cublas', 240), engine_row('lora', 100),
            {'condition': 'bare', 'job': ''}, {'condition': 'failed', 'job': 'gpt2_twins', 'failed': 'why'}]
    forms.against_fastest(rows, {'gpt2_twins': 40.0, 'gpt2_cublas': 50.0, 'resnet50_cublas': 90.0, 'lora': 70.0})
    assert [row.get('be_of_fastest') for row in rows] == [0.4, 0.48, None, None, None]
    assert [row.get('be_of_idle') for row in rows] == [0.8, 0.96, None, None, None]
    report = {'experiment': 'engines', 'rows': rows,
              'jobs': {'gpt2_twins': {'shares': {'evictable_at_most_by_name': 0.6}}, 'gpt2_cublas': {'shares': {}}}}
    assert forms.cells_of(report) == [
        Cell('LLM engine', 'gpt2', 'twins', 1.05, 1.06, 0.4, 0.8, 0.6),
        Cell('LLM engine', 'gpt2', 'cublas', 1.05, 1.06, 0.48, 0.96, None)]


def test_a_bound_is_judged_with_be_and_without():
    cells = [Cell('bert_b1', 'gpt2', 'twins', 1.02, 1.019, 0.46, 0.92, 0.6),
             Cell('dlrm_b256', 'gpt2', 'twins', 1.02, 1.03, 0.46, 0.92, 0.6),
             Cell('decode_b16', 'gpt2', 'twins', 1.02, 1.0, 0.3, 0.6, 0.6),
             Cell('bert_b1', 'gpt2', 'segments', 1.02, 1.04, 0.46, 0.92, None)]
    assert forms.verdicts(cells) == [
        'segments 1.02: kept in 0 of 1, with BE of 0.9 of the idle share in 0',
        'twins 1.02: kept in 2 of 3, with BE of 0.9 of the idle share in 1']
    lines = forms.table(cells)
    assert lines[0].endswith('| evictable (at most, by name) |')
    assert lines[2] == '| bert_b1 | gpt2 | twins, 1.02 | 1.019 | 0.460 | 0.920 | 0.600 |'
    assert lines[-1].endswith('| - |')
    assert len({line.count('|') for line in lines}) == 1


@pytest.mark.parametrize(('known', 'timed'), [(True, {'deterministic': False}), (False, {})])
def test_forms_of_products_are_timed_in_a_process_that_wants_the_same_bits(monkeypatch, known, timed):
    config = types.SimpleNamespace(**({'deterministic': True} if known else {}))
    torch = types.SimpleNamespace(manual_seed=lambda _seed: None, _inductor=types.SimpleNamespace(config=config),
                                  _dynamo=types.SimpleNamespace(config=types.SimpleNamespace()))
    triton = types.SimpleNamespace(enable=lambda *, twins: None, gemm_templates=lambda: {'max_autotune_gemm': True})
    stubs = {'torch': torch, 'torch.nn': types.SimpleNamespace(functional=None), 'torch._inductor': torch._inductor,
             'torch._inductor.config': config, 'networks': types.SimpleNamespace(), 'vision': types.SimpleNamespace(),
             'steps': types.SimpleNamespace(Step=None, autocast_step=None),
             'gpushare': types.SimpleNamespace(triton=triton), 'gpushare.triton': triton}
    for name, stub in stubs.items():
        monkeypatch.setitem(sys.modules, name, stub)
    monkeypatch.delitem(sys.modules, 'compiled_steps', raising=False)
    steps = importlib.import_module('compiled_steps')
    del sys.modules['compiled_steps']
    monkeypatch.setitem(steps.STEPS, 'gpt2', lambda options: options)
    cublas, segments, twins = (steps.made('gpt2', form, 'full') for form in forms.FORMS)
    assert cublas == (timed or None)
    assert segments == twins == {'max_autotune_gemm': True, **timed}


# --- a row ---


class Losses(list):
    """A tensor of losses."""

    def __getitem__(self, index):
        found = list.__getitem__(self, index)
        return Losses(found) if isinstance(index, slice) else found

    def view(self, _dtype):
        return self

    def __ne__(self, other):
        return Losses(left != right for left, right in zip(self, other, strict=True))

    def isfinite(self):
        return Losses(one == one for one in self)

    def sum(self):
        return Number(sum(self))

    def all(self):
        return Number(all(self))


class Number:
    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class Step:
    def __init__(self, name, form, search):
        self.name, self.form, self.search = name, form, search
        self.state, self.losses, self.count = (), Losses([2.0, 1.0, 0.5]), Number(2)

    def __call__(self):
        pass


STEP_NS = {'cublas': 10 * MS, 'segments': 12 * MS, 'twins': 12 * MS}


class World:
    """What the row's modules are made of. `now` is the clock of the limit."""

    def __init__(self):
        self.made, self.registered, self.closed, self.runs, self.now = [], [], [], [], 0.0
        self.run_s = 1.0  # by which each run moves the clock
        self.profiled, self.written = [], []
        self.compilation_s = self.registration_s = 0.0  # by which each moves the clock

    def write(self, arguments, rows):
        self.written.append(json.loads(json.dumps(rows)))

    def run(self, name, count):
        self.now += self.run_s
        self.runs.append(name)
        return {'latencies': [MS] * count, 'window_ns': 2 * count * MS}


def modules(world):
    class Way:
        def __init__(self, name, service, step, streams):
            self.name = name

        def rate(self, runs):
            return STEP_NS[self.name]

        def solo(self):
            return MS

        def run(self, arrivals):
            return {**world.run(self.name, len(arrivals)), 'steps': 0}

    class Training:
        def __init__(self, runtime, step, *, state, name, kernel_options):
            world.now += world.registration_s
            world.registered.append((name, kernel_options))
            self.name, self.form, self.unconfinable = name, step.form, ''

        def __enter__(self):
            return self

        def __exit__(self, *_):
            world.closed.append(self.name)

    class Row:
        def __init__(self, service, step, arguments):
            self.service, self.step_name, self.arguments, self.runs = service, step, arguments, {}

        def _ways(self, plain, greens):
            assert plain is None
            self.absent = {}
            return {'alone': Way('alone', None, None, None)}

        def _library(self, name, arrivals, promise, training):
            assert name == f'library {promise} {training.form.name}'
            self._keep(name, {**world.run(name, len(arrivals)), 'steps': 9})

        def _keep(self, name, run):
            self.runs.setdefault(name, []).append(run)

        def _summary(self, name):
            runs = self.runs[name]
            window = sum(run['window_ns'] for run in runs)
            found = {'p99_over_alone': 1.01, 'load': 0.4}
            if 'steps' in runs[0]:
                found['be'] = sum(run['steps'] for run in runs) * self.step_ns / window
            return found

    def made(name, form, search):
        world.now += world.compilation_s
        world.made.append((name, form.name, search))
        return Step(name, form, search)

    cuda = types.SimpleNamespace(synchronize=lambda: None, Stream=lambda: object())
    compiled = types.SimpleNamespace(
        SEARCHES={'short': {}, 'full': {}}, made=made,
        kernels_us=lambda step: world.profiled.append(step) or [('product', 600.0), ('cublas', 400.0)])
    twins = [types.SimpleNamespace(name=name, state=state, reason=reason) for name, state, reason in
             (('product', 'made', ''), ('other', 'known', ''), ('third', 'failed', 'No worker fits.'))]
    return {
        'torch': types.SimpleNamespace(cuda=cuda, int32='int32'), 'compiled_steps': compiled,
        'unprepared': types.SimpleNamespace(Row=Row, RATE_S=0.1, LOSSES_MAX=100, write=world.write),
        'baselines': types.SimpleNamespace(Way=Way, undisturbed=contextlib.nullcontext),
        'gpushare.torch': types.SimpleNamespace(Training=Training),
        'gpushare.triton': types.SimpleNamespace(twins=lambda runtime: twins)}


@pytest.fixture
def world(monkeypatch):
    import gpushare
    found = World()
    for name, module in modules(found).items():
        monkeypatch.setitem(sys.modules, name, module)
        package, _, short = name.partition('.')
        if package == 'gpushare':
            monkeypatch.setattr(gpushare, short, module, raising=False)
    monkeypatch.delitem(sys.modules, 'form_rows', raising=False)
    monkeypatch.setattr(plan.time, 'monotonic', lambda: found.now)
    found.rows = importlib.import_module('form_rows')
    yield found
    sys.modules.pop('form_rows', None)


def arguments_of(world, *words):
    parser = argparse.ArgumentParser()
    for option, value in {'load': 0.5, 'queries': 200, 'rounds': 2, 'seed': 1, 'window_s': 0.0}.items():
        parser.add_argument(f'--{option}', type=type(value), default=value)
    parser.add_argument('--promises', default='1.02,1.05')
    world.rows.add_options(parser)
    return parser.parse_args(['--forms', 'cublas,segments,twins', *words])


def service():
    info = types.SimpleNamespace(node_count=9, segment_count=5, evictable_segments=2, longest_segment_ns=600_000,
                                 whole_reason='')
    sharing = types.SimpleNamespace(runtime=types.SimpleNamespace(kernel_info=lambda name: info),
                                    rate=lambda training, runs: 11 * MS)
    answer = types.SimpleNamespace(fill_=lambda value: None)
    return types.SimpleNamespace(name='bert_b1', call=None, sharing=sharing, answer=answer, check=lambda what: None)


def measured(world, *words):
    arguments = arguments_of(world, *words)
    return world.rows.FormsRow.of(arguments)(service(), 'gpt2', arguments).measure({})


def test_a_row_has_every_form_under_every_bound_and_bare_in_each_round(world):
    row = measured(world)
    beside = [f'library {bound} {form}' for bound in ('1.02', '1.05') for form in ('cublas', 'segments', 'twins')]
    assert world.runs == ['alone', *beside, 'alone', *beside[1:], beside[0]]
    assert row['left_out'] == []
    assert row['step_us'] == 10_000.0, 'the fastest form alone'
    assert row['forms']['twins']['step_us'] == 12_000.0
    # 18 steps of 10 ms in 400 ms, of which 0.6 are idle.
    assert row['conditions']['library 1.05 twins']['be_of_idle'] == pytest.approx(0.75)
    assert 'be_of_idle' not in row['conditions']['alone']
    assert row['bits'] == {'compared': 2, 'differ': 0}
    assert world.rows.FormsRow.is_right(row)
    json.dumps(row)
    assert len(forms.cells_of({'rows': [row]})) == 6


def test_only_the_twins_form_makes_twins_and_it_is_registered_last(world):
    row = measured(world, '--segment-us', '50')
    assert [options for _, options in world.registered] == [
        {'node_twins': False, 'segment_ns': 50_000}, {'node_twins': False, 'segment_ns': 50_000},
        {'node_twins': True, 'segment_ns': 50_000}]
    assert row['forms']['twins']['twins'] == {'failed': 1, 'known': 1, 'made': 1}
    assert row['forms']['twins']['no_twins'] == [['third', 'No worker fits.']]
    assert len(world.closed) == 3


def test_the_shares_are_measured_behind_all_rows_and_are_in_the_file(world, capsys):
    arguments = arguments_of(world)
    kind = world.rows.FormsRow.of(arguments)
    for step in ('gpt2', 'resnet50'):
        kind(service(), step, arguments).measure({})
    assert world.profiled == []
    kind.finish(arguments)
    assert len(world.profiled) == 6
    assert len(world.written[-1]) == 2
    for row in world.written[-1]:
        assert 'partial' not in row
        assert [facts['shares']['evictable_at_most_by_name'] for facts in row['forms'].values()] == [0.0, 0.0, 0.6]
    assert 'twins 1.05: kept in 2 of 2' in capsys.readouterr().out


def test_rows_of_a_process_share_their_compiled_steps(world):
    arguments = arguments_of(world, '--search', 'full')
    kind = world.rows.FormsRow.of(arguments)
    for _ in range(2):
        kind(service(), 'gpt2', arguments).measure({})
    assert world.made == [('gpt2', form, 'full') for form in ('cublas', 'segments', 'twins')]


def test_no_run_begins_that_would_end_behind_the_limit(world):
    world.run_s = 10.0
    row = measured(world, '--limit-s', '45')
    assert len(world.runs) == 5
    assert row['left_out'] == ['library 1.05 segments, round 0', 'library 1.05 twins, round 0', 'alone, round 1']
    assert 'library 1.05 twins' not in row['conditions']


def test_a_row_without_time_for_a_run_has_none(world):
    row = measured(world, '--limit-s', '0')
    assert row['conditions'] == {} and row['left_out'] == [
        'cublas: compilation', 'segments: compilation', 'twins: compilation', 'alone, round 0', 'alone, round 1']
    assert forms.cells_of({'rows': [row]}) == []
    assert not world.rows.FormsRow.is_right(row), 'nothing was measured'
    world.rows.FormsRow.show(row)


def test_a_form_whose_compilation_has_no_room_is_left_out(world):
    world.compilation_s = 30.0
    row = measured(world, '--limit-s', '75')
    assert [form for _, form, _ in world.made] == ['cublas', 'segments']
    assert row['left_out'] == ['twins: compilation'] and list(row['forms']) == ['cublas', 'segments']
    assert 'library 1.05 segments' in row['conditions'], 'the forms that are there still run'
    assert row['bits'] == {} and world.rows.FormsRow.is_right(row)


def test_a_form_whose_registration_has_no_room_is_left_out(world):
    world.registration_s = 14.0
    row = measured(world, '--limit-s', '35')
    assert len(world.registered) == 2
    assert row['left_out'][0] == 'twins: registration' and list(row['forms']) == ['cublas', 'segments']
    assert row['bits'] == {}, 'the losses of a step that is not registered are compared with none'
    assert 'library 1.02 segments' in row['conditions']


def test_a_process_that_is_ended_leaves_what_it_measured(world):
    row = measured(world)
    partial = [rows[0]['partial'] for rows in world.written]
    assert partial[:8] == [*(f'{form}: {what}' for what in ('compilation', 'registration')
                             for form in ('cublas', 'segments', 'twins')), 'alone, round 0',
                           'library 1.02 cublas, round 0']
    assert partial[-1] == 'what is known behind the runs' and 'partial' not in row
    assert [list(rows[0]['forms']) for rows in world.written[4:6]] == [['cublas'], ['cublas', 'segments']]
    assert list(world.written[7][0]['conditions']) == ['alone']
    assert world.written[-1][0]['conditions'] == row['conditions']
    assert {cell.lc for cell in forms.cells_of({'rows': world.written[-1]})} == {'bert_b1 (partial row)'}


def test_a_row_that_fails_in_the_middle_stays_in_the_file(world, monkeypatch):
    arguments = arguments_of(world)
    kind = world.rows.FormsRow.of(arguments)

    def fails(self, name, arrivals, promise, training):
        raise RuntimeError('a run that fails')
    with monkeypatch.context() as patch:
        patch.setattr(kind, '_library', fails)
        with pytest.raises(RuntimeError, match='a run that fails'):
            kind(service(), 'gpt2', arguments).measure({})
    row = kind(service(), 'resnet50', arguments).measure({})
    failed, right = kind.kept([row])
    assert failed['partial'] == 'library 1.02 cublas, round 0' and list(failed['conditions']) == ['alone']
    assert right is row
    kind.finish(arguments)
    assert failed['forms']['twins']['shares']


def test_a_loss_that_is_no_number_fails_the_row(world, monkeypatch):
    row = measured(world)
    row['forms']['twins']['finite'] = False
    assert not world.rows.FormsRow.is_right(row)


def test_an_engines_job_has_the_shares_of_its_own_form(world):
    for job, evictable in (('gpt2_twins', 0.6), ('gpt2_segments', 0.0)):
        assert engines.Bench.shares(None, job, object())['evictable_at_most_by_name'] == evictable


# --- the campaign ---


def test_the_items_of_forms_run_only_where_they_are_named():
    on_request = [item.name for item in campaign.ITEMS if item.on_request]
    assert on_request == ['forms', 'forms_engine', 'forms_resnet']
    assert not any(item.on_request for item in campaign.chosen(campaign.DEFAULT))
    first, second = campaign.chosen('forms,forms_engine')
    assert first.least_s + second.least_s + 2 * campaign.END_S <= 300
    assert campaign.given_s(first, 300) == first.most_s
    assert campaign.given_s(second, 300 - first.most_s) >= second.least_s, 'both fit into 300 s'


# With a PyTorch of which every part is a stub.
def test_the_items_of_services_are_commands_that_it_takes(run_python):
    program = f"""
        import pathlib, sys, types
        from unittest import mock
        sys.path[:0] = {FOLDERS!r}
        inner = ('_place_captures', '_tensors', '_warm_memory')
        for name in ('torch', 'torch.nn', 'torch.nn.functional', 'torch.nn.attention', 'torchvision', 'torch._inductor',
                     'torch._inductor.config', 'gpushare.torch',
                     *(f'gpushare.torch.{{name}}' for name in inner)):
            sys.modules[name] = mock.MagicMock()
        sys.modules['torch'].nn.Module = sys.modules['torch.nn'].Module = type('Module', (), {{}})
        import campaign, jobs, services
        for item in campaign.ITEMS:
            if item.command.startswith('services.py'):
                given = services.parsed(campaign.command_of(item, 150, pathlib.Path('out.json'))[2:])
                print(item.name, given.services, given.steps, given.promises, given.rounds, given.seconds)
        print(services.parsed([]).steps, services.parsed(['--forms', 'twins']).rounds)
        print([jobs.kernel_options(job) for job in ('lora', 'gpt2_segments', 'gpt2_twins')])
        import compiled_steps, forms, gpushare.triton
        gpushare.triton.enable = lambda *, twins: print('twins', twins)
        compiled_steps.STEPS = dict(gpt2=lambda options: options)
        for form, search in (('cublas', 'short'), ('segments', 'short'), ('twins', 'full')):
            print(len(compiled_steps.made('gpt2', forms.chosen(form)[0], search) or ()))
        services.parsed(['--forms', 'eager'])
    """
    lines = run_python(program, expected=2).splitlines()
    assert lines[:4] == ['forms bert_b1,dlrm_b256,decode_b16 gpt2 1.02,1.05 1 130.0',
                         'forms_resnet bert_b1,dlrm_b256,decode_b16 resnet50 1.02,1.05 1 130.0',
                         'lora,gpt2c,vit 2', "[{'node_twins': False}, {'node_twins': False}, {'node_twins': True}]"]
    assert lines[4:10] == ['twins True', '1', 'twins True', '5', 'twins True', '4'], 'options of each compilation'
    assert "'eager' is no form" in lines[-1]


def test_a_process_that_is_ended_in_a_write_leaves_the_report_before(run_python, tmp_path):
    program = f"""
        import pathlib, sys, types
        from unittest import mock
        sys.path[:0] = {FOLDERS!r}
        for name in ('torch', 'torch.nn', 'torch.nn.functional', 'torch.nn.attention', 'torchvision', 'torch._inductor',
                     'torch._inductor.config', 'gpushare.torch',
                     *(f'gpushare.torch.{{name}}' for name in ('_place_captures', '_tensors', '_warm_memory'))):
            sys.modules[name] = mock.MagicMock()
        torch = sys.modules['torch']
        torch.nn.Module = sys.modules['torch.nn'].Module = type('Module', (), {{}})
        torch.cuda.get_device_name, torch.__version__ = lambda: 'a GPU', '2'
        import unprepared
        given = types.SimpleNamespace(out={str(tmp_path / 'rows.json')!r})
        unprepared.write(given, [1])
        unprepared.write(types.SimpleNamespace(out=''), [2])
        write_text = pathlib.Path.write_text
        def half(path, text, **options):
            write_text(path, text[:len(text) // 2], **options)
            raise KeyboardInterrupt
        pathlib.Path.write_text = half
        try:
            unprepared.write(given, [1, 2])
        except KeyboardInterrupt:
            print('ended')
    """
    assert 'ended' in run_python(program).splitlines()
    report = json.loads((tmp_path / 'rows.json').read_text(encoding='utf-8'))
    assert report['gpu'] == 'a GPU' and report['rows'] == [1]


def test_the_campaigns_table_has_the_forms(tmp_path, world):
    row = measured(world)
    (tmp_path / 'forms.json').write_text(json.dumps({'rows': [row]}), encoding='utf-8')
    item, = campaign.chosen('forms')
    assert campaign.rows_of(item, tmp_path / 'forms.json') == [], 'its rows are none of an engine'
    assert len(campaign.cells_of(tmp_path / 'forms.json')) == 6
    assert campaign.cells_of(tmp_path / 'missing.json') == []
