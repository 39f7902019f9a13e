"""Token streams: times to the first token and between two, and the bound that counts them."""

import math

import pytest

import gpushare

MS = 1_000_000


def step(app, kernel, streams):
    ticket = app.submit(kernel)
    gpushare.mark_tokens(streams, ticket)
    ticket.wait_ok()


def test_tokens_count_from_the_arrival_and_from_each_other(polled):
    runtime, chain = polled, polled.register_kernel('chain1')
    app = runtime.create_app('engine', gpushare.LATENCY_CRITICAL)
    assert app.guarantee().token_streams == 0
    for _ in range(40):
        app.run(chain)  # 0.67 ms of virtual time
    with app.begin_token_stream(arrival_ns=runtime.now_ns() - 20 * MS) as stream, app.begin_token_stream() as other:
        assert app.guarantee().token_streams == 2
        step(app, chain, [stream, other])
        for _ in range(5):
            step(app, chain, [stream])
        found = app.guarantee()
        assert (found.first_tokens, found.token_distances) == (2, 5)
        assert 20 * MS < found.ttft_p99_ns < 23 * MS
        assert MS / 2 < found.tbt_p50_ns <= found.tbt_p99_ns < 2 * MS
        ticket = app.submit(chain)
        stream.mark(ticket)
        ticket.wait_ok()
        assert app.guarantee().token_distances == 6
    assert app.guarantee().token_streams == 0
    with pytest.raises(gpushare.InvalidArgumentError, match='Token stream'):
        stream.mark(ticket)


def test_dropped_streams_end(runtime):
    app = runtime.create_app('engine', gpushare.LATENCY_CRITICAL, tasks_max=1)
    for _ in range(3):
        app.begin_token_stream()
    stream = app.begin_token_stream()
    with pytest.raises(gpushare.ResourceExhaustedError, match='1 open token streams'):
        app.begin_token_stream()
    stream.end()
    stream.end()
    with pytest.raises(gpushare.InvalidArgumentError, match='best-effort'):
        runtime.create_app('batch', gpushare.BEST_EFFORT).begin_token_stream()


def test_a_bound_may_count_tokens(runtime, chain):
    app = runtime.create_app('engine', gpushare.LATENCY_CRITICAL, p99_bound=1.2, p99_alone_ns=MS, bounds_tokens=True)
    assert math.isnan(app.guarantee().p99_over_alone)
    with app.begin_token_stream() as stream:
        for _ in range(10):
            step(app, chain, [stream])
    found = app.guarantee()
    assert found.p99_over_alone == pytest.approx(found.tbt_p99_ns / MS, rel=1e-3)
    with pytest.raises(gpushare.InvalidArgumentError, match='one of both'):
        app.update(target_ns=MS)
    with pytest.raises(gpushare.InvalidArgumentError, match='bounds_tokens'):
        runtime.create_app('batch', gpushare.BEST_EFFORT, bounds_tokens=True)
