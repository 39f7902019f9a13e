"""What the matrix benchmark computes without a GPU: arrivals, the peak, the plan, finished rows, summaries."""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/matrix'))

import arrivals
import finished
import matrix
import matrix_plan
import paired
import plot
import summary
import today
from matrix_plan import PEAK, Row

SETTING = {'commit': 'abc', 'profile': 'def', 'queries': 1200}


def line(service='bert_b1', be='mriq', load=PEAK, policies=None, setting=SETTING):
    """A row of the file; policies: name to (p99 over alone, BE)."""
    figures = {name: {'p99_over_alone': ratio, 'p99_over_alone_95': [ratio, ratio], 'p50_over_alone': 1.0,
                      'p99_us': 100 * ratio, 'be': share}
               for name, (ratio, share) in (policies or {'adaptive': (1.0, 0.5)}).items()}
    return {'setting': setting, 'service': service, 'be': be, 'load': load, 'gpu': 'H200', 'target_us': 400,
            'solo_us': 50, 'conditions': figures}


# --- arrivals and the peak ---


def test_arrivals_repeat_by_seed_and_scale_with_the_gap():
    assert arrivals.poisson(3, 50, 1000) == arrivals.poisson(3, 50, 1000)
    assert arrivals.poisson(3, 50, 1000) != arrivals.poisson(4, 50, 1000)
    slow = arrivals.poisson(3, 50, 2000)
    assert all(abs(two - 2 * one) <= 2 for one, two in zip(arrivals.poisson(3, 50, 1000), slow, strict=True))
    gaps = arrivals.poisson(1, 20000, 1000)[-1] / 20000
    assert gaps == pytest.approx(1000, rel=0.03)


def test_quantile_is_by_nearest_rank():
    values = list(range(1, 101))
    assert arrivals.quantile(values, 0.99) == 99
    assert arrivals.quantile(values, 0.5) == 50
    assert arrivals.quantile([7], 0.99) == 7


def test_a_round_of_short_queries_fills_its_window():
    assert arrivals.queries_of_round(1200, 2, 10e6, 2) == 600
    assert arrivals.queries_of_round(1200, 2, 1e6, 2) == 2000
    assert arrivals.queries_of_round(1200, 1, 0.12e6, 2) == 16667


def test_the_slowest_queries_stand_in_their_order():
    assert arrivals.slowest([1000, 9000, 2000, 8500, 3000], 3) == [[1, 9.0], [3, 8.5], [4, 3.0]]
    assert arrivals.slowest([7, 7, 7], 2) == [[0, 0.0], [1, 0.0]]
    assert arrivals.slowest([], 2) == []


def test_a_query_waits_for_those_before_it():
    assert arrivals.latencies([0, 10, 250], [100]) == [100, 190, 100]
    assert arrivals.latencies([0, 10], [100], overhead_ns=5) == [105, 195]


def test_service_times_are_distances_of_ends_while_a_queue_waits():
    given = [800 * number for number in range(20)]
    found = [int(one) for one in arrivals.latencies(given, [1000.0, 1200.0], overhead_ns=70)]
    assert arrivals.busy_distances(given, found) == [1200.0, 1000.0] * 9 + [1200.0]


def test_peak_load_keeps_the_target_and_a_little_more_breaks_it():
    peak = arrivals.peak_load([1000.0], 0, 8000)

    def p99(load):
        return arrivals.quantile(
            arrivals.latencies(arrivals.poisson(1, arrivals.SEARCH_QUERIES, 1000 / load), [1000.0]), 0.99)

    assert p99(peak) <= 8000 < p99(peak + 0.02)
    assert 0.65 < peak < 0.85  # of an M/D/1 queue whose p99 is eight service times
    assert arrivals.peak_load([1000.0], 0, 4000) < peak
    assert arrivals.peak_load([1000.0], 0, 500) == pytest.approx(0, abs=1e-3)  # no load keeps it


# --- the plan ---


def test_the_full_plan_has_every_pair_at_every_load():
    for service in matrix_plan.SERVICES:
        rows = matrix_plan.rows_of(service, full=True)
        for load in ('0.3', '0.5', PEAK):
            assert {row.be for row in rows if row.load == load} >= set(matrix_plan.PROGRAMS)
        assert rows[0] == Row(service, matrix_plan.ALONE, '0.5', ('adaptive',))
    wide = [row for service in matrix_plan.SERVICES for row in matrix_plan.rows_of(service, full=True)
            if row.policies == matrix_plan.ALL]
    assert len(wide) >= 12


def test_the_short_plan_begins_with_load_half_and_has_priority_on_four_pairs():
    for service in matrix_plan.SERVICES:
        rows = matrix_plan.rows_of(service, full=False)[:10]
        assert [row.load for row in rows] == 6 * ['0.5'] + [PEAK] + 3 * ['0.5']
        assert {row.be for row in rows if row.load == '0.5'} > set(matrix_plan.KERNELS)
    heads = [matrix_plan.rows_of(service, full=False)[:7] for service in matrix_plan.SERVICES]
    assert {row.be for rows in heads for row in rows[:6]} == set(matrix_plan.PROGRAMS)
    assert len({rows[6].be for rows in heads}) > 6
    everything = [row for service in matrix_plan.SERVICES for row in matrix_plan.rows_of(service, full=False)]
    assert sum('priority' in row.policies for row in everything) == 4
    assert len(set(everything)) == len(everything) == 10 * (1 + 3 * 12)


def test_what_a_limit_cuts_differs_between_services():
    second = {matrix_plan.rows_of(service, full=False)[1].be for service in matrix_plan.SERVICES}
    assert len(second) > 5


def test_longer_queries_get_a_longer_share_of_the_time():
    names = ['vgg16_b1', 'densenet121_b1']
    assert matrix_plan.share_of('densenet121_b1', names) > 1.5 * matrix_plan.share_of('vgg16_b1', names)
    assert sum(matrix_plan.share_of(name, names) for name in names) == pytest.approx(1)
    assert matrix_plan.share_of('vgg16_b1', ['vgg16_b1']) == 1


def test_the_smoke_form_uses_every_program():
    rows = [row for service in matrix_plan.SMOKE for row in matrix_plan.smoke_rows(service)]
    assert {row.be for row in rows} == set(matrix_plan.PROGRAMS)
    assert matrix_plan.FOUR in {row.policies for row in rows}


def test_the_today_plan_has_a_kernel_and_then_a_training_step_of_each_service():
    rows = [matrix_plan.today_rows(service) for service in matrix_plan.SERVICES]
    assert {row.be for row, _ in rows} == set(matrix_plan.KERNELS)
    assert {row.be for _, row in rows} == set(matrix_plan.TRAININGS)
    assert {row.load for pair in rows for row in pair} == {'0.5'}
    assert {row.policies for pair in rows for row in pair} == {('adaptive', *matrix_plan.BASELINES)}
    assert set(matrix_plan.BASELINES) == {'streams', 'priorities', 'gated', 'green64', 'green96'}


def test_a_baseline_far_from_any_bound_has_fewer_queries():
    assert [matrix_plan.queries_of(name, 600) for name in ('streams', 'priorities', 'gated', 'green64', 'adaptive')] \
        == [240, 240, 600, 600, 600]


def test_given_policies_replace_those_of_every_row_and_leave_no_row_twice():
    rows = matrix_plan.rows_of('bert_b1', full=True)
    wide = [row for row in rows if row.policies == matrix_plan.ALL]
    found = matrix_plan.with_policies(rows, ['adaptive', 'gated'])
    assert len(found) == len(rows) - len(wide) == len(set(found))
    assert {row.policies for row in found if row.be} == {('adaptive', 'gated')}
    assert [row.policies for row in found if not row.be] == [('adaptive',)]  # nothing to gate
    assert all(row.be for row in matrix_plan.with_policies(rows, ['streams']))


def wanted(monkeypatch, *given):
    monkeypatch.setattr(sys, 'argv', ['matrix.py', '--out', 'rows.jsonl', '--worker', 'vgg16_b1', '--commit', 'abc',
                                      *given])
    arguments = matrix.parsed()
    return arguments, matrix.rows_wanted(arguments)


def test_the_options_choose_one_pair_under_named_policies(monkeypatch):
    _, rows = wanted(monkeypatch, '--loads', '0.5', '--programs', 'mriq,resnet50_b32', '--policies',
                     'adaptive,streams,green64')
    assert sorted(rows, key=lambda row: row.be) == [
        Row('vgg16_b1', '', '0.5', ('adaptive',)), Row('vgg16_b1', 'mriq', '0.5', ('adaptive', 'streams', 'green64')),
        Row('vgg16_b1', 'resnet50_b32', '0.5', ('adaptive', 'streams', 'green64'))]
    _, rows = wanted(monkeypatch, '--smoke', '--policies', 'gated')
    assert {row.policies for row in rows} == {('gated',)}


def test_the_today_form_has_600_queries_and_the_services_of_the_whole_matrix(monkeypatch):
    arguments, rows = wanted(monkeypatch, '--today')
    assert (arguments.queries, arguments.rounds, arguments.form) == (600, 1, 'today')
    assert arguments.services.split(',') == list(matrix_plan.SERVICES)
    assert rows == matrix_plan.today_rows('vgg16_b1')
    assert wanted(monkeypatch)[0].form == 'full'


# --- the processes ---


def processes(monkeypatch, programs):
    """Each service is a small program instead; it gets its deadline as a line."""
    started = []

    def start(name, _arguments):
        started.append(name)
        return subprocess.Popen([sys.executable, '-c', programs[name]], stdin=subprocess.PIPE, text=True)

    monkeypatch.setattr(matrix, 'start', start)
    monkeypatch.setattr(matrix, 'PATIENCE_S', 0.5)
    return started


def arguments(tmp_path, names, seconds=4.0):
    return argparse.Namespace(out=tmp_path / 'rows.jsonl', seconds=seconds, services=','.join(names))


def test_a_service_that_fails_or_hangs_does_not_stop_the_others(monkeypatch, tmp_path):
    told = tmp_path / 'told'
    programs = {'fails': 'raise SystemExit(1)', 'hangs': 'import time; time.sleep(60)',
                'works': f'open({str(told)!r}, "w").write(input())'}
    started = processes(monkeypatch, programs)
    began = time.monotonic()
    assert matrix.run_services(arguments(tmp_path, ['fails', 'hangs', 'works'])) == 1
    assert started == ['fails', 'hangs', 'works']
    assert float(told.read_text()) > began  # the last one had time left
    assert time.monotonic() - began < 20


def test_services_share_the_time_that_is_left(monkeypatch, tmp_path):
    names = ['one', 'two', 'three']
    processes(monkeypatch, {name: f'open({str(tmp_path / name)!r}, "w").write(input())' for name in names})
    began = time.monotonic()
    assert matrix.run_services(arguments(tmp_path, names, seconds=60)) == 0
    deadlines = [float((tmp_path / name).read_text()) - began for name in names]
    assert deadlines == [pytest.approx(20, abs=2), pytest.approx(30, abs=3), pytest.approx(60, abs=2)]


def test_without_a_gpu_no_further_service_is_begun(monkeypatch, tmp_path):
    programs = {'one': 'raise SystemExit(77)', 'two': 'input()', 'three': 'input()'}
    started = processes(monkeypatch, programs)
    assert matrix.run_services(arguments(tmp_path, list(programs))) == 77
    assert 'three' not in started


# --- finished rows ---


def test_a_finished_row_is_skipped_under_the_same_setting_only(tmp_path):
    path = tmp_path / 'rows.jsonl'
    row = Row('bert_b1', 'mriq', PEAK, ('adaptive', 'baymax'))
    finished.Finished(path, SETTING).add(row, {'conditions': {'adaptive': {}, 'baymax': {}}})
    assert finished.Finished(path, SETTING).has(row)
    assert not finished.Finished(path, {**SETTING, 'commit': 'other'}).has(row)
    assert not finished.Finished(path, {**SETTING, 'profile': 'other'}).has(row)
    assert not finished.Finished(path, SETTING).has(Row('bert_b1', 'lbm', PEAK, ('adaptive',)))
    assert not finished.Finished(path, SETTING).has(Row('bert_b1', 'mriq', PEAK, ('adaptive', 'tacker')))


def test_a_condition_that_cannot_run_does_not_bring_its_row_back(tmp_path):
    path = tmp_path / 'rows.jsonl'
    row = Row('bert_b1', 'resnet50_b32', '0.5', ('adaptive', 'green64'))
    finished.Finished(path, SETTING).add(row, {'conditions': {'adaptive': {}}, 'absent': {'green64': 'clusters'}})
    assert finished.Finished(path, SETTING).has(row)
    assert not finished.Finished(path, SETTING).has(Row('bert_b1', 'resnet50_b32', '0.5', ('adaptive', 'green96')))


def test_a_failed_row_and_a_line_cut_off_are_measured_again(tmp_path):
    path = tmp_path / 'rows.jsonl'
    row = Row('bert_b1', 'mriq', PEAK, ('adaptive',))
    finished.Finished(path, SETTING).add(row, {'failed': 'no memory'})
    whole = json.dumps(line(be='lbm'))
    path.write_text(path.read_text() + whole[:len(whole) // 2])
    again = finished.Finished(path, SETTING)
    assert not again.has(row)
    assert not again.has(Row('bert_b1', 'lbm', PEAK, ('adaptive',)))
    again.add(row, {'conditions': {'adaptive': {}}})  # on a line of its own
    assert finished.Finished(path, SETTING).has(row)


# --- statistics ---


def test_the_interval_of_a_mean_has_the_known_width():
    values = [float(number % 10) for number in range(400)]
    low, high = paired.interval(values)
    half = 1.96 * math.sqrt(8.25 / 400)
    assert low == pytest.approx(4.5 - half, abs=0.05)
    assert high == pytest.approx(4.5 + half, abs=0.05)
    assert paired.interval([2.0] * 5) == (2.0, 2.0)


def test_geometric_mean():
    assert paired.geometric_mean([1, 4]) == pytest.approx(2)


def test_a_common_factor_of_paired_latencies_has_a_narrow_interval():
    alone = [float(at * 7919 % 1000 + 100) for at in range(1200)]
    low, high = paired.quantile_ratio_interval([1.2 * one for one in alone], alone, 0.99)
    assert (low, high) == (pytest.approx(1.2), pytest.approx(1.2))
    low, high = paired.quantile_ratio_interval(list(reversed(alone)), alone, 0.99)
    assert low < 1 < high


# --- summaries ---


def rows():
    return [line(be='mriq', policies={'adaptive': (1.0, 0.8), 'baymax': (1.1, 0.4), 'tacker': (5.0, 0.4)}),
            line(be='lbm', policies={'adaptive': (1.07, 0.2), 'baymax': (1.0, 0.4), 'tacker': (1.0, 0)}),
            line(be='', load='0.5'),
            line(be='mriq', load='0.5', policies={'adaptive': (1.04, 0.6)})]


def test_ratios_are_of_the_pairs_that_both_policies_ran():
    records = summary.conditions(rows())
    found = summary.over(records, PEAK, 'adaptive', 'baymax')
    assert found['geometric_mean'] == pytest.approx(1.0)  # 2 and 0.5
    assert (found['pairs'], found['least'], found['most']) == (2, 0.5, 2.0)
    starved = summary.over(records, PEAK, 'tacker', 'baymax')
    assert (starved['pairs'], starved['without_ratio'], starved['geometric_mean']) == (2, 1, 1.0)


def test_shares_within_bounds_leave_out_rows_without_be():
    records = summary.conditions(rows())
    found = summary.of_policy(records, PEAK, 'adaptive')
    assert (found['within_1.05'], found['within_1.10'], found['be']) == (0.5, 1.0, 0.5)
    assert summary.of_policy(records, '0.5', 'adaptive')['pairs'] == 1
    assert summary.of_policy(records, PEAK, 'tacker')['kept'] == 0.5  # 500 us of 400


def test_a_later_line_replaces_an_earlier_one_and_a_failure():
    lines = [{**line(), 'conditions': {}, 'failed': 'no memory'}, line(), line(policies={'adaptive': (2.0, 0.1)})]
    assert summary.failures(lines) == []
    assert [one['be'] for one in summary.conditions(lines)] == [0.1]
    assert len(summary.failures([line(), {**line(), 'failed': 'late'}])) == 1


def test_the_tables_name_every_row_and_every_failure():
    text = summary.markdown([*rows(), {'setting': SETTING, 'service': 'vgg16_b1', 'be': 'cp', 'load': '0.3',
                                       'failed': 'RuntimeError: gone'}])
    assert '| peak80 | bert_b1 | lbm | adaptive | 1.070 (1.070 to 1.070) | 1.000 | 0.200 |' in text
    assert '5.000 (5.000 to 5.000), target missed' in text
    assert 'failed: vgg16_b1 beside cp, 0.3: RuntimeError: gone' in text
    assert all(len(row.split('|')) <= 9 for row in text.splitlines())


def test_the_summary_has_a_plot_for_each_load_and_one_of_the_pairs_with_a_baseline(tmp_path, monkeypatch):
    (tmp_path / 'rows.jsonl').write_text(''.join(json.dumps(one) + '\n' for one in today_lines()))
    monkeypatch.setattr(sys, 'argv', ['summary.py', str(tmp_path / 'rows.jsonl'), '--svg', str(tmp_path / 'plot.svg'),
                                      '--out', str(tmp_path / 'tables.md')])
    assert summary.main() == 0
    assert sorted(path.name for path in tmp_path.glob('*.svg')) == [
        'plot-0.5-today.svg', 'plot-0.5.svg', f'plot-{PEAK}-today.svg', f'plot-{PEAK}.svg']
    assert '4 pairs of a service' in (tmp_path / 'plot-0.5.svg').read_text()
    assert '3 pairs of a service' in (tmp_path / 'plot-0.5-today.svg').read_text()


# --- the library beside what users do today ---


def today_lines():
    every = {'adaptive': (1.02, 0.5), 'streams': (50.0, 0.9), 'gated': (1.5, 0.6), 'green64': (1.4, 0.55)}
    return [line(load='0.5', policies=every),
            line(be='lbm', load='0.5', policies={**every, 'adaptive': (1.08, 0.4), 'green64': (1.04, 0.5)}),
            {**line(be='resnet50_b32', load='0.5',
                    policies={name: every[name] for name in ('adaptive', 'streams', 'gated')}),
             'absent': {'green64': 'CUDA error: cluster misconfiguration'}},
            line(be='cp', load='0.5', policies={'adaptive': (9.0, 0.1)}),  # without a baseline
            line(be='cp', policies={'adaptive': (9.0, 0.1), 'streams': (9.0, 0.1)})]  # at another load


def test_the_today_table_has_the_pairs_with_a_baseline_only():
    found = {one['condition']: one for one in today.summary_of(today.pairs_of_rows(today_lines(), '0.5'))}
    assert list(found) == ['adaptive', 'streams', 'gated', 'green64']
    assert found['adaptive'] == {'condition': 'adaptive', 'pairs': 3, 'p99_over_alone': 1.04,
                                 'p99_over_alone_median': 1.02, 'p99_over_alone_max': 1.08, 'be': 0.4667,
                                 'within_1.05': 2}
    assert (found['green64']['pairs'], found['green64']['within_1.05'], found['green64']['be']) == (2, 1, 0.525)


def test_the_summary_names_the_today_table_and_what_cannot_run():
    text = summary.markdown(today_lines())
    assert '| gpushare adaptive | 1.040, 1.020 | 1.080 | 0.467 | 2 of 3 |' in text
    assert '- cannot run: bert_b1 beside resnet50_b32, 0.5, green64: CUDA error: cluster misconfiguration' in text
    assert [one['condition'] for one in summary.summary(today_lines())['today'][PEAK]] == ['adaptive', 'streams']
    assert 'users do today' not in summary.markdown(rows())


def test_the_report_of_unprepared_steps_counts_by_its_bound_of_five_percent():
    def figures(ratio, be):
        return {'p99_over_alone': ratio, 'be': be}

    report = {'rows': [{'service': 'bert_b1', 'step': 'gpt2', 'load': 0.5, 'conditions': {
        'alone': figures(1.0, 0), 'green 64/68': figures(1.4, 0.6), 'library alone': {'p99_over_alone': 1.0},
        'library 1.05': figures(1.02, 0.5), 'library 1.20': figures(1.1, 0.5), 'gated': figures(4.0, 0.7)}}]}
    assert {one.condition: one.be for one in today.pairs_of_unprepared(report, '0.5')} \
        == {'green64': 0.6, 'adaptive': 0.5, 'gated': 0.7}
    assert today.pairs_of_unprepared(report, '0.3') == []


def test_the_plot_of_the_readme_is_that_of_its_data(tmp_path, monkeypatch):
    root = pathlib.Path(__file__).resolve().parents[2]
    monkeypatch.setattr(sys, 'argv', ['today.py', str(root / 'benchmarks/results/h200_unprepared_again.json'), '--svg',
                                      str(tmp_path / 'plot.svg'), '--out', str(tmp_path / 'table.md')])
    assert today.main() == 0
    assert (tmp_path / 'plot.svg').read_text() == (root / 'docs/h200_today.svg').read_text()
    assert 'gpushare adaptive' in (tmp_path / 'table.md').read_text()


def inside(box):
    return (box.x1 >= plot.LEFT and box.x2 <= plot.WIDTH - plot.RIGHT and box.y1 >= plot.TOP
            and box.y2 <= plot.HEIGHT - plot.BOTTOM)


def test_the_today_plot_has_a_mark_for_each_pair_and_one_for_each_condition():
    text = today.plot(today.pairs_of_rows(today_lines(), '0.5'), 'GPU <1>', '0.5')
    root = xml.etree.ElementTree.fromstring(text)
    marks = [one for one in root.iter() if one.tag.split('}')[1] in ('circle', 'polygon')]
    assert len(marks) == 3 + 3 + 3 + 2 + 4
    texts = [one.text for one in root.iter() if one.tag.endswith('text')]
    assert 'GPU <1>, load 0.5, 3 pairs of a service and BE work' in texts
    assert {'gpushare adaptive', 'plain streams', 'gated by hand', 'green contexts, 64 SMs (2 pairs)'} <= set(texts)
    assert 'script' not in text and 'href' not in text


def test_labels_of_the_today_plot_lie_inside_and_over_no_other(monkeypatch):
    placed = []
    place = plot._place
    monkeypatch.setattr(plot, '_place', lambda *given: placed.append(place(*given)) or placed[-1])
    crowd = [plot.Cloud(name, f'{name} beside the others', [(0.5 + at / 100, 1.1 + at / 20)])
             for at, name in enumerate(matrix_plan.ALL[:7])]
    corner = [plot.Cloud('far', 'a label at the corner of all', [(1.3, 5000.0)])]
    plot.scatter(crowd + corner, 'crowd')
    assert len(placed) == 8
    assert all(inside(box) for box in placed)
    assert all(one.covered(other) == 0 for at, one in enumerate(placed) for other in placed[:at])


def test_without_a_pair_there_is_no_today_plot(tmp_path, monkeypatch, capsys):
    (tmp_path / 'rows.jsonl').write_text(json.dumps(line(load='0.5')) + '\n')
    monkeypatch.setattr(sys, 'argv', ['today.py', str(tmp_path / 'rows.jsonl')])
    assert today.main() == 2
    assert 'no pair with a baseline' in capsys.readouterr().err
