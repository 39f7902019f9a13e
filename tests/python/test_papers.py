"""What benchmarks/papers computes from results: tables, the ranking of policies, DISB's workloads as a scenario."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'benchmarks/papers'))

import disb
import rank
import tables


def app(mean_us=100.0, p99_us=200.0, ratio=1.0, kept=True, name='lc'):
    return {'app': name, 'queries': 1000, 'p50_ns': mean_us * 1000, 'p99_ns': p99_us * 1000, 'mean_ns': mean_us * 1000,
            'p99_over_alone': ratio, 'qos_ns': 250_000, 'violation_share': 0.0 if kept else 0.03, 'qos_met': kept,
            'p99_bound': 0}


def run(case, policy, be, lc=None, antt=1.0, stp=2.0):
    return {'case': case, 'policy': policy, 'lc': [lc or app()], 'antt': antt, 'stp': stp, 'time_sharing_limit': 0.7,
            'be': [{'app': name, 'rate_of_solo': rate} for name, rate in be.items()]}


def result(*runs):
    return {'scenario': 'small', 'simulated': True, 'seed': 1, 'manifest': {'profile': 'h200'}, 'runs': list(runs)}


def figure(be, kept=True, p99=1.0):
    return rank.Figure(p99, be, kept)


# --- tables ---


def test_rows_leave_out_the_references_that_no_table_needs_and_come_back_as_they_were():
    found = result(run('a', 'lc_alone', {}), run('a', 'library_alone', {}), run('a', 'be_alone', {'x': 1.0}),
                   run('a', 'bare', {'x': 0.912345678}))
    rows = tables.rows_of(found)
    assert [row['policy'] for row in rows] == ['lc_alone', 'bare']
    assert rows[1]['be'] == {'x': 0.91235}
    written = json.loads(tables.rows_text(found, rows, 'gpushare colocate small'))
    assert tables.rows_of(written) == rows
    assert written['command'] == 'gpushare colocate small'


def test_speed_up_is_the_mean_latency_under_the_other_policy_over_the_own():
    rows = tables.rows_of(result(run('a', 'bare', {'x': 1}, app(mean_us=1000)),
                                 run('a', 'smguard', {'x': 1}, app(mean_us=100)),
                                 run('b', 'bare', {'x': 1}, app(mean_us=300)),
                                 run('b', 'smguard', {'x': 1}, app(mean_us=150))))
    assert tables.speed_ups(rows, 'bare') == {'bare': [1.0, 1.0], 'smguard': [10.0, 2.0]}
    table = tables.by_policy(rows, 'bare')
    assert table[2][0] == 'smguard'
    assert table[2][5:7] == ['6.00, 10.0', '-']


def test_antt_and_stp_are_told_by_mean_and_worst():
    rows = tables.rows_of(result(run('a', 'bare', {'x': 1}, antt=1.0, stp=1.8),
                                 run('b', 'bare', {'x': 1}, antt=3.0, stp=1.2)))
    assert tables.by_policy(rows, 'bare')[1][6:] == ['-', '2.00, 3.00', '1.50, 1.20']


def test_the_ceiling_of_a_speed_up_is_lc_alone():
    rows = tables.rows_of(result(run('a', 'bare', {'x': 1}, app(mean_us=1000)),
                                 run('a', 'smguard', {'x': 1}, app(mean_us=200)),
                                 run('a', 'lc_alone', {}, app(mean_us=100))))
    table = tables.by_policy(rows, 'bare')
    assert table[1] == ['lc_alone, the ceiling', '1', '-', '1', '-', '10.00, 10.0', '1', '-', '-']
    assert [line[6] for line in table[2:]] == ['0.10', '0.50']


def test_a_wait_is_the_p99_beyond_that_alone():
    rows = tables.rows_of(result(run('a', 'lc_alone', {}, app(p99_us=38.6)),
                                 run('a', 'adaptive', {'x': 1}, app(p99_us=55.9))))
    assert tables.by_case(rows, 'wait') == [['case', 'adaptive'], ['a', '+17']]
    assert tables.by_case(rows, 'kept')[1] == ['a', '0.22']


def test_shares_are_compared_with_weights():
    row = {'be': {'one': 0.1, 'three': 0.3}}
    assert tables.deviations(row, {'one': 1, 'three': 3}) == pytest.approx({'one': 0, 'three': 0}, abs=1e-9)
    uneven = tables.deviations({'be': {'one': 0.2, 'three': 0.2}}, {'one': 1, 'three': 3})
    assert uneven == pytest.approx({'one': 1.0, 'three': -1 / 3})
    rows = tables.rows_of(result(run('a', 'fifo', {'one': 0.2, 'three': 0.2})))
    assert tables.by_share(rows, {'one': 1, 'three': 3})[1] == ['a', 'fifo', '0.400', '+100.0%', 'one']


def test_the_command_refuses_cases_that_nothing_ran_in(tmp_path, capsys):
    path = tmp_path / 'result.json'
    path.write_text(json.dumps(result(run('a', 'bare', {'x': 1}))))
    assert tables.main([str(path), '--cases', 'b*']) == 2
    assert 'no row of a policy' in capsys.readouterr().err
    assert tables.main([str(path), '--json', str(tmp_path / 'rows.json')]) == 0
    assert '| bare | 1 | 1 | 1 | 1.000 |' in capsys.readouterr().out
    assert tables.main([str(tmp_path / 'rows.json')]) == 0


# --- the ranking ---


def test_an_order_is_the_same_if_no_two_policies_change_places():
    gpu = {'a': figure(0.5), 'b': figure(0.4), 'c': figure(0.3)}
    assert rank.same_order(gpu, {'a': figure(0.45), 'b': figure(0.4), 'c': figure(0.1)}, set('abc'), 0.01)
    assert not rank.same_order(gpu, {'a': figure(0.45), 'b': figure(0.2), 'c': figure(0.3)}, set('abc'), 0.01)


def test_what_misses_its_limit_on_one_side_only_is_no_agreement():
    gpu = {'a': figure(0.5), 'b': figure(0.9, kept=False)}
    assert rank.same_order(gpu, {'a': figure(0.4), 'b': figure(0.1, kept=False)}, set('ab'), 0.01)
    assert not rank.same_order(gpu, {'a': figure(0.4), 'b': figure(0.1)}, set('ab'), 0.01)


def test_a_difference_within_the_margin_is_no_order():
    gpu = {'a': figure(0.500), 'b': figure(0.495)}
    assert rank.same_order(gpu, {'a': figure(0.3), 'b': figure(0.4)}, set('ab'), 0.01)
    assert not rank.same_order(gpu, {'a': figure(0.3), 'b': figure(0.4)}, set('ab'), 0.001)


def test_late_queries_are_judged_by_one_in_a_hundred_and_bounds_by_the_p99():
    limits = {'target': rank.Limits(0, 500), 'bound': rank.Limits(1.05, 500)}
    rows = [{'case': 'target', 'policy': 'x', 'p99_over_alone': 2.0, 'violations': 5, 'be_rate_of_solo': 0.4},
            {'case': 'target', 'policy': 'y', 'p99_over_alone': 2.0, 'violations': 6, 'be_rate_of_solo': 0.4},
            {'case': 'bound', 'policy': 'x', 'p99_over_alone': 1.05, 'be': 0.4},
            {'case': 'bound', 'policy': 'y', 'p99_over_alone': 1.051, 'be': 0.4},
            {'case': 'elsewhere', 'policy': 'x', 'p99_over_alone': 1, 'be': 0.4}]
    found = rank.measured(rows, limits)
    assert {key: {name: one.kept for name, one in ranking.items()} for key, ranking in found.items()} == {
        ('', 'target'): {'x': True, 'y': False}, ('', 'bound'): {'x': True, 'y': False}}


def test_near_needs_both_p99_and_be():
    assert rank.near(figure(0.5, p99=1.0), figure(0.54, p99=1.04), 0.05)
    assert not rank.near(figure(0.5, p99=1.0), figure(0.56, p99=1.0), 0.05)
    assert not rank.near(figure(0.5, p99=1.0), figure(0.5, p99=1.06), 0.05)


def test_several_pairs_of_files_make_one_count(tmp_path, capsys):
    sim, gpu = tmp_path / 'sim.json', tmp_path / 'gpu.json'
    sim.write_text(json.dumps(result(run('a', 'adaptive', {'x': 0.5}), run('a', 'baymax', {'x': 0.4}),
                                     run('b', 'adaptive', {'x': 0.5}))))
    rows = [{'case': 'a', 'policy': 'adaptive', 'p99_over_alone': 1.0, 'violations': 0, 'be': 0.52},
            {'case': 'a', 'policy': 'baymax', 'p99_over_alone': 1.0, 'violations': 0, 'be': 0.6},
            {'case': 'b', 'policy': 'adaptive', 'p99_over_alone': 1.2, 'violations': 0, 'be': 0.52}]
    gpu.write_text(json.dumps({'rows': rows}))
    out = tmp_path / 'out.json'
    assert rank.main([str(sim), str(gpu), str(sim), str(gpu), '--json', str(out)]) == 0
    printed = capsys.readouterr().out
    assert 'pairs ranked the same: 0 of 2 (0%)' in printed
    assert 'rows of adaptive within 0.05: 2 of 4 (50%)' in printed
    assert len(json.loads(out.read_text())['adaptive']) == 5
    gpu.write_text(json.dumps({'rows': []}))
    assert rank.main([str(sim), str(gpu)]) == 2


# --- DISB ---


def task(name, load):
    return {'id': name, 'load': load, 'client': {}}


def test_a_workload_keeps_its_clients_and_their_rates():
    found = disb.scenario({'A': [task('vgg19_rt', {'type': 'periodic', 'frequency': 100}),
                                 task('distilbert_rt', {'type': 'poisson', 'frequency': 20}),
                                 task('resnet152_be', {'type': 'continuous'})]})
    assert [one['name'] for one in found['lc']] == ['A_vgg19_rt', 'A_distilbert_rt']
    own, scaled = found['cases']
    assert own['be'] == ['resnet152_be']
    # 100 queries of 536 us and 20 of 112 us a second.
    assert own['load'] == pytest.approx(0.0536 + 0.00224, abs=1e-5)
    assert scaled['load'] == 0.5
    rates = [one['share'] / disb.LC_KERNELS[model][1] for one, model in zip(found['lc'], ('vgg19', 'distilbert'),
                                                                            strict=True)]
    assert rates[0] / rates[1] == pytest.approx(5)


def test_a_trace_becomes_times_and_a_client_that_asks_again_has_no_load():
    found = disb.scenario({'B': [task('vgg19_rt', {'type': 'continuous'}), task('vgg19_be', {'type': 'continuous'})],
                           'REAL': [task('vgg19_rt', {'type': 'trace', 'trace': [0, 2000, 1000]}),
                                    task('vgg19_be', {'type': 'continuous'})]})
    assert found['lc'][0]['arrivals'] == {'type': 'closed_loop'}
    assert 'load' not in found['cases'][0]
    assert found['lc'][1]['arrivals']['times_ns'] == [0, 1_000_000_000, 2_000_000_000]
    assert found['cases'][1]['load'] == pytest.approx(1 * 536e-6, abs=1e-5)


def test_a_load_that_disb_does_not_have_is_refused():
    with pytest.raises(ValueError, match="'bursty' is no kind of load"):
        disb.arrivals_of({'type': 'bursty'})
