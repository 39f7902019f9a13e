"""Server, and what Service has of it, against a PyTorch without a GPU (fake_torch.py) and the simulated device."""

import asyncio
import gc
import threading
import time

import fake_torch
import pytest
from fake_torch import PLACES, Tensor, calls, double

import gpushare

MS = 1_000_000


@pytest.fixture
def capturing(capturing):
    capturing.node_ns = MS
    return capturing


@pytest.fixture
def server(torch, capturing):
    return torch.Server(capturing, name='engine')


@pytest.fixture
def one(server):
    """A server with one graph, which adds one."""
    server.add('d1', lambda tensor: Tensor([value + 1 for value in tensor.values]), Tensor([1, 2]))
    return server


def test_graphs_are_one_app_and_their_inputs_and_outputs_are_in_place(server, capturing):
    given = Tensor([1, 2])
    added = server.add('d1', double, given)
    server.add('d2', double, [Tensor([1, 2, 3])])
    assert added is server['d1']
    assert list(server.graphs) == ['d1', 'd2']
    assert added.inputs == (given,)
    assert added.outputs.values == [2, 4]
    assert added.kernel.name == 'engine/d1'
    assert server.run('d1') is added.outputs
    server.submit('d2').wait()
    assert server.app.stats().latency.count == 2
    with pytest.raises(gpushare.NotFoundError, match=r"no graph 'd3'\. It has: d1, d2"):
        server.submit('d3')
    with pytest.raises(gpushare.AlreadyExistsError, match="'d1' of 'engine' exists already"):
        server.add('d1', double, given)


def test_sixty_graphs_are_sixty_captures_on_one_stream_in_one_pool(server):
    for batch in range(60, 0, -1):
        server.add(f'd{batch}', double, Tensor([1] * batch))
    begun = [call for call in calls if call[0] == 'capture_begin']
    assert begun == [('capture_begin', 'side', 'relaxed', server.pool.id)] * 60
    # One run to warm up, and the capture; not one for each place.
    assert len([call for call in calls if call[0] == 'double']) == 120
    assert len({graph.kernel.id for graph in server.graphs.values()}) == 60
    tickets = [server.submit(name) for name in server.graphs]
    for ticket in tickets:
        ticket.wait()
    assert server.app.stats().completed == 60


def test_the_workspace_of_a_capture_is_in_the_pool_and_ends_with_it(server):
    server.add('d1', double, Tensor([1]))
    begin = calls.index(('capture_begin', 'side', 'relaxed', server.pool.id))
    assert calls[begin - 1] == ('clear_workspaces',)
    end = calls.index(('capture_end',))
    assert calls[end + 1] == ('clear_workspaces',)
    # The measurement, if there is one, comes behind what the caller has on its stream.
    assert ('synchronize', 'current') in calls[end:]


def test_places_says_how_a_graph_comes_to_them(torch, capturing):
    own = torch.Server(capturing, places='captured').add('d1', double, Tensor([1]))
    assert own.captures.place_sms == list(PLACES)
    assert 'graph' not in capturing.options
    whole = torch.Server(capturing, places='whole').add('d1', double, Tensor([1]))
    assert whole.captures is None
    assert capturing.options['confinable'] == gpushare.Choice.NO
    assert whole.unconfinable == ''
    copied = torch.Server(capturing).add('d1', double, Tensor([1]))
    assert copied.captures is None
    assert 'confinable' not in capturing.options
    assert capturing.options['segment_ns'] == -1
    with pytest.raises(ValueError, match="places is 'some', and it must be 'copied', 'captured' or 'whole'"):
        torch.Server(capturing, places='some')


def test_all_captures_of_a_server_share_its_pool(torch, capturing):
    server = torch.Server(capturing, places='captured')
    server.add('d1', double, Tensor([1]))
    server.add('d2', double, Tensor([1]))
    assert [call for call in calls if call[:2] == ('enter', 'pool')] == [('enter', 'pool', server.pool.id)] * 6


def test_a_capture_that_fails_in_a_place_leaves_the_whole_device(torch, capturing, caplog):
    tried = []

    def recurrent(tensor):
        stream = fake_torch.cuda.current_stream().name
        tried.append(stream)
        if stream == 'external 0x101':
            raise RuntimeError('cuDNN error: CUDNN_STATUS_EXECUTION_FAILED')
        return tensor

    added = torch.Server(capturing, name='engine', places='captured').add('rnn', recurrent, Tensor([1]))
    assert added.unconfinable == 'RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED'
    assert added.captures.place_sms == [132]
    assert tried == ['side', 'external 0x100', 'external 0x101', 'external 0x100']
    assert caplog.messages == [f"Graph 'engine/rnn' runs on the whole device only: {added.unconfinable}"]
    service = torch.Service(capturing, recurrent, Tensor([1]), name='service')
    assert service.unconfinable == added.unconfinable
    service(Tensor([1]))


def test_what_fails_on_the_whole_device_too_is_raised(torch, capturing):
    def never(tensor):
        if fake_torch.cuda.current_stream().name != 'side':
            raise KeyError('mine')
        return tensor

    with pytest.raises(KeyError, match='mine'):
        torch.Service(capturing, never, Tensor([1]), name='service')
    # The app is gone with it: its name is free.
    torch.Service(capturing, double, Tensor([1]), name='service')
    capturing.refused = gpushare.DeadlineExceededError(gpushare.Status.DEADLINE_EXCEEDED, 'It still runs.')
    with pytest.raises(gpushare.DeadlineExceededError):
        torch.Service(capturing, double, Tensor([1]), name='slow')


def test_a_graph_of_the_callers_is_captured_by_nobody_else(server, capturing):
    graph, given, result = fake_torch.CUDAGraph(keep_graph=True), Tensor([1]), Tensor([2])
    before = len(calls)
    added = server.add('d1', graph=graph, inputs=given, outputs=result)
    assert capturing.options['graph'] == graph.raw
    assert (added.inputs, added.outputs) == ((given,), result)
    assert not [call for call in calls[before:] if call[0] == 'capture_begin']
    assert server.run('d1') is result
    with pytest.raises(gpushare.InvalidArgumentError, match=r"'d2' of 'engine' gives no cudaGraph_t\. Capture into "
                       r'torch\.cuda\.CUDAGraph\(keep_graph=True\)'):
        server.add('d2', graph=fake_torch.CUDAGraph())
    with pytest.raises(TypeError, match=r'must be a torch\.cuda\.CUDAGraph'):
        server.add('d2', graph=7)
    for given in ({}, {'fn': double, 'graph': graph}):
        with pytest.raises(TypeError, match='pass one of fn and graph'):
            server.add('d2', **given)


def test_inputs_may_be_pinned_but_not_elsewhere_on_the_cpu(server):
    pinned, host = Tensor([1]).pin_memory(), Tensor([1])
    host.is_cuda = False
    added = server.add('d1', double, pinned)
    assert added.inputs[0] is pinned
    with pytest.raises(gpushare.InvalidArgumentError, match=r'tensor\.pin_memory\(\)'):
        server.add('d2', double, host)
    with pytest.raises(gpushare.InvalidArgumentError, match=r'A tensor of shape \(1,\) is on the CPU'):
        server.add('d2', lambda tensor: host, Tensor([1]))


def test_inputs_are_copied_behind_the_query_before_and_ahead_of_their_own(one, monkeypatch):
    first = one.submit('d1', Tensor([5, 6]))
    waited = []
    wait_complete = gpushare.Ticket.wait_complete
    monkeypatch.setattr(gpushare.Ticket, 'wait_complete', lambda ticket, timeout_s=None: (
        waited.append((ticket, list(one['d1'].inputs[0].values))), wait_complete(ticket))[1])
    before = len(calls)
    one.submit('d1', Tensor([7, 8]))
    assert waited == [(first, [5, 6])]
    assert one['d1'].inputs[0].values == [7, 8]
    copied = calls.index(('leave', 'no_grad'), before)
    assert calls[copied + 1:copied + 3] == [('record', 'current'), ('event',)]
    with pytest.raises(gpushare.InvalidArgumentError, match=r'Tensor 0 of the input is \(1,\)'):
        one.submit('d1', Tensor([9]))


def test_a_query_in_place_waits_for_nothing_but_the_events_that_are_named(one, monkeypatch):
    one._simulated = False  # as on a GPU, the device waits for the events
    seen, submit = [], one._queue.submit
    monkeypatch.setattr(one._queue, 'submit', lambda kernel, *, query, wait_events, **options: (
        seen.append(wait_events), submit(kernel, **options))[1])
    event = fake_torch.Event()
    before = len(calls)
    one.submit('d1')
    one.submit('d1', wait_events=[event])
    one.submit('d1', Tensor([1, 2]), wait_events=[event])
    one.run('d1', wait_events=[event])
    assert seen[:2] == [[], [event.cuda_event]]
    assert seen[2][0] == event.cuda_event
    assert len(seen[2]) == 2
    assert seen[3] == [event.cuda_event]
    assert [call for call in calls[before:] if call[0] == 'record'] == [('record', 'current')]


def test_latency_counts_from_the_arrival(one, capturing):
    for _ in range(3):
        one.run('d1')
    now_ns = capturing.now_ns()
    one.submit('d1', arrival_ns=1).wait()
    assert one.app.stats().latency.max_ns >= now_ns - 1
    one.run('d1', arrival_ns=1)
    assert one.app.stats().latency.max_ns > now_ns


def test_a_run_in_place_makes_no_ticket(one, monkeypatch):
    monkeypatch.setattr(one._queue, 'submit', None)
    one.run('d1', arrival_ns=1, timeout_s=10)
    with one.app.queue.begin_query() as query:
        one.run('d1', query=query)
    assert one.app.stats().completed == 2


def test_a_query_may_have_several_graphs_and_a_size(one, torch):
    with one.app.queue.begin_query() as query:
        one.run('d1', query=query)
        one.submit('d1', query=query)
    one.submit('d1', input_size=300, arrival_ns=1).wait()
    one.run('d1', input_size=300)
    one.app.runtime.drain()
    stats = one.app.stats()
    assert stats.latency.count == 3
    assert stats.queries_open == 0


def test_a_ticket_can_be_awaited(one):
    async def ask():
        return [await ticket for ticket in [one.submit('d1') for _ in range(3)]]

    assert [record.verdict for record in asyncio.run(ask())] == [gpushare.Verdict.OK] * 3
    assert one.submit('d1').future().result(10).verdict is gpushare.Verdict.OK


@pytest.mark.parametrize('interrupted', ['run', 'under way', 'released'])
def test_a_query_without_a_ticket_is_waited_for_before_its_inputs_are_written(
        form, one, capturing, monkeypatch, interrupted):
    capturing.quiesce()
    if interrupted == 'run':
        with pytest.raises(gpushare.DeadlineExceededError):
            one.run('d1', timeout_s=0)
    elif interrupted == 'under way':
        monkeypatch.setattr(gpushare._waits, 'SLICE_NS', gpushare.abi.GPUSHARE_NEVER)
        threading.Thread(target=one.run, args=('d1',)).start()
        while one.app.stats().submitted == 0:
            time.sleep(0.001)
    else:
        one.submit('d1').release()
    threading.Timer(0.05, capturing.resume).start()
    depths = []
    copy_ = Tensor.copy_
    monkeypatch.setattr(Tensor, 'copy_', lambda tensor, other, non_blocking=False: (
        depths.append(one.app.stats().queue_depth), copy_(tensor, other))[1])
    one.submit('d1', Tensor([7, 8])).wait()
    assert depths == [0]


def test_a_close_waits_for_a_run_beyond_its_first_slice(form, one, capturing, monkeypatch):
    monkeypatch.setattr(gpushare._waits, 'SLICE_NS', 1000)
    capturing.quiesce()
    ended = []
    thread = threading.Thread(target=lambda: ended.append(one.run('d1')))
    thread.start()
    while one.app.stats().submitted == 0 or one['d1'].kernel._use.in_use():
        time.sleep(0.001)
    threading.Timer(0.05, capturing.resume).start()
    outputs = one['d1'].outputs
    one.close()
    thread.join(30)
    assert ended == [outputs]
    with pytest.raises(gpushare.FailedPreconditionError, match='This Server is closed'):
        one.run('d1')


def test_the_state_is_as_before_the_registration(server):
    cache = Tensor([0, 0])

    def decode(tensor):
        cache.values[:] = [value + 1 for value in cache.values]
        return tensor

    server.add('d1', decode, Tensor([1]), state=[cache], warmup_runs=2)
    assert cache.values == [0, 0]
    assert ('synchronize', 'current') in calls
    server.add('d2', decode, Tensor([1]))
    assert cache.values == [2, 2]  # one run to warm up; the fake runs the captured one too


def test_a_graph_is_measured_on_request_and_before_the_first_query(one, capturing):
    assert capturing.options['measure_places'] is False
    one.add('d2', double, Tensor([1]), measure=True)
    assert capturing.options['measure_places'] is True
    one.run('d1')
    with pytest.raises(gpushare.FailedPreconditionError, match='Add it before the first query'):
        one.add('d3', double, Tensor([1]), measure=True)
    one.add('d3', double, Tensor([1]))
    cache, before = Tensor([5]), len(calls)
    with pytest.raises(gpushare.FailedPreconditionError, match='queries may have written it meanwhile'):
        one.add('d4', double, Tensor([1]), state=[cache])
    assert not [call for call in calls[before:] if call[0] == 'double']


def test_a_removed_graph_leaves_its_name(one, capturing):
    one.submit('d1')
    one.remove('d1')
    assert not one.graphs
    one.add('d1', double, Tensor([1, 2]))
    assert one.run('d1').values == [2, 4]


def test_a_query_that_comes_beside_a_remove_keeps_its_memory(one, capturing, monkeypatch):
    graph, close, unkeep, depths = one['d1'], gpushare.Kernel.close, capturing.unkeep, []

    def beside(kernel):
        if kernel is graph.kernel and not kernel.closed:  # another thread had the graph before
            capturing.quiesce()
            one._submit(graph, None, None, 0, (), {})
            threading.Timer(0.05, capturing.resume).start()
        close(kernel)

    monkeypatch.setattr(gpushare.Kernel, 'close', beside)
    monkeypatch.setattr(capturing, 'unkeep', lambda memory: (depths.append(one.app.stats().queue_depth),
                                                             unkeep(memory)))
    one.remove('d1')
    assert depths == [0]
    with pytest.raises(gpushare.FailedPreconditionError, match='This Kernel is closed'):
        one._submit(graph, None, None, 0, (), {})


def test_inputs_are_not_written_while_a_run_reads_them(one, capturing, monkeypatch):
    capturing.quiesce()
    thread = threading.Thread(target=one.run, args=('d1',))
    thread.start()
    while one.app.stats().queue_depth == 0:
        time.sleep(0.001)
    threading.Timer(0.05, capturing.resume).start()
    depths, copy_ = [], Tensor.copy_
    monkeypatch.setattr(Tensor, 'copy_', lambda tensor, other, non_blocking=False: (
        depths.append(one.app.stats().queue_depth), copy_(tensor, other))[1])
    one.submit('d1', Tensor([7, 8])).wait()
    thread.join()
    assert depths == [0]


def test_a_wait_forgets_only_the_query_that_it_waited_for(one, monkeypatch):
    first, second = one.submit('d1'), None
    wait_complete = gpushare.Ticket.wait_complete

    def waited(ticket, timeout_s=None):
        nonlocal second
        wait_complete(ticket, timeout_s)
        if ticket is first and second is None:
            second = one.submit('d1')  # of another thread

    with monkeypatch.context() as patch:
        patch.setattr(gpushare.Ticket, 'wait_complete', waited)
        one._in_flight.wait('d1', one['d1'].kernel)
    assert one._in_flight._newest['d1'] is second


def test_a_drain_ends_although_queries_follow_each_other(one):
    stop = threading.Event()
    tickets = [one.submit('d1')]

    def feed():
        while not stop.is_set():
            tickets.append(one.submit('d1'))
            tickets[-2].wait()

    thread = threading.Thread(target=feed)
    thread.start()
    for _ in range(3):
        one._in_flight.drain()
    stop.set()
    thread.join()


def test_weights_are_read_into_the_cache(server, capturing):
    weight = Tensor([1] * 8)
    server.add('d1', double, Tensor([1]), weights=[weight])
    assert capturing.options['warm_memory'] == [(weight.pointer, 32)]
    server.add('d2', graph=fake_torch.CUDAGraph(keep_graph=True))
    assert capturing.options['warm_memory'] == []


def test_events_live_until_the_query_is_complete(one, capturing, live_events):
    capturing.quiesce()
    one.submit('d1', wait_events=[fake_torch.cuda.Event()]).release()
    one.submit('d1', wait_events=[fake_torch.cuda.Event()])
    gc.collect()
    assert len(live_events) == 2
    capturing.resume()
    capturing.drain()
    one.submit('d1', wait_events=[fake_torch.cuda.Event()])
    assert len(live_events) == 1
    one.close()
    assert not live_events


def test_a_server_that_is_called_for_ever_keeps_few_slots(torch, capturing):
    server = torch.Server(capturing, tasks_max=4)
    server.add('d1', double, Tensor([1]))
    for _ in range(20):
        server.submit('d1', Tensor([1]), wait_events=[fake_torch.cuda.Event()]).wait()
        server.run('d1')
    assert len(server._in_flight.events) <= 1


def test_a_close_waits_for_what_is_in_flight_and_gives_everything_back(one, capturing, monkeypatch):
    seen = []
    stats = one.app.stats
    capturing.quiesce()
    one.submit('d1')
    threading.Timer(0.05, capturing.resume).start()
    with monkeypatch.context() as patch:
        patch.setattr(one.app, 'close', lambda close=one.app.close: (seen.append(stats().queue_depth), close()))
        one.close()
        one.close()
    assert seen == [0]
    assert one.app.closed
    assert not capturing._kept
    for late in (lambda: one.run('d1'), lambda: one.submit('d1'), lambda: one.add('d2', double, Tensor([1]))):
        with pytest.raises(gpushare.FailedPreconditionError, match='This Server is closed'):
            late()


def test_a_close_may_run_beside_calls(one, capturing):
    ended, failures = [], []

    def call():
        try:
            for _ in range(10_000):
                one.run('d1')
                one.run('d1', Tensor([1, 2]))
        except gpushare.FailedPreconditionError:
            ended.append(True)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    one.close()
    for thread in threads:
        thread.join()
    assert (len(ended), failures) == (3, [])
    assert not capturing._kept


def test_the_runtimes_close_ends_a_server(one, capturing):
    one.submit('d1')
    capturing.close()
    one.close()
    with pytest.raises(gpushare.FailedPreconditionError):
        one.run('d1')


def test_a_dropped_server_keeps_what_its_queries_use(torch, capturing):
    server = torch.Server(capturing)
    server.add('d1', double, Tensor([1]))
    server.submit('d1', wait_events=[fake_torch.cuda.Event()])
    del server
    gc.collect()
    assert len(capturing._kept) == 2
    capturing.close()
    assert not capturing._kept


# --- a service ---


@pytest.fixture
def service(torch, capturing):
    return torch.Service(capturing, double, Tensor([1, 2]), name='service')


def test_a_service_has_the_submits_of_a_server(service):
    ticket = service.submit(Tensor([5, 6]), arrival_ns=1, input_size=2)
    assert ticket.wait().verdict is gpushare.Verdict.OK
    assert service.inputs[0].values == [5, 6]
    service.submit().wait()
    assert service.outputs.values == [2, 4]
    assert service.kernel.name == 'service'
    assert service.app.stats().latency.count == 2


def test_a_service_in_place_reads_the_tensors_that_it_got(torch, capturing):
    pinned = Tensor([1, 2]).pin_memory()
    service = torch.Service(capturing, double, pinned, in_place=True, state=[pinned])
    assert service.inputs[0] is pinned
    copied = torch.Service(capturing, double, pinned)
    assert copied.inputs[0] is not pinned
    assert copied.inputs[0].is_pinned()


def test_coroutines_share_a_service_in_order_and_one_at_a_time(service, monkeypatch):
    order, depth = [], []

    async def ask(number):
        result = await service.call(Tensor([number, number]))
        depth.append(service.app.stats().queue_depth)
        order.append(number)
        return result

    async def ask_all():
        return await asyncio.gather(*(ask(number) for number in range(5)))

    results = asyncio.run(ask_all())
    assert [result.values for result in results] == [[2, 4]] * 5
    assert order == list(range(5))
    assert service.app.stats().latency.count == 5


def test_a_coroutine_that_is_cancelled_leaves_its_turn_to_others(service, capturing):
    async def ask_all():
        capturing.quiesce()
        first = asyncio.ensure_future(service.call(Tensor([1, 1])))
        second = asyncio.ensure_future(service.call(Tensor([2, 2])))
        third = asyncio.ensure_future(service.call(Tensor([3, 3])))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.sleep(0.01)
        first.cancel()
        capturing.resume()
        return await asyncio.gather(first, second, third, return_exceptions=True)

    first, second, third = asyncio.run(ask_all())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, asyncio.CancelledError)
    assert third.values == [2, 4]
    assert service.inputs[0].values == [3, 3]
    assert service(Tensor([4, 4])).values == [2, 4]


def test_a_turn_that_comes_as_its_caller_is_cancelled_goes_on_to_the_next(service):
    turns = service._turns

    async def take():
        async with turns:
            pass

    async def take_all():
        async with turns:
            waiter = asyncio.ensure_future(take())
            await asyncio.sleep(0)
        waiter.cancel()  # it has its turn, and does not know yet
        await asyncio.gather(waiter, return_exceptions=True)
        await asyncio.wait_for(take(), 5)

    asyncio.run(take_all())


def test_threads_and_coroutines_take_turns(service):
    async def ask():
        for _ in range(20):
            await service.call(Tensor([1, 1]))

    threads = [threading.Thread(target=lambda: [service(Tensor([1, 2])) for _ in range(20)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    asyncio.run(ask())
    for thread in threads:
        thread.join()
    assert service.app.stats().latency.count == 60


def test_results_are_read_before_the_next_query_overwrites_them(service, monkeypatch):
    service._server._simulated = False
    seen, submit = [], service._server._queue.submit
    monkeypatch.setattr(service._server._queue, 'submit', lambda kernel, *, query, wait_events: (
        seen.append(wait_events), submit(kernel))[1])
    service(Tensor([1, 2]))
    asyncio.run(service.call(Tensor([1, 2])))
    assert [len(events) for events in seen] == [1, 2]


def test_a_submit_waits_for_the_copies_of_the_results_before(service, monkeypatch):
    service._server._simulated = False
    seen, submit = [], service._server._queue.submit
    monkeypatch.setattr(service._server._queue, 'submit', lambda kernel, *, query, wait_events: (
        seen.append(wait_events), submit(kernel))[1])
    service(Tensor([1, 2]))
    event = fake_torch.Event()
    service.submit(wait_events=[event]).wait()
    service.submit().wait()  # it runs behind the query that has waited
    assert [len(events) for events in seen] == [1, 2, 0]
    assert seen[1][1] == event.cuda_event


def test_a_submit_does_not_overwrite_the_results_of_a_call(service, capturing):
    capturing.quiesce()
    call = threading.Thread(target=service, args=(Tensor([1, 2]),))
    call.start()
    while service.app.stats().queue_depth == 0:
        time.sleep(0.001)
    late = threading.Thread(target=service.submit)
    late.start()
    late.join(0.05)
    depth = service.app.stats().queue_depth
    capturing.resume()
    call.join()
    late.join()
    assert depth == 1, 'the call reads its results first'


def test_a_thread_does_not_wait_for_its_own_loop(service, capturing):
    async def ask_all():
        capturing.quiesce()
        call = asyncio.ensure_future(service.call(Tensor([1, 2])))
        await asyncio.sleep(0.01)
        for blocked in (service, service.submit):
            with pytest.raises(gpushare.FailedPreconditionError, match='event loop of this thread'):
                blocked(Tensor([3, 4]))
        capturing.resume()
        await call
        return service(Tensor([5, 6]))

    assert asyncio.run(asyncio.wait_for(ask_all(), 20)).values == [2, 4]


def test_a_thread_does_not_wait_behind_a_waiter_of_its_own_loop(service, capturing):
    async def ask():
        waiter = asyncio.ensure_future(service.call(Tensor([1, 2])))
        await asyncio.sleep(0.01)
        with pytest.raises(gpushare.FailedPreconditionError, match='event loop of this thread'):
            service(Tensor([3, 4]))
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)

    with service._turns:  # of a thread, which waits for no loop
        thread = threading.Thread(target=lambda: asyncio.run(ask()))
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
    service(Tensor([1, 2]))


def test_a_service_may_be_closed_beside_its_calls(service, capturing):
    ended, failures = [], []

    def call():
        try:
            for _ in range(10_000):
                service(Tensor([1, 2]))
        except gpushare.FailedPreconditionError:
            ended.append(True)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    service.close()
    for thread in threads:
        thread.join()
    assert (len(ended), failures) == (3, [])
    assert not capturing._kept


def test_a_service_that_is_closed_in_its_own_loop_ends_with_the_call(service, capturing):
    async def ask():
        capturing.quiesce()
        call = asyncio.ensure_future(service.call(Tensor([1, 2])))
        await asyncio.sleep(0.01)
        service.close()
        assert not service.app.closed
        capturing.resume()
        return await call

    assert asyncio.run(ask()).values == [2, 4]
    assert service.app.closed
