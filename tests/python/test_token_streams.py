"""Token streams: times to the first token and between two, and the bound that counts them."""

import math

import pytest

import gpushare

MS = 1_000_000

pytestmark = pytest.mark.usefixtures('form')  # both forms of a step's calls


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


@pytest.fixture
def idle(polled):
    """An app with a task, and four streams, of which the library has ended the first three as idle."""
    chain = polled.register_kernel('chain1')
    app = polled.create_app('engine', gpushare.LATENCY_CRITICAL, tasks_max=3, idle_timeout_ns=MS)
    streams = [app.begin_token_stream() for _ in range(3)]
    for _ in range(100):
        app.run(chain)
    streams.append(app.begin_token_stream())
    assert app.guarantee().token_streams == 1
    return app, app.submit(chain), streams


def test_a_stream_that_the_library_has_ended_ends_well(idle):
    app, ticket, streams = idle
    streams[0].end()
    with streams[1]:
        pass
    streams[3].end()
    assert app.guarantee().token_streams == 0
    ticket.wait()


def test_a_stream_that_the_library_has_ended_does_not_cost_the_others_their_token(idle):
    app, ticket, streams = idle
    gpushare.mark_tokens(streams, ticket)
    assert [stream.ended for stream in streams] == [True, True, True, False]
    ticket.wait_ok()
    assert app.guarantee().first_tokens == 1
    gpushare.mark_tokens(streams, ticket)
    assert app.guarantee().token_distances == 1
    streams[0].mark(ticket)
    streams[3].end()
    for given in (streams[3:], streams):
        with pytest.raises(gpushare.InvalidArgumentError, match='Token stream 0'):
            gpushare.mark_tokens(given, ticket)


def test_a_ticket_that_is_no_query_marks_nothing(idle, polled):
    app, ticket, streams = idle
    batch = polled.create_app('batch', gpushare.BEST_EFFORT)
    be = batch.submit(polled.register_kernel('sincos_27us'), block_tasks=1)
    with pytest.raises(gpushare.InvalidArgumentError, match='best-effort task'):
        gpushare.mark_tokens(streams, be)
    assert not any(stream.ended for stream in streams)
    be.cancel()
    ticket.wait_ok()
    assert app.guarantee().first_tokens == 0


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
