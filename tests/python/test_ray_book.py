"""The book of jobs of gpushare.ray, without Ray: leases, faults, what is kept."""

import time

import pytest
from ray_parts import held, ledger, room

import gpushare
import gpushare.ray
from gpushare.ray._ledger import Ending, Held, Ledger, Report, Spec
from gpushare.ray._placement import by_value


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


def test_a_replica_that_dies_while_a_job_moves_to_it_loses_no_checkpoint():
    book = ledger(avoid_s=10.0)
    start, = book.pull(Report(room('r1')), 0.0).start
    back = held(start, steps=3, checkpoint=b'3', checkpoint_steps=3, ending=Ending.RETURNED)
    book.pull(Report(room('r1'), (back,)), 1.0)
    assert book.pull(Report(room('r2')), 1.1).start[0].checkpoint == b'3'
    assert book.pull(Report(room('r3')), 3.0).start == ()  # r2 may run it
    again, = book.pull(Report(room('r3')), 3.2).start
    assert (again.checkpoint, again.steps) == (b'3', 3)
    job = book.status()['tune']
    assert (job['moves'], job['leases_lost'], job['failures']) == (1, 1, 0)


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
    book = Ledger(by_value(), lease_s=2.0)
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


@pytest.mark.parametrize('memory_bytes', [-1, 1 << 63, 2e9, None])
def test_a_memory_that_no_placement_would_take_is_refused(memory_bytes):
    with pytest.raises(ValueError, match="memory_bytes of job 'wrong' is"):
        ledger().submit(Spec('wrong', 'lora', b'', memory_bytes))


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
    after = Ledger(by_value(), lease_s=2.0, last_lease=5)
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
    after = Ledger(by_value(), lease_s=2.0)
    after.restore(book.dump(), 500.0)
    assert after.pull(Report(room('r1'), (held(start, steps=5),)), 501.0).keep == (start.lease,)
    again, = after.pull(Report(room('r2')), 503.1).start
    assert (again.checkpoint, again.lease) == (4, start.lease + 1)


def test_a_placement_that_fails_is_told_and_asked_again_after_a_while():
    calls = []

    def place(waiting, rooms):
        calls.append(len(rooms))
        if len(calls) < 2:
            raise RuntimeError('no memory')
        return {'tune': 'r2'}
    book = ledger(place)
    for turn in range(5):
        assert book.pull(Report(room('r1')), turn * 0.1).start == ()
    assert (calls, book.placement_failure) == ([1], 'no memory')
    assert book.pull(Report(room('r2')), 0.6).start == ()  # not before PLACE_RETRY_S
    assert calls == [1]
    assert book.pull(Report(room('r2')), 5.1).start[0].spec.name == 'tune'
    assert book.placement_failure == ''


def test_a_replica_that_leaves_gets_nothing():
    book = ledger()
    assert book.pull(Report(room('r1'), takes_jobs=False), 0.0).start == ()


def test_a_start_whose_answer_was_lost_goes_elsewhere_at_once_when_its_replica_leaves():
    book = ledger()
    start, = book.pull(Report(room('r1')), 0.0).start
    assert book.pull(Report(room('r1'), takes_jobs=False), 0.1).start == ()
    again, = book.pull(Report(room('r2')), 0.2).start
    assert again.lease > start.lease
    assert book.status()['tune']['leases_lost'] == 0


def test_random_faults_never_run_a_job_twice_at_once_nor_lose_it():
    """Replicas that die, answers that are lost, and jobs that end: each job ends once, from its own steps."""
    import random
    for seed in range(30):
        draw = random.Random(seed)
        book = Ledger(by_value(), lease_s=1.0, avoid_s=0.1)
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
