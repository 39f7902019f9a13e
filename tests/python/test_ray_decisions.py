"""The decisions of gpushare.ray, without Ray: which replica, which job where, when a job stops. test_ray.py has Ray."""

import importlib
import json
import math
import pathlib
import pickle
import stat
import sys
import threading
import time

import pytest

import gpushare
import gpushare.ray
from gpushare.ray import _estimate, _ledger, _placement, _ranking, _running, deployment
from gpushare.ray._ledger import Ending, Held, Ledger, Report, Spec
from gpushare.ray._placement import Pair, Room, Waiting, greedy
from gpushare.ray._running import Action, Codec, Facts, Guard, Runner

MS = 1_000_000


def report(sequence=1, wait_ms=0.0, service_ms=10.0, spread_ms=0.0):
    return {'sequence': sequence, 'wait_ms': wait_ms, 'service_ms': service_ms, 'spread_ms': spread_ms}


def room(replica='r1', **changes):
    return Room(**{'replica': replica, 'lc_kind': 'chat', 'load': 0.3, 'p99_bound': 1.05, 'headroom': 0.5,
                   'jobs_max': 1, **changes})


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

def ranking(**options):
    return _ranking.Ranking(shuffle=lambda names: names.sort(), **options)


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


# --- the book of jobs ---

def ledger(place=None, **options):
    book = Ledger(place or greedy(), lease_s=2.0, **options)
    book.submit(Spec('tune', 'lora', b'code'))
    return book


def held(start, **changes):
    return Held(**{'job': start.spec.name, 'lease': start.lease, 'steps': start.steps, 'kind': start.spec.kind,
                   'memory_bytes': start.spec.memory_bytes, **changes})


def test_a_job_goes_on_from_its_checkpoint_when_its_replica_is_gone():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    orders = book.pull(Report(room('r1'), (held(start, steps=7, checkpoint='seven', checkpoint_steps=7),)), 1.0)
    assert orders.keep == (start.lease,)
    assert book.pull(Report(room('r2')), 2.9).start == ()  # r1 may still run it
    again, = book.pull(Report(room('r2')), 3.1).start
    assert (again.checkpoint, again.steps) == ('seven', 7)
    assert again.lease > start.lease
    assert book.status()['tune']['leases_lost'] == 1


def test_what_an_old_lease_reports_is_refused():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    again, = book.pull(Report(room('r2')), 2.1).start
    late = held(start, steps=99, checkpoint='old', checkpoint_steps=99, ending=Ending.DONE, result='old')
    assert book.pull(Report(room('r1'), (late,)), 2.2).drop == (start.lease,)
    assert book.status()['tune']['state'] == 'leased'
    book.pull(Report(room('r2'), (held(again, ending=Ending.DONE, result='new'),)), 2.3)
    assert book.result('tune') == 'new'


def test_a_start_whose_answer_was_lost_is_sent_again_under_the_same_lease():
    book = ledger()
    first, = book.pull(Report(room('r1')), 0.0).start
    again, = book.pull(Report(room('r1')), 1.9).start
    assert again.lease == first.lease
    book.expire(3.8)  # counted from the second answer, as the replica does
    assert book.status()['tune']['state'] == 'leased'


def test_an_ending_whose_answer_was_lost_may_be_reported_again():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    done = Report(room('r1'), (held(start, ending=Ending.DONE, result=5),))
    assert book.pull(done, 0.1).drop == (start.lease,)
    assert book.pull(done, 0.2).drop == (start.lease,)
    assert book.result('tune') == 5


def test_a_job_that_was_given_back_goes_elsewhere_for_a_while():
    book = ledger(avoid_s=10.0)
    start, = book.pull(Report(room('r1')), 0.0).start
    back = held(start, steps=3, checkpoint=3, checkpoint_steps=3, ending=Ending.RETURNED)
    assert book.pull(Report(room('r1'), (back,)), 1.0).start == ()
    assert book.pull(Report(room('r1')), 1.5).start == ()
    assert book.pull(Report(room('r2')), 1.6).start[0].checkpoint == 3
    assert book.status()['tune']['moves'] == 1


def test_a_job_that_raises_three_times_has_failed_and_says_why():
    book = ledger(avoid_s=0.0)
    for turn in range(3):
        start, = book.pull(Report(room('r1')), turn).start
        book.pull(Report(room('r1'), (held(start, ending=Ending.RAISED, message='KeyError: x'),)), turn + 0.5)
    assert book.status()['tune']['state'] == 'failed'
    with pytest.raises(RuntimeError, match='KeyError: x'):
        book.result('tune')


def test_a_job_that_kills_its_replicas_has_failed_after_three_lost_leases():
    book = ledger()
    for turn in range(3):
        name = f'r{turn}'
        start, = book.pull(Report(room(name)), turn * 3.0).start
        book.pull(Report(room(name), (held(start),)), turn * 3.0 + 0.1)
        book.expire(turn * 3.0 + 2.9)
    job = book.status()['tune']
    assert (job['state'], job['leases_lost']) == ('failed', 3)
    assert '3 leases were lost without a newer checkpoint, the last one by replica r2' in job['message']
    assert book.pull(Report(room('r9')), 9.5).start == ()


def test_a_lost_lease_avoids_its_replica_and_a_newer_checkpoint_forgives_it():
    book = ledger(avoid_s=10.0)
    now = 0.0
    for turn in range(1, 7):
        start, = book.pull(Report(room(f'r{turn}')), now).start
        book.pull(Report(room(f'r{turn}'), (held(start, checkpoint=b'c', checkpoint_steps=turn),)), now + 0.1)
        now += 3.0
        assert book.pull(Report(room(f'r{turn}')), now).start == ()
    assert (book.status()['tune']['state'], book.status()['tune']['leases_lost']) == ('waiting', 6)


def test_a_cancelled_job_keeps_its_room_until_its_step_has_ended():
    book = Ledger(greedy(), lease_s=2.0)
    book.submit(Spec('first', 'x', b'', memory_bytes=80))
    one, = book.pull(Report(room('r1')), 0.0).start
    book.cancel('first')
    book.forget('first')
    book.submit(Spec('second', 'x', b'', memory_bytes=80))
    assert book.pull(Report(room('r1'), (held(one),)), 0.2).start == ()
    roomy = room('r1', jobs_max=2, memory_bytes=100)
    assert book.pull(Report(roomy, (held(one),)), 0.4).start == ()  # the memory is not free either
    ended = held(one, ending=Ending.RETURNED)
    assert book.pull(Report(room('r1'), (ended,)), 0.6).start[0].spec.name == 'second'


def test_a_job_that_has_ended_keeps_no_code_and_no_checkpoint():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    book.pull(Report(room('r1'), (held(start, checkpoint=b'c', checkpoint_steps=3, steps=4, ending=Ending.DONE,
                                       result=b'r'),)), 0.2)
    book.submit(Spec('other', 'lora', b'code'))
    book.cancel('other')
    for job in book.dump()['jobs']:
        assert (job.spec.code, job.checkpoint) == (b'', None)
    assert (book.result('tune'), book.status()['tune']['steps']) == (b'r', 4)


def test_code_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match='1048577 bytes, and at most 1048576'):
        ledger().submit(Spec('large', 'lora', bytes((1 << 20) + 1)))


def test_a_name_leaves_room_for_the_lease_in_the_apps_name(runtime):
    with pytest.raises(ValueError, match='has 44 bytes, and at most 43'):
        ledger().submit(Spec('n' * 44, 'lora', b''))
    ledger().submit(Spec('n' * 43, 'lora', b''))
    runtime.create_app(f"{'n' * 43}#{time.time_ns()}", gpushare.AppClass.BEST_EFFORT).close()


def test_only_what_changes_the_book_counts_as_a_change():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    assert book.changes == 1
    book.pull(Report(room('r1'), (held(start, steps=2),)), 0.2)
    book.cancel('tune')
    for turn in range(5):
        assert book.pull(Report(room('r1'), (held(start),)), 0.4 + turn * 0.2).drop == (start.lease,)
    assert book.changes == 1  # cancel() itself is saved by its caller


def test_the_placement_sees_few_more_jobs_than_there_are_free_slots_and_all_in_turn():
    offered = []

    def place(waiting, rooms):
        offered.append([job.job for job in waiting])
        return {'job99': 'r1'} if 'job99' in offered[-1] else {}
    book = Ledger(place, lease_s=100.0)
    for number in range(100):
        book.submit(Spec(f'job{number}', 'x', b''))
    now, start = 0.0, ()
    while not start:
        assert now < 20
        start = book.pull(Report(room('r1')), now).start
        now += 0.2
    assert start[0].spec.name == 'job99'
    assert offered[0] == [f'job{number}' for number in range(17)]
    assert {len(jobs) for jobs in offered} == {17}
    assert len(offered) <= 7  # others come once in OFFER_S
    count = len(offered)
    book.pull(Report(room('r1'), (held(start[0]),)), now + 5)
    assert len(offered) == count  # nothing is free


def test_leases_count_from_what_the_book_is_given():
    book = ledger(last_lease=10**18)
    start, = book.pull(Report(room('r1')), 0.0).start
    assert start.lease == 10**18 + 1
    after = Ledger(greedy(), lease_s=2.0, last_lease=5)
    after.restore(book.dump(), 0.0)
    assert after.dump()['last_lease'] == 10**18 + 1


def test_a_cancelled_job_is_dropped_at_the_next_pull():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    book.cancel('tune')
    assert book.pull(Report(room('r1'), (held(start),)), 0.2).drop == (start.lease,)
    book.forget('tune')
    assert book.status() == {}
    assert book.pull(Report(room('r1'), (held(start),)), 0.4).drop == (start.lease,)


def test_names_are_unique_and_running_jobs_are_not_forgotten():
    book = ledger()
    with pytest.raises(ValueError, match="job 'tune' already"):
        book.submit(Spec('tune', 'lora', b''))
    with pytest.raises(ValueError, match='not ended'):
        book.forget('tune')
    with pytest.raises(KeyError, match="no job 'other'"):
        book.cancel('other')


def test_a_restarted_book_keeps_leases_and_checkpoints():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    book.pull(Report(room('r1'), (held(start, steps=4, checkpoint=4, checkpoint_steps=4),)), 1.0)
    after = Ledger(greedy(), lease_s=2.0)
    after.restore(book.dump(), 500.0)
    assert after.pull(Report(room('r1'), (held(start, steps=5),)), 501.0).keep == (start.lease,)
    again, = after.pull(Report(room('r2')), 503.1).start
    assert (again.checkpoint, again.lease) == (4, start.lease + 1)


def test_a_placement_that_fails_is_told_and_asked_again_after_a_while():
    calls = []

    def place(waiting, rooms):
        calls.append(len(rooms))
        if len(calls) < 2:
            raise RuntimeError('no command')
        return {'tune': 'r2'}
    book = ledger(place)
    for turn in range(5):
        assert book.pull(Report(room('r1')), turn * 0.1).start == ()
    assert (calls, book.placement_failure) == ([1], 'no command')
    assert book.pull(Report(room('r2')), 0.6).start == ()  # not before PLACE_RETRY_S
    assert calls == [1]
    assert book.pull(Report(room('r2')), 5.1).start[0].spec.name == 'tune'
    assert book.placement_failure == ''


def test_a_replica_that_leaves_gets_nothing():
    book = ledger()
    assert book.pull(Report(room('r1'), takes_jobs=False), 0.0).start == ()


def test_random_faults_never_run_a_job_twice_at_once_nor_lose_it():
    """Replicas that die, answers that are lost, and jobs that end: each job ends once, from its own steps."""
    import random
    for seed in range(30):
        draw = random.Random(seed)
        book = Ledger(greedy(), lease_s=1.0, avoid_s=0.1)
        for number in range(6):
            book.submit(Spec(f'job{number}', 'x', b''))
        replicas = {f'r{number}': {} for number in range(3)}  # lease to [job, steps, until]
        now = 0.0
        while any(job['state'] != 'done' for job in book.status().values()):
            now += 0.05
            assert now < 500, f'seed {seed}: {book.status()}'
            name = draw.choice(list(replicas))
            runs = replicas[name]
            if draw.random() < 0.01:
                replicas[name + "'"] = {}
                del replicas[name]
                continue
            running = [run[0] for each in replicas.values() for run in each.values() if now < run[2] and run[1] < 10]
            assert len(running) == len(set(running)), f'seed {seed} at {now}: {running}'
            for run in runs.values():
                if now < run[2]:
                    run[1] = min(run[1] + draw.randrange(3), 10)
            states = tuple(Held(run[0], lease, run[1], checkpoint=run[1], checkpoint_steps=run[1], result=run[1],
                                ending=(Ending.DONE if run[1] >= 10 else Ending.NONE if now < run[2] else
                                        Ending.RETURNED)) for lease, run in runs.items())
            orders = book.pull(Report(room(name, jobs_max=2), states), now)
            if draw.random() < 0.2:
                continue  # the answer is lost
            for lease in orders.keep:
                runs[lease][2] = now + 0.8
            for lease in orders.drop:
                del runs[lease]
            for start in orders.start:
                runs[start.lease] = [start.spec.name, start.checkpoint or 0, now + 0.8]
        assert all(book.result(f'job{number}') == 10 for number in range(6))


# --- jobs in a replica ---

def test_jobs_pause_at_risk_resume_when_it_is_over_and_move_when_it_lasts():
    guard = Guard(resume_after_s=1.0, move_after_s=5.0)
    assert guard.decide(False, 0.0) is Action.RUN
    assert guard.decide(True, 1.0) is Action.PAUSE
    assert guard.decide(False, 1.5) is Action.PAUSE  # safe for 0.5 s only
    assert guard.decide(False, 2.1) is Action.RUN
    assert guard.decide(True, 3.0) is Action.PAUSE
    assert guard.decide(True, 8.1) is Action.MOVE
    assert guard.decide(False, 9.2) is Action.RUN


class Counting:
    """A job that counts its steps on the device."""

    def __init__(self, gpu, checkpoint, steps):
        self.app = gpu.app
        self.kernel = gpu.runtime.register_kernel('sincos_27us')
        self.done, self.steps = checkpoint or 0, steps

    def step(self):
        self.app.submit(self.kernel, block_tasks=100).wait_ok()
        self.done += 1
        if self.steps == -1:
            raise KeyError('wrong')
        return self.done != self.steps

    def checkpoint(self):
        return self.done

    def result(self):
        return self.done

    def close(self):
        self.kernel.close()


class Cluster:
    """A book and replicas in this process, which turn by hand."""

    job = Counting

    def __init__(self, runtime, **options):
        self.runtime, self.at_risk, self.lost, self.deaf = runtime, False, False, False
        self.book = Ledger(greedy(), lease_s=options.pop('lease_s', 5.0))
        self.runner = self.replica('r1', **options)

    def replica(self, name, move_after_s=100.0, checkpoint_s=0.0):
        return Runner(self.runtime, facts=lambda: Facts(room(name, at_risk=self.at_risk), self.lost), pull=self.pull,
                      codec=Codec(lambda code, gpu, checkpoint: self.job(
                          gpu, None if checkpoint is None else pickle.loads(checkpoint), int(code)), pickle.dumps),
                      guard=Guard(resume_after_s=0.0, move_after_s=move_after_s), period_s=0.01,
                      checkpoint_s=checkpoint_s)

    def pull(self, said):
        if self.deaf:
            raise ConnectionError('the actor is gone')
        return self.book.pull(said, time.monotonic())

    def until(self, what, runner=None):
        end = time.monotonic() + 20
        while not what(self.book.status()['job']):
            assert time.monotonic() < end, self.book.status()
            (runner or self.runner).turn()
            time.sleep(0.005)


@pytest.fixture
def cluster(runtime):
    made = []

    def make(steps, **options):
        made.append(Cluster(runtime, **options))
        made[0].book.submit(Spec('job', 'x', str(steps).encode()))
        return made[0]
    yield make
    for each in made:
        each.runner.close(5)


def test_a_job_runs_to_its_end_and_its_result_is_kept(cluster):
    cluster = cluster(20)
    cluster.until(lambda job: job['state'] == 'done')
    assert pickle.loads(cluster.book.result('job')) == 20
    cluster.until(lambda job: cluster.runner.count() == 0)
    assert cluster.runner.device_ns() > 0


def test_a_paused_job_makes_no_step_and_goes_on_afterwards(cluster):
    cluster = cluster(0)
    cluster.until(lambda job: job['steps'] > 3)
    cluster.at_risk = True
    cluster.until(lambda job: job['paused'])
    time.sleep(0.05)  # the step that runs ends
    cluster.runner.turn()
    steps = cluster.book.status()['job']['steps']
    time.sleep(0.1)
    cluster.runner.turn()
    assert cluster.book.status()['job']['steps'] == steps
    cluster.at_risk = False
    cluster.until(lambda job: job['steps'] > steps)


def test_a_risk_that_lasts_moves_the_job_with_its_checkpoint(cluster):
    cluster = cluster(0, move_after_s=0.05, checkpoint_s=100.0)
    cluster.until(lambda job: job['steps'] > 3)
    cluster.at_risk = True
    cluster.until(lambda job: job['state'] == 'waiting')
    assert cluster.book.status()['job']['checkpoint_steps'] > 3
    cluster.at_risk = False
    other = cluster.replica('r2')
    cluster.until(lambda job: job['replica'] == 'r2', other)
    other.close(5)


def test_a_replica_that_hears_nothing_stops_its_jobs_before_the_lease_ends(cluster):
    cluster = cluster(0, lease_s=0.5)
    cluster.until(lambda job: job['steps'] > 0)
    run, = cluster.runner._runs.values()
    cluster.deaf = True
    run.thread.join(5)
    assert not run.thread.is_alive()
    assert run.held.ending is Ending.RETURNED
    cluster.deaf = False
    cluster.until(lambda job: cluster.runner.count() == 1 and job['steps'] > 0)  # a new lease, from the checkpoint


def test_a_replica_that_closes_gives_its_jobs_back_at_once(cluster):
    cluster = cluster(0, checkpoint_s=100.0)
    cluster.until(lambda job: job['steps'] > 3)
    cluster.runner.close(5)
    job = cluster.book.status()['job']
    assert (job['state'], job['leases_lost']) == ('waiting', 0)
    assert job['checkpoint_steps'] > 3


def test_a_checkpoint_travels_until_it_is_acknowledged(cluster):
    cluster = cluster(0, checkpoint_s=0.1)
    sent, pull, answers = [], cluster.pull, True

    def listen(said):
        sent.extend(each.checkpoint_steps for each in said.held)
        assert all((each.checkpoint is None) == (each.checkpoint_steps < 0) for each in said.held)
        orders = pull(said)
        if not answers:
            raise TimeoutError('the answer is lost')
        return orders
    cluster.runner._pull = listen
    cluster.until(lambda job: job['checkpoint_steps'] > 0)
    cluster.at_risk = True  # no newer one
    cluster.until(lambda job: job['paused'])
    time.sleep(0.1)
    cluster.runner.turn()
    cluster.runner.turn()
    sent.clear()
    cluster.runner.turn()
    assert sent == [-1]
    answers = False
    with pytest.raises(TimeoutError):
        cluster.runner.turn()
    answers = True
    cluster.runner.turn()
    cluster.runner.turn()
    assert sent[2] > 0  # after a pull that failed the actor may have an older book
    assert sent[3] == -1


@pytest.mark.parametrize(('error', 'failures', 'moves'), [
    (gpushare.errors.ResourceExhaustedError(8, 'too many apps'), 0, 1), (ValueError('a weight of -1'), 1, 0)])
def test_an_app_that_cannot_be_made_is_the_jobs_failure_unless_there_are_too_many(cluster, monkeypatch, error, failures,
                                                                                  moves):
    def refuse(*_, **__):
        raise error
    cluster = cluster(0)
    monkeypatch.setattr(cluster.runtime, 'create_app', refuse)
    cluster.until(lambda job: job['failures'] + job['moves'] > 0)
    job = cluster.book.status()['job']
    assert (job['failures'], job['moves']) == (failures, moves)


def test_a_runtime_whose_statistics_raise_is_lost(cluster, monkeypatch):
    def closed(_):
        raise gpushare.errors.FailedPreconditionError(9, 'The runtime is closed.')
    cluster = cluster(-1)
    monkeypatch.setattr(gpushare.Runtime, 'stats', closed)
    cluster.until(lambda job: job['moves'] == 1)
    assert cluster.book.status()['job']['failures'] == 0


def test_a_pull_that_fails_warns_at_first_and_once_a_minute(cluster, caplog):
    cluster = cluster(0)
    cluster.deaf = True
    cluster.runner.begin()
    time.sleep(0.2)
    cluster.runner.close(5)
    warnings = [each for each in caplog.records if 'pull of jobs failed' in each.message]
    assert [each.levelname for each in warnings] == ['WARNING']


def test_a_job_that_raises_is_told_and_a_lost_gpu_is_not_its_fault(cluster, monkeypatch):
    cluster = cluster(-1)
    cluster.until(lambda job: job['failures'] == 1)
    assert 'KeyError' in cluster.book.status()['job']['message']
    cluster.book._jobs['job'].avoid.clear()
    lost = type('Stats', (), {'device_lost': True})
    monkeypatch.setattr(gpushare.Runtime, 'stats', lambda self: lost)
    cluster.until(lambda job: job['moves'] == 1)
    assert cluster.book.status()['job']['failures'] == 1


@pytest.mark.parametrize(('checkpoint', 'why'), [
    (lambda: threading.Lock(), 'cannot pickle'), (lambda: bytes(17 << 20), 'write it to a file'),
    (lambda: sys.exit(3), 'SystemExit: 3')])
def test_a_checkpoint_that_cannot_travel_fails_its_job_and_no_pull(cluster, checkpoint, why):
    class Wrong(Counting):
        def checkpoint(self):
            return checkpoint()
    cluster = cluster(0)
    cluster.job = Wrong
    cluster.until(lambda job: job['failures'] == 1)
    assert why in cluster.book.status()['job']['message']
    cluster.until(lambda job: cluster.runner.count() == 0)


def test_an_ending_is_said_when_the_job_is_closed(cluster):
    class Slow(Counting):
        def close(self):
            super().close()
            assert cluster.book.status()['job']['state'] == 'leased'
            raise OSError('no space')
    cluster = cluster(3)
    cluster.job = Slow
    cluster.until(lambda job: job['failures'] == 1)
    assert 'no space' in cluster.book.status()['job']['message']


# --- the replica, without Ray ---

class Told:
    def __init__(self):
        self.stats, self.refused = None, 0

    def set(self, stats):
        self.stats = stats

    def refuse(self):
        self.refused += 1


class Replica(deployment.Replica):
    def replica_name(self):
        return 'r1', 'chat'

    def make_metrics(self, name, replica):
        return Told()


@pytest.fixture
def replica():
    made = Replica('chat', target_ns=50 * MS, service_ns=10 * MS, runtime_options={'device': 'sim'})
    yield made
    made.close()


def test_a_replica_says_what_the_router_reads(replica):
    with replica.request():
        stats = replica.record_routing_stats()
    assert stats['wait_ms'] > 5
    assert (stats['service_ms'], stats['p99_bound_ms'], stats['at_risk']) == (10, 50, False)
    ranks = ranking()
    ranks.note('r1', stats, 0.0)
    assert ranks.latency_ms('r1', 1, 0.0) > 15
    assert replica._metrics.stats is stats
    assert replica.record_autoscaling_stats() == {'gpushare_used': pytest.approx(0, abs=0.2)}
    assert replica.record_replica_metadata()['simulated'] is True


def test_a_request_that_would_be_late_is_refused_before_it_begins(replica):
    late = pytest.raises(gpushare.ray.WouldBeLateError, match=r'has 0.02 s')
    with replica.request(), replica.request(), late, replica.request(within_s=0.02):
        pytest.fail('It began.')
    assert (replica._metrics.refused, replica._estimate.ongoing) == (1, 0)
    with replica.request(within_s=0.2):
        pass


def test_a_replica_that_refused_accepts_again_after_ten_seconds(monkeypatch):
    made = Replica('chat', target_ns=50 * MS, runtime_options={'device': 'sim'})
    try:
        now = time.monotonic_ns()
        made._estimate.end(made._estimate.begin(now), now + 600 * MS)
        with pytest.raises(gpushare.ray.WouldBeLateError), made.request(within_s=0.05):
            pytest.fail('It began.')
        monkeypatch.setattr(time, 'monotonic_ns', lambda: now + 10_600 * MS)
        with made.request(within_s=0.05):
            pass
    finally:
        monkeypatch.undo()
        made.close()


def test_the_share_of_jobs_is_a_mean_of_a_second(replica, monkeypatch):
    monkeypatch.setattr(deployment, 'BE_WINDOW_NS', 50 * MS)
    replica._runner = type('Runner', (), {'begin': lambda self: None, 'device_ns': lambda self: 10**12,
                                          'count': lambda self: 1, 'close': lambda self, timeout_s: None})()
    replica._be_seen = (time.monotonic_ns(), 10**12 - 25 * MS)
    assert replica.record_routing_stats()['be_share'] == 0  # too early to say
    time.sleep(0.06)
    assert 0.05 < replica.record_routing_stats()['be_share'] <= 0.5
    assert 0.05 < replica.record_routing_stats()['be_share'] <= 0.5


def test_a_queue_beyond_the_target_puts_the_guarantee_at_risk(replica):
    open_requests = [replica.request() for _ in range(7)]
    for request in open_requests:
        request.__enter__()
    assert replica.record_routing_stats()['at_risk'] is True
    assert replica._facts().room.at_risk is True
    for request in open_requests:
        request.__exit__(None, None, None)
    assert replica.record_routing_stats()['at_risk'] is False


def test_a_lost_gpu_or_a_closed_runtime_fails_the_health_check(replica, monkeypatch):
    replica.check_health()
    with monkeypatch.context() as patch:
        patch.setattr(gpushare.Runtime, 'stats', lambda self: type('Stats', (), {'device_lost': True}))
        with pytest.raises(RuntimeError, match='lost its GPU'):
            replica.check_health()
    replica.close()
    replica.close()
    with pytest.raises(RuntimeError, match='closed'):
        replica.check_health()


def test_requests_of_many_threads_are_counted(replica):
    def ask():
        for _ in range(50):
            with replica.request():
                pass
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replica._estimate.ongoing == 0
    assert replica.record_routing_stats()['wait_ms'] == 0


def test_a_fraction_is_of_the_load_that_is_admitted():
    assert gpushare.ray.admitted_fraction(0.35, 0.7) == pytest.approx(0.5)
    with pytest.raises(ValueError, match='more replicas'):
        gpushare.ray.admitted_fraction(0.8, 0.7)
    options = gpushare.ray.actor_options(lc_load=0.35, num_cpus=2, runtime_env={'env_vars': {}})
    assert options == {'num_cpus': 2, 'num_gpus': 1, 'resources': {'gpushare_lc': 0.5}, 'runtime_env': {'env_vars': {}}}
    assert gpushare.ray.actor_options(lc_load=0.1, simulated=True)['num_gpus'] == 0
    plan = gpushare.PartitionPlan(partitions=2, partition_sms=33, rest_sms=66)
    assert gpushare.ray.partition_fraction(plan, type('Device', (), {'sm_count': 132})) == 0.5


def test_autoscaling_waits_until_each_replica_has_reported():
    policy = gpushare.ray.HeadroomPolicy(target=0.5)

    def context(**used):
        return type('Context', (), {
            'aggregated_metrics': {'gpushare_used': used}, 'current_num_replicas': 2, 'target_num_replicas': 2,
            'capacity_adjusted_min_replicas': 1, 'capacity_adjusted_max_replicas': 8})
    assert policy(context(a=1.0)) == (2, {})
    assert policy(context(a=1.0, b=1.0)) == (4, {})
    assert policy(context(a=0.1, b=0.1)) == (1, {})


def test_names_are_complete_and_without_ray_their_error_says_what_to_install(monkeypatch):
    assert sorted(gpushare.ray._WHERE) == gpushare.ray.__all__
    monkeypatch.setitem(sys.modules, 'ray', None)
    for name in ('deployment', 'router', 'jobs', 'metrics'):
        monkeypatch.delitem(sys.modules, f'gpushare.ray.{name}', raising=False)
        if hasattr(gpushare.ray, name):
            monkeypatch.delattr(gpushare.ray, name)
    with pytest.raises(ModuleNotFoundError, match=r'gpushare-runtime\[ray\]'):
        _ = gpushare.ray.LeastLatencyRouter
    with pytest.raises(AttributeError, match='no attribute'):
        _ = gpushare.ray.Nothing
    assert importlib.import_module('gpushare.ray').Replica.__name__ == 'Replica'


def test_the_states_of_jobs_are_counted():
    book = ledger()
    assert _ledger.counts(book.status()) == {'waiting': 1, 'leased': 0, 'done': 0, 'failed': 0, 'cancelled': 0}
    assert json.dumps(book.status())  # plain values
    assert _running.Action.RUN.value == 'run'


# --- the benchmark's verdict ---

def phase(breaks=False, lost=0, twice=0, answered=5, **outcomes):
    return {'outcomes': {'version 1': 10, 'lost': lost, **outcomes}, 'lost': lost, 'twice': twice, 'breaks': breaks,
            'services': {'chat': {'answered': 5}, 'rank': {'answered': answered}}}


@pytest.mark.parametrize(('figures', 'wrong'), [
    (phase(), ''), (phase(breaks=True, ActorDiedError=4, ActorUnavailableError=8), ''),
    (phase(lost=1), '1 requests had no answer'), (phase(twice=2), '2 requests were answered twice'),
    (phase(ActorDiedError=1), 'nothing was broken'), (phase(breaks=True, ActorDiedError=13), 'At most 12'),
    (phase(breaks=True, WouldBeLateError=1), 'WouldBeLateError'), (phase(breaks=True, answered=0), "['rank']")])
def test_a_phase_is_judged_by_its_errors_too(figures, wrong, monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / 'benchmarks/ray'))
    verdict = importlib.import_module('verdict').verdict
    assert wrong in ' '.join(verdict(figures))
    assert bool(wrong) == bool(verdict(figures))


def test_the_wheel_has_each_package_and_the_extra():
    package = pathlib.Path(gpushare.__file__).parent
    settings = (package.parent / 'pyproject.toml').read_text(encoding='utf-8')
    folders = [file.parent.relative_to(package.parent) for file in package.rglob('__init__.py')]
    found = sorted('.'.join(folder.parts) for folder in folders)
    assert f'packages = {json.dumps(found)}' in settings
    assert 'ray = ["ray[serve]' in settings
