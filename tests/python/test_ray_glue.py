"""The parts of gpushare.ray that call Ray, with a Ray that is played: what they ask, how long they wait.

test_ray.py has Ray itself; it cannot make an actor hang or a pull time out.
"""

import importlib
import pickle
import sys
import time
import types

import pytest

from gpushare.ray import _placement
from gpushare.ray._ledger import Held, Orders, Report, Spec

MS = 1_000_000


class RayActorError(Exception):
    """As Ray's."""


class GetTimeoutError(TimeoutError):
    """As Ray's."""


class Played:
    """A Ray whose actors are objects of this process. `gets`: the timeouts; `fail`: what ray.get raises."""

    def __init__(self):
        self.gets, self.cancelled, self.fail = [], [], None
        self.actor = None
        self.exceptions = types.SimpleNamespace(RayActorError=RayActorError, GetTimeoutError=GetTimeoutError)

    def get(self, reference, timeout=None):
        self.gets.append(timeout)
        if self.fail is not None:
            raise self.fail
        if timeout is not None and timeout < 0.01:  # as Ray: nothing answers at once
            raise GetTimeoutError
        return reference()

    def cancel(self, reference):
        self.cancelled.append(reference)

    def get_actor(self, name, namespace):
        return self.actor

    def remote(self, cls):
        def make(*arguments):
            made = cls(*arguments)
            self.actor = types.SimpleNamespace(**{
                name: types.SimpleNamespace(remote=lambda *values, name=name: lambda: getattr(made, name)(*values))
                for name in ('submit', 'cancel', 'forget', 'pull', 'status', 'result', 'placement_failure')})
            self.made = made
            return self.actor
        return types.SimpleNamespace(options=lambda **_: types.SimpleNamespace(remote=make))


class Gauge:
    values = {}

    def __init__(self, name, text, keys):
        self.name = name

    def set_default_tags(self, tags):
        pass

    def set(self, value, tags=None):
        Gauge.values[self.name, (tags or {}).get('state')] = value


class RequestRouter:
    """As Serve's."""

    def update_replicas(self, replicas):
        self.replicas = replicas


@pytest.fixture
def played(monkeypatch):
    ray = Played()
    modules = {
        'ray': types.ModuleType('ray'), 'ray.util': types.ModuleType('ray.util'),
        'ray.serve': types.ModuleType('ray.serve'), 'ray.serve.config': types.ModuleType('ray.serve.config'),
        'ray.serve.request_router': types.ModuleType('ray.serve.request_router')}
    for name in ('get', 'cancel', 'get_actor', 'remote', 'exceptions'):
        setattr(modules['ray'], name, getattr(ray, name))
    modules['ray'].cloudpickle = pickle
    modules['ray.util'].metrics = types.SimpleNamespace(Gauge=Gauge, Counter=Gauge)
    modules['ray.serve.config'].RequestRouterConfig = dict
    for name, cls in (('RequestRouter', RequestRouter), ('PendingRequest', object), ('RunningReplica', object)):
        setattr(modules['ray.serve.request_router'], name, cls)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    package = importlib.import_module('gpushare.ray')
    for name in ('jobs', 'metrics', 'router'):
        monkeypatch.delitem(sys.modules, f'gpushare.ray.{name}', raising=False)
        monkeypatch.delattr(package, name, raising=False)
    Gauge.values.clear()
    yield ray
    for name in ('jobs', 'metrics', 'router'):
        sys.modules.pop(f'gpushare.ray.{name}', None)
        if hasattr(package, name):
            delattr(package, name)


@pytest.fixture
def jobs(played):
    return importlib.import_module('gpushare.ray.jobs')


def room(replica='r1'):
    return _placement.Room(replica, 'chat', 0.3, 1.05, 0.5)


def test_each_call_of_the_client_has_a_time_limit(played, jobs):
    client = jobs.start_jobs()
    client.submit('a', print)
    client.status()
    client.cancel('a')
    client.forget('a')
    assert len(played.gets) == 5
    assert all(timeout is not None and timeout <= jobs.RESTART_S for timeout in played.gets)


def test_a_wait_ends_in_time_where_the_actor_does_not_answer(played, jobs):
    client = jobs.start_jobs()
    client.submit('a', print)
    played.gets.clear()
    with pytest.raises(TimeoutError, match=r'has not ended within 0.2 s'):
        client.wait('a', timeout_s=0.2)
    assert max(played.gets) <= jobs.ANSWER_S
    with pytest.raises(TimeoutError, match=r'has not ended within 0 s'):
        client.wait('a', timeout_s=0)


def test_the_start_says_at_once_why_the_actor_cannot_start(played, jobs):
    played.fail = RayActorError('The pair has the p99_ratio 0')
    begin = time.monotonic()
    with pytest.raises(RayActorError, match='p99_ratio'):
        jobs.start_jobs()
    assert time.monotonic() - begin < 5
    assert len(played.gets) == 1


def test_a_pull_that_times_out_is_cancelled(played, jobs):
    jobs.start_jobs()
    pull = jobs.puller('jobs', timeout_s=1.4)
    assert isinstance(pull(Report(room())), Orders)
    played.fail = GetTimeoutError()
    with pytest.raises(TimeoutError):
        pull(Report(room()))
    assert len(played.cancelled) == 1
    assert played.gets[-1] == 1.4


def test_the_book_is_on_disk_before_a_start_and_not_again_for_each_drop(played, jobs, tmp_path):
    path = tmp_path / 'jobs.v1'
    client = jobs.start_jobs(state_path=path, lease_s=0.01)
    actor = played.made
    client.submit('a', print)
    start, = actor.pull(Report(room())).start
    assert start.lease > 10**18  # of time.time_ns(): a book without state_path reuses no lease
    assert pickle.loads(path.read_bytes())['last_lease'] == start.lease
    client.cancel('a')
    path.unlink()
    actor._saved_s = time.monotonic()
    assert actor.pull(Report(room(), (Held('a', start.lease, 0),))).drop == (start.lease,)
    assert list(tmp_path.iterdir()) == []
    client.submit('b', print)
    assert [each.name for each in tmp_path.iterdir()] == ['jobs.v1']
    again = jobs.JobsActor('jobs', (), 5.0, str(path))
    assert sorted(again.status()) == ['a', 'b']


def test_the_partial_file_has_the_whole_name_and_is_synchronized(played, jobs, tmp_path, monkeypatch):
    synchronized, replaced = [], []
    monkeypatch.setattr(jobs.os, 'fsync', synchronized.append)
    monkeypatch.setattr(jobs.os, 'replace', lambda source, target: replaced.append(source.name))
    jobs.JobsActor('jobs', (), 5.0, str(tmp_path / 'jobs.v1')).submit(Spec('a', '', b''))
    assert (len(synchronized), replaced) == (1, ['jobs.v1.partial'])


def test_the_gauge_of_jobs_follows_a_lease_that_ends_without_a_pull(played, jobs):
    jobs.start_jobs(lease_s=0.01).submit('a', print)
    played.made.pull(Report(room()))
    assert Gauge.values['gpushare_ray_jobs_by_state', 'leased'] == 1
    time.sleep(0.05)
    played.made.status()
    assert Gauge.values['gpushare_ray_jobs_by_state', 'leased'] == 0


def test_a_report_is_as_old_as_when_it_came_not_as_the_first_request(played, monkeypatch):
    router = importlib.import_module('gpushare.ray.router').LeastLatencyRouter()
    router.initialize_state()
    stats = {'sequence': 1, 'wait_ms': 0.0, 'service_ms': 10.0, 'spread_ms': 0.0}
    replica = types.SimpleNamespace(replica_id=types.SimpleNamespace(unique_id='r1'), routing_stats=stats)
    now = time.monotonic()
    router.update_replicas([replica])
    router._ranking.note('r1', stats, now + 10)
    assert router._ranking.latency_ms('r1', 0, now + 10) is None


def test_jobs_begin_when_the_subclass_is_made(played):
    deployment = importlib.import_module('gpushare.ray.deployment')

    class Model(deployment.Replica):
        def __init__(self):
            super().__init__('chat', target_ns=50 * MS, jobs='jobs', runtime_options={'device': 'sim'})
            self.begun_in_init = self._runner._thread.is_alive()

        def replica_name(self):
            return 'r1', 'chat'

    made = Model()
    try:
        assert made.begun_in_init is False
        made.check_health()
        made.record_routing_stats()
        assert made._runner._thread.is_alive()
    finally:
        made.close()
