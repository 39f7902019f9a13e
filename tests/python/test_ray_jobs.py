"""Jobs in a replica of gpushare.ray, without Ray: when they pause, end and are given back."""

import pickle
import sys
import threading
import time

import pytest
from ray_parts import room

import gpushare
import gpushare.ray
from gpushare.ray._ledger import Ending, Ledger, Spec
from gpushare.ray._placement import by_value
from gpushare.ray._running import Action, Codec, Facts, Guard, Runner


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
        self.book = Ledger(by_value(), lease_s=options.pop('lease_s', 5.0))
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
