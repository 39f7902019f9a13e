"""Which job of gpushare.ray goes to which replica, without Ray."""

import collections
import dataclasses
import math
import random

import pytest
from ray_parts import room

import gpushare
from gpushare.ray._placement import Pair, Waiting, by_value

PAIRS = [Pair('chat', 'lora', 0.3, 1.006, 0.68, 0.004, 0.02), Pair('chat', 'lora', 0.6, 1.010, 0.39, 0.006, 0.02),
         Pair('chat', 'embed', 0.6, 1.09, 0.52, 0.02, 0.05)]


def waiting(*names, **changes):
    return [Waiting(**{'job': name, 'kind': 'lora', **changes}) for name in names]


@pytest.mark.parametrize(('kind', 'changes', 'goes'), [
    ('lora', {}, True), ('lora', {'load': 0.6}, True), ('lora', {'load': 0.1}, True),
    ('lora', {'load': 0.61}, False),  # above the largest load
    ('embed', {}, False),  # 1.09 and its error bar are above 1.05
    ('embed', {'p99_bound': 1.2}, True), ('other', {}, False), ('lora', {'lc_kind': 'other'}, False),
    ('lora', {'at_risk': True}, False)])
def test_a_job_goes_beside_what_its_pair_allows(kind, changes, goes):
    assert by_value(PAIRS)(waiting('a', kind=kind), [room('r1', **changes)]) == ({'a': 'r1'} if goes else {})


def test_the_most_valuable_pair_comes_first_and_nothing_joins_a_replica_at_risk():
    rooms = [room('high', load=0.6), room('low', load=0.3), room('risky', load=0.1, at_risk=True)]
    assert by_value(PAIRS)(waiting('a'), rooms) == {'a': 'low'}
    assert set(by_value(PAIRS)(waiting('a', 'b', 'c'), rooms).values()) == {'high', 'low'}


def test_replicas_are_filled_evenly_and_jobs_that_run_count():
    rooms = [room('busy', load=0.3, jobs_max=2, running=(('held', 'lora'),)), room('idle', load=0.55, jobs_max=2)]
    assert by_value(PAIRS)(waiting('a'), rooms) == {'a': 'idle'}
    assert len(by_value(PAIRS)(waiting('a', 'b', 'c', 'd'), rooms)) == 3
    without = [room('busy', headroom=0.9, jobs_max=2, running=(('held', 'x'),)), room('idle', headroom=0.1, jobs_max=2)]
    assert by_value()(waiting('a'), without) == {'a': 'idle'}


def test_without_pairs_the_most_headroom_wins_and_none_takes_no_job():
    rooms = [room('none', headroom=0.0), room('little', headroom=0.2), room('much', headroom=0.8)]
    assert by_value()(waiting('a', kind=''), rooms) == {'a': 'much'}
    assert set(by_value()(waiting('a', 'b', 'c'), rooms).values()) == {'little', 'much'}


def test_memory_and_avoided_replicas_count():
    rooms = [room('r1', headroom=0.9, memory_bytes=100, jobs_max=4), room('r2', headroom=0.1, jobs_max=4)]
    big = waiting('big', 'too_big', memory_bytes=80)
    placed = by_value()([*big, *waiting('avoids', avoid=frozenset({'r1'}))], rooms)
    assert placed['avoids'] == 'r2'
    assert sorted(placed[job.job] for job in big) == ['r1', 'r2']
    full = [room('full', memory_bytes=0)]
    assert by_value()(waiting('tiny', memory_bytes=1), full) == {}
    assert by_value()(waiting('none'), full) == {'none': 'full'}


def test_a_job_that_avoids_the_best_replica_waits_for_no_other_one():
    rooms = [room('best', load=0.3), room('other', load=0.6)]
    given_back = waiting('given_back', avoid=frozenset({'best'}))
    assert by_value(PAIRS)(given_back, rooms) == {'given_back': 'other'}
    assert by_value(PAIRS)([*waiting('new'), *given_back], rooms) == {'new': 'best', 'given_back': 'other'}
    given_back = waiting('given_back', avoid=frozenset({'other'}))
    assert by_value(PAIRS)([*waiting('new'), *given_back], rooms) == {'new': 'other', 'given_back': 'best'}
    assert by_value(PAIRS)(waiting('a', avoid=frozenset({'best', 'other'})), rooms) == {}


def test_each_replica_has_its_own_limit_of_jobs():
    rooms = [room('one', load=0.1), room('none', load=0.2, jobs_max=0), room('four', load=0.6, jobs_max=4),
             room('hundred', load=0.6, jobs_max=100)]
    placed = by_value(PAIRS)(waiting(*(f'job{number}' for number in range(60))), rooms)
    counts = collections.Counter(placed.values())
    assert (counts['one'], counts['none'], counts['four'], counts['hundred']) == (1, 0, 4, 55)
    ended = room('r1', running=(('a', 'lora'), ('b', 'lora')))  # one of them ends its last step
    assert by_value(PAIRS)(waiting('c'), [ended]) == {}


def test_what_runs_and_is_not_allowed_any_more_keeps_its_place():
    rooms = [room('r1', load=0.9, running=(('held', 'embed'),)), room('r2', running=(('held', 'unknown'),))]
    assert by_value(PAIRS)(waiting('a'), rooms) == {}
    assert by_value(PAIRS)(waiting('a'), [*rooms, room('r3')]) == {'a': 'r3'}


def test_long_names_and_unknown_kinds_do_not_keep_others_waiting():
    jobs = [*waiting('wrong', kind='k' * 100), *waiting('none', kind=''), *waiting('good')]
    rooms = [room('r' * 100), room('other', lc_kind='c' * 100)]
    assert by_value(PAIRS)(jobs, rooms) == {'good': 'r' * 100}


@pytest.mark.parametrize(('change', 'sentence'), [
    ({'p99_ratio': 0}, 'p99_ratio 0'), ({'load': 2}, 'load'), ({'be': 'k' * 64}, '63'),
    ({'be_rate': float('nan')}, 'nan')])
def test_a_wrong_pair_is_refused_at_the_start(change, sentence):
    with pytest.raises(gpushare.InvalidArgumentError, match=sentence):
        by_value([dataclasses.replace(PAIRS[0], **change)])


def test_random_placements_keep_every_limit_and_leave_no_room_that_fits():
    draw = random.Random(7)
    for turn in range(200):
        rooms = [room(f'r{number}', load=draw.random(), jobs_max=draw.randrange(4), at_risk=draw.random() < 0.2,
                      memory_bytes=draw.choice([None, 0, 50, 100]), headroom=draw.choice([0.0, 0.5]),
                      running=(('held', 'lora'),) * draw.randrange(2)) for number in range(draw.randrange(1, 6))]
        names = [each.replica for each in rooms]
        jobs = [Waiting(f'job{number}', draw.choice(['lora', 'embed', 'other']), draw.choice([0, 40, 90]),
                        frozenset(draw.sample(names, draw.randrange(2)))) for number in range(draw.randrange(8))]
        pairs = draw.choice([(), PAIRS])
        placed = by_value(pairs)(jobs, rooms)
        for each in rooms:
            there = [job for job in jobs if placed.get(job.job) == each.replica]
            free = each.jobs_max - len(each.running) - len(there)
            memory = math.inf if each.memory_bytes is None else each.memory_bytes
            memory -= sum(job.memory_bytes for job in there)
            assert not there or (free >= 0 and memory >= 0 and not each.at_risk), turn
            for job in jobs:
                assert each.replica not in job.avoid or job not in there, turn
                may = (each.headroom > 0 if not pairs else job.kind == 'lora' and each.load <= 0.6)
                if job.job not in placed and may and not each.at_risk and each.replica not in job.avoid:
                    assert free <= 0 or memory < job.memory_bytes, turn
