"""A replica of gpushare.ray, without Ray."""

import importlib
import json
import pathlib
import sys
import threading
import time

import pytest
from ray_parts import MS, ledger, ranking

import gpushare
import gpushare.ray
from gpushare.ray import _ledger, _running, deployment

# --- the replica, without Ray ---

class RecordedMetrics:
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
        return RecordedMetrics()


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


def test_the_wheel_has_each_package_and_the_extra():
    package = pathlib.Path(gpushare.__file__).parent
    settings = (package.parent / 'pyproject.toml').read_text(encoding='utf-8')
    folders = [file.parent.relative_to(package.parent) for file in package.rglob('__init__.py')]
    found = sorted('.'.join(folder.parts) for folder in folders)
    assert f'packages = {json.dumps(found)}' in settings
    assert 'ray = ["ray[serve]' in settings
