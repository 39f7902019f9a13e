"""The decisions of gpushare.ray, without Ray: what a replica predicts, which replica, which job where."""

import math
import pathlib
import stat
import sys
import time

import pytest
from ray_parts import MS, ledger, ranking, report, room

from gpushare.ray import _estimate, _placement, _ranking
from gpushare.ray._ledger import Report
from gpushare.ray._placement import Pair, Waiting, greedy

# --- what a replica predicts ---

def test_a_wait_is_what_is_left_of_the_queries_before():
    estimate = _estimate.Estimate(10 * MS, 2.0, 0)
    assert estimate.wait_ns(0) == 0
    estimate.begin(0)
    estimate.begin(0)
    assert estimate.wait_ns(4 * MS) == pytest.approx(16 * MS)
    assert estimate.wait_ns(500 * MS) == pytest.approx(10 * MS)  # the first is late; the second has not begun


def test_queries_that_overlap_count_with_what_each_adds():
    estimate = _estimate.Estimate(0, 2.0, 0)
    arrivals = [estimate.begin(0) for _ in range(4)]
    for number, arrival in enumerate(arrivals):
        estimate.end(arrival, (number + 1) * 5 * MS)
    assert estimate.service_ns(20 * MS) == pytest.approx(5 * MS)
    assert estimate.spread_ns(20 * MS) == pytest.approx(0, abs=1e3)


def test_a_query_that_failed_says_nothing_of_the_service_time():
    estimate = _estimate.Estimate(10 * MS, 2.0, 0)
    estimate.end(estimate.begin(0), 400 * MS, served=False)
    assert estimate.service_ns(400 * MS) == pytest.approx(10 * MS)
    assert estimate.ongoing == 0


def test_the_load_is_a_share_from_the_first_second_on_and_decays():
    estimate = _estimate.Estimate(0, 2.0, 0)
    for number in range(50):
        arrival = estimate.begin(number * 20 * MS)
        estimate.end(arrival, number * 20 * MS + 10 * MS)
    assert estimate.load(1000 * MS) == pytest.approx(0.5, rel=0.05)
    assert estimate.load(11_000 * MS) < 0.01


def served(latencies_ms, bound_ms=50, every_ms=50):
    """An estimate after queries of these latencies, which do not overlap, and the time after the last one."""
    estimate = _estimate.Estimate(10 * MS, 2.0, 0, bound_ms * MS)
    now = 0
    for latency_ms in latencies_ms:
        estimate.end(estimate.begin(now), now + latency_ms * MS)
        now += max(every_ms, latency_ms) * MS
    return estimate, now


@pytest.mark.parametrize(('latencies_ms', 'at_risk'), [
    ([10] * 200, False),
    ([60] * 5 + [10], False),  # too few to say
    ([60] * 5 + [10] * 195, True),
    ([60] + [10] * 100, False),  # below 1 %
    ([60] * 20, True),  # the next one takes as long
])
def test_a_guarantee_is_at_risk_by_its_late_queries(latencies_ms, at_risk):
    estimate, now = served(latencies_ms)
    assert estimate.at_risk(now) is at_risk
    assert served(latencies_ms, bound_ms=0)[0].at_risk(now) is False


def test_a_risk_ends_with_the_late_queries():
    estimate, now = served([60] * 5 + [10] * 195)
    assert estimate.at_risk(now) is True
    assert estimate.at_risk(now + 60_000 * MS) is False  # without queries nothing is late
    assert served([60] * 5 + [10] * 900)[0].at_risk(45_000 * MS) is False


def test_one_slow_query_without_a_known_service_time_is_forgotten():
    estimate = _estimate.Estimate(0, 2.0, 0, 50 * MS)
    estimate.end(estimate.begin(0), 600 * MS)
    assert estimate.at_risk(700 * MS) is True
    now = 10_600 * MS
    assert (estimate.service_ns(now), estimate.spread_ns(now), estimate.at_risk(now)) == (0, 0, False)


def test_no_headroom_is_left_where_a_guarantee_is_at_risk():
    assert _estimate.headroom(0.35, 0.7, False) == pytest.approx(0.5)
    assert _estimate.headroom(0.9, 0.7, False) == 0
    assert _estimate.headroom(0.1, 0.7, True) == 0


# --- which replica ---


def test_the_least_predicted_latency_comes_first_and_the_late_ones_last():
    ranks = ranking()
    ranks.note('slow', report(wait_ms=100), 0.0)
    ranks.note('fast', report(wait_ms=5), 0.0)
    ranks.note('middle', report(wait_ms=20), 0.0)
    replicas = {'slow': 0, 'new': 0, 'middle': 0, 'fast': 0}
    assert ranks.order(replicas, 50, 0.0) == [['fast'], ['middle'], ['new'], ['slow']]
    assert ranks.order(replicas, None, 0.0) == [['fast'], ['middle'], ['slow'], ['new']]
    # All miss it: what nothing is known of, then the least late one.
    assert ranks.order(replicas, 1, 0.0) == [['new'], ['fast'], ['middle'], ['slow']]


def test_a_spread_that_reaches_beyond_the_deadline_is_a_miss():
    ranks = ranking()
    ranks.note('steady', report(service_ms=20), 0.0)
    ranks.note('wild', report(service_ms=10, spread_ms=15), 0.0)
    assert ranks.order({'wild': 0, 'steady': 0}, 22, 0.0) == [['steady'], ['wild']]


def test_an_old_wait_decays_and_serves_count_corrects_it():
    ranks = ranking()
    ranks.note('r', report(wait_ms=100), 0.0)
    assert ranks.latency_ms('r', 0, 0.04) == pytest.approx(70)
    assert ranks.latency_ms('r', 3, 0.15) == pytest.approx(40)
    ranks.note('r', report(wait_ms=100), 0.1)  # the same report again is as old as it was
    assert ranks.latency_ms('r', None, 0.1) == pytest.approx(10)


def test_a_replica_without_a_service_time_is_not_the_fastest():
    ranks = ranking()
    ranks.note('idle', report(service_ms=0), 0.0)
    ranks.note('known', report(service_ms=30), 0.0)
    assert ranks.latency_ms('idle', 5, 0.0) is None
    assert ranks.order({'idle': 5, 'known': 0}, None, 0.0) == [['known'], ['idle']]


def test_stale_and_malformed_statistics_are_none():
    ranks = ranking(stale_after_s=1.0)
    ranks.note('r', report(), 0.0)
    assert ranks.latency_ms('r', 0, 1.1) is None
    for bad in (None, {}, {**report(2), 'wait_ms': math.nan}, {**report(3), 'wait_ms': 'soon'}, report(4, wait_ms=-1)):
        ranks.note('r', report(9), 0.0)
        ranks.note('r', bad, 0.0)
        assert ranks.latency_ms('r', 0, 0.0) is None, bad


def test_without_statistics_two_random_replicas_are_serves_own_choice():
    assert ranking().order({'c': 0, 'b': 2, 'a': 0}, 50, 0.0) == [['a', 'b']]
    assert ranking().order({}, 50, 0.0) == []


def test_equal_predictions_are_taken_at_random_so_that_no_herd_forms():
    firsts = set()
    ranks = _ranking.Ranking()
    for replica in ('a', 'b', 'c'):
        ranks.note(replica, report(service_ms=10 if replica != 'c' else 20), 0.0)
    for _ in range(100):
        firsts.add(ranks.order({'a': 0, 'b': 0, 'c': 0}, None, 0.0)[0][0])
    assert firsts == {'a', 'b'}


def test_a_large_deployment_has_few_ranks():
    ranks = ranking()
    replicas = {f'r{number:03}': 0 for number in range(100)}
    for number, name in enumerate(replicas):
        ranks.note(name, report(wait_ms=10 * number), 0.0)
    order = ranks.order(replicas, None, 0.0)
    assert order[:8] == [[name] for name in list(replicas)[:8]]
    assert order[8:] == [list(replicas)[8:]]


def test_a_replica_that_is_gone_is_forgotten():
    ranks = ranking()
    ranks.note('a', report(), 0.0)
    ranks.keep(['b'])
    assert ranks.latency_ms('a', 0, 0.0) is None


@pytest.mark.parametrize(('within_s', 'default_ms', 'left'), [
    (0.5, 0, 400), (1, 50, 900), (None, 50, -50), (None, 0, None), ('0.5', 0, None), (True, 50, -50), (-1, 0, None)])
def test_a_requests_own_deadline_comes_before_the_deployments(within_s, default_ms, left):
    assert _ranking.milliseconds_left(within_s, default_ms, 0.1) == (left if left is None else pytest.approx(left))


@pytest.mark.parametrize(('used', 'replicas'), [
    ([], 1), ([0.7], 1), ([1.0], 2), ([1.0, 1.0], 3), ([0.7, 0.7, 0.7, 0.7], 4), ([0.1] * 4, 1), ([0.5, 0.5, 0.35], 3),
    ([0.4, 0.4, 0.4], 2), ([1.0] * 8, 8)])
def test_replicas_follow_the_used_share_without_swinging(used, replicas):
    assert _ranking.replicas_for(used, 0.7, 1, 8) == replicas


# --- which job where ---

PAIRS = [Pair('chat', 'lora', 0.3, 1.006, 0.68, 0.004, 0.02), Pair('chat', 'lora', 0.6, 1.010, 0.39, 0.006, 0.02),
         Pair('chat', 'embed', 0.6, 1.09, 0.52, 0.02, 0.05)]


def test_a_pair_between_two_loads_is_interpolated_with_the_larger_error():
    assert _placement.value_of(PAIRS, room(load=0.45), 'lora') == pytest.approx(0.535 - 0.02)
    assert _placement.value_of(PAIRS, room(load=0.1), 'lora') == pytest.approx(0.66)
    assert _placement.value_of(PAIRS, room(load=0.7), 'lora') is None  # above the largest load
    assert _placement.value_of(PAIRS, room(load=0.3), 'embed') is None  # 1.11 is above 1.05
    assert _placement.value_of(PAIRS, room(p99_bound=1.2), 'embed') == pytest.approx(0.47)
    assert _placement.value_of(PAIRS, room(), 'other') is None
    assert _placement.value_of((), room(headroom=0.25), 'other') == 0.25


def test_the_most_valuable_pair_comes_first_and_nothing_joins_a_replica_at_risk():
    waiting = [Waiting('a', 'lora'), Waiting('b', 'lora'), Waiting('c', 'lora')]
    rooms = [room('low', load=0.3), room('high', load=0.6), room('risky', load=0.1, at_risk=True)]
    assert greedy(PAIRS)(waiting, rooms) == {'a': 'low', 'b': 'high'}


def test_memory_and_avoided_replicas_count():
    rooms = [room('r1', headroom=0.9, memory_bytes=100, jobs_max=4), room('r2', headroom=0.1, jobs_max=4)]
    waiting = [Waiting('big', 'x', 80), Waiting('too_big', 'x', 80), Waiting('avoids', 'x', 0, frozenset({'r1'}))]
    placed = greedy()(waiting, rooms)
    assert placed == {'avoids': 'r2', 'big': 'r1', 'too_big': 'r2'}


def test_a_replica_without_free_memory_is_no_gpu_of_the_command():
    rooms = [room('full', memory_bytes=0), room('some', memory_bytes=100), room('unknown')]
    gpus = _placement.cluster_of(PAIRS, [Waiting('x', 'lora', 10)], rooms)['gpus']
    assert [(gpu['name'], gpu['memory_bytes']) for gpu in gpus] == [('gpu1', 100), ('gpu2', 1 << 40)]


def test_what_the_command_places_must_fit_the_memory_together():
    answer = {'gpus': [{'gpu': 'gpu0:0', 'be_apps': [{'app': 'job0'}, {'app': 'job1'}]}]}
    waiting = [Waiting('a', 'lora', 80), Waiting('b', 'lora', 80)]
    assert _placement.placed_by(answer, waiting, [room('r', memory_bytes=100, jobs_max=4)]) == {'a': 'r'}


def test_the_command_gets_the_cluster_and_its_answer_is_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(_placement, 'COMMAND_TIMEOUT_S', 30)  # this one starts an interpreter
    command = tmp_path / 'gpushare'
    command.write_text(f'''#!{sys.executable}
import json, sys
assert sys.argv[1] == 'place' and sys.argv[3] == '--json'
cluster = json.load(open(sys.argv[2]))
assert [gpu['name'] for gpu in cluster['gpus']] == ['gpu0', 'gpu2'], cluster
assert {{'gpu': 'gpu2:0', 'app': 'held2.0'}} in cluster['running']
print(json.dumps({{'gpus': [{{'gpu': 'gpu0:0', 'be_apps': [{{'app': 'job1', 'instances': 1}}]}},
                           {{'gpu': 'gpu2:0', 'be_apps': [{{'app': 'held2.0', 'instances': 1}},
                                                         {{'app': 'job0', 'instances': 1}}]}}]}}))
sys.exit(1)
''')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    place = _placement.by_command(str(command), PAIRS)
    rooms = [room('a'), room('b', at_risk=True), room('c', running=(('held', 'lora'),))]
    # c has its one job already, whatever the command says.
    assert place([Waiting('x', 'lora'), Waiting('y', 'lora')], rooms) == {'y': 'a'}


def test_a_command_that_hangs_leaves_the_leases_most_of_their_time(tmp_path):
    command = tmp_path / 'gpushare'
    command.write_text('#!/bin/sh\nexec sleep 20\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    book = ledger(_placement.by_command(str(command), PAIRS))
    begin = time.monotonic()
    for turn in range(20):
        book.pull(Report(room('r1', load=turn / 20)), turn * 0.2)
    assert time.monotonic() - begin < 1.9  # one attempt in 4 s; a second one would wait for another 0.5 s
    assert 'timed out' in book.placement_failure


def test_a_command_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(_placement, 'COMMAND_TIMEOUT_S', 30)
    command = tmp_path / 'gpushare'
    command.write_text('#!/bin/sh\necho \'{"error": {"message": "The GPU has no memory."}}\'\nexit 2\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(RuntimeError, match='no memory'):
        _placement.by_command(str(command), PAIRS)([Waiting('x', 'lora')], [room()])
    command.write_text('#!/bin/sh\necho oops >&2\nexit 139\n')
    with pytest.raises(RuntimeError, match='139 and no placement: oops'):
        _placement.by_command(str(command), PAIRS)([Waiting('x', 'lora')], [room()])
    with pytest.raises(ValueError, match='there is none'):
        _placement.by_command(str(command), [])


def test_the_command_itself_places_as_greedy_does_where_both_are_best():
    command = pathlib.Path(__file__).parents[2] / 'build/dev/tools/gpushare/gpushare'
    if not command.is_file():
        pytest.skip('The command gpushare is not built in build/dev.')
    rooms = [room('a', jobs_max=2), room('b', load=0.55, running=(('held', 'lora'),), jobs_max=2),
             room('c', at_risk=True)]
    waiting = [Waiting(f'job{number}', 'lora', 10**9) for number in range(4)]
    place = _placement.by_command(str(command), PAIRS)
    assert place(waiting, rooms) == greedy(PAIRS)(waiting, rooms) == {'job0': 'a', 'job1': 'a', 'job2': 'b'}
    assert place(waiting, [room(load=0.9)]) == {}
