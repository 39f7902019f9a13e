"""The decisions of gpushare.ray, without Ray: what a replica predicts, and which replica gets a request."""

import math

import pytest
from ray_parts import MS, ranking, report

from gpushare.ray import _estimate, _ranking

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
