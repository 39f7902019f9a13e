"""asyncio and concurrent.futures: completions arrive, few file descriptors are used, nothing delays the flow."""

import asyncio
import concurrent.futures
import os
import time

import pytest

import gpushare


def test_await_gives_the_record(service, chain):
    async def ask():
        return await service.submit(chain)

    assert asyncio.run(ask()).verdict is gpushare.Verdict.OK


def test_many_futures_use_few_file_descriptors_and_other_queues_are_not_behind_them(polled):
    training = polled.create_app('training', gpushare.BEST_EFFORT)
    service = polled.create_app('service', gpushare.LATENCY_CRITICAL)
    kernel, chain = (polled.register_kernel(name) for name in ('sincos_27us', 'chain1'))
    before = len(os.listdir('/proc/self/fd'))
    steps = [training.submit(kernel, block_tasks=1_000_000).future() for _ in range(500)]
    query = service.submit(chain)
    assert len(os.listdir('/proc/self/fd')) - before <= 2 * 32 + 2
    answered = query.future()
    query.wait()
    assert answered.result(timeout=30) is query.record()
    assert not steps[-1].done()
    polled.drain()
    done, left = concurrent.futures.wait(steps, timeout=30)
    assert (len(done), len(left)) == (500, 0)


def test_many_tickets_are_awaited(training, sincos):
    async def work():
        async def step():
            return await training.submit(sincos, block_tasks=100)

        return await asyncio.gather(*(step() for _ in range(300)))

    assert len(asyncio.run(work())) == 300


def test_a_cancelled_wait_leaves_the_task_and_other_waits_alone(service, chain):
    async def ask():
        ticket = service.submit(chain)
        first = asyncio.ensure_future(asyncio.wait_for(ticket, 100))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await ticket

    assert asyncio.run(ask()).verdict is gpushare.Verdict.OK


@pytest.fixture
def open_task(polled):
    """A function that submits a task, which is complete once the test drives the runtime."""
    app = polled.create_app('service', gpushare.LATENCY_CRITICAL)
    kernel = polled.register_kernel('chain1')
    return lambda: app.submit(kernel)


def descriptors():
    return len(os.listdir('/proc/self/fd'))


def come_down_to(expected):
    """The number of open descriptors, once the other thread has closed its own."""
    for _ in range(3000):
        if descriptors() <= expected:
            break
        time.sleep(0.01)
    return descriptors()


async def turns(count=3):
    for _ in range(count):
        await asyncio.sleep(0)


def test_an_await_is_the_loops_own_and_leaves_no_descriptor(polled, open_task, monkeypatch):
    monkeypatch.setattr(type(polled._completions()), 'add', lambda *arguments: pytest.fail('The thread waits for it.'))

    async def ask():
        before = descriptors()
        for _ in range(3):
            tickets = [open_task() for _ in range(20)]
            asked = [asyncio.ensure_future(one) for one in map(_awaited, tickets)]
            await turns()
            assert descriptors() == before + 2 * 20
            polled.drain()
            assert await asyncio.gather(*asked) == [ticket.record() for ticket in tickets]
            assert descriptors() == before
        assert not polled._waiter._watched and polled._waiter._lanes[tickets[0]._queue.handle].armed == 0

    asyncio.run(ask())


async def _awaited(ticket):
    return await ticket


def test_an_await_of_a_complete_task_gives_other_work_its_turn(polled, open_task):
    async def ask():
        ticket = open_task()
        polled.drain()
        ran = []
        asyncio.get_running_loop().call_soon(ran.append, 1)
        await ticket
        return list(ran)

    assert asyncio.run(ask()) == [1]


@pytest.mark.parametrize('cancel', [True, False])
def test_who_asks_behind_a_wait_that_ended_gets_the_record(polled, open_task, cancel):
    """Cancelled, or with its loop: the package's thread watches the ticket from then on."""
    before = descriptors()
    polled._completions()
    at_rest = descriptors()
    ticket = open_task()
    loop = asyncio.new_event_loop()
    waits = loop.create_task(_awaited(ticket))
    loop.run_until_complete(turns())
    if cancel:
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(waits)
    else:
        waits._log_destroy_pending = False
        waits.get_coro().close()
    loop.close()
    del waits, loop
    polled.drain()
    assert ticket.future().result(timeout=30) is ticket.record()
    assert come_down_to(at_rest) == at_rest > before
    assert not polled._waiter._watched and not polled._waiter._armed


def test_several_wait_for_one_ticket_wherever_they_are(polled, open_task):
    async def ask():
        ticket = open_task()
        waits = [asyncio.ensure_future(_awaited(ticket)) for _ in range(3)]
        await turns()
        future = ticket.future()
        elsewhere = loop_of_thread.submit(asyncio.run, _awaited(ticket))
        waits[0].cancel()  # that which watches the ticket
        await turns()
        polled.drain()
        assert isinstance((await asyncio.gather(waits[0], return_exceptions=True))[0], asyncio.CancelledError)
        records = [await waits[1], await waits[2], await asyncio.wrap_future(future),
                   await asyncio.wrap_future(elsewhere)]
        assert records == [ticket.record()] * 4
        assert not polled._waiter._watched

    with concurrent.futures.ThreadPoolExecutor(1) as loop_of_thread:
        asyncio.run(ask())


def test_a_future_of_an_awaited_ticket_does_not_need_the_loop(polled, open_task):
    async def ask():
        ticket = open_task()
        waits = asyncio.ensure_future(_awaited(ticket))
        await turns()
        future = ticket.future()
        polled.drain()
        assert future.result(timeout=30) is ticket.record()  # and the loop stands still
        assert await waits is ticket.record()

    asyncio.run(ask())


@pytest.mark.parametrize('complete', [True, False])
def test_a_close_leaves_the_record_to_the_coroutine_that_waits(complete):
    """The task is complete before the coroutine's first turn, or behind it."""
    async def ask():
        with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL) as runtime:
            app = runtime.create_app('training', gpushare.BEST_EFFORT)
            ticket = app.submit(runtime.register_kernel('sincos_27us'), block_tasks=1000)
            if complete:
                runtime.drain()
            waits = asyncio.ensure_future(_awaited(ticket))
            await asyncio.sleep(0)
            runtime.drain()
        return await asyncio.wait_for(waits, 10)

    assert asyncio.run(ask()).verdict is gpushare.Verdict.OK


def test_a_close_resolves_the_awaits_beyond_the_descriptors_of_a_queue():
    async def ask():
        with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL) as runtime:
            app = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
            kernel = runtime.register_kernel('chain1')
            waits = [asyncio.ensure_future(_awaited(app.submit(kernel))) for _ in range(100)]
            await turns()
            assert len(runtime._waiter._watched) == 32
            runtime.drain()
        return await asyncio.wait_for(asyncio.gather(*waits), 10)

    assert [record.verdict for record in asyncio.run(ask())] == [gpushare.Verdict.OK] * 100


def test_an_await_gets_a_descriptor_when_the_loops_own_awaits_have_ended(polled, open_task, monkeypatch):
    """None was free when they ended: the thread has to try again."""
    eventfd = gpushare.library().gpushare_ticket_eventfd
    refusals = [gpushare.Status.RESOURCE_EXHAUSTED] * 33

    async def ask():
        waits = [asyncio.ensure_future(_awaited(open_task())) for _ in range(33)]
        await turns()
        assert len(polled._waiter._watched) == 32
        monkeypatch.setattr(gpushare.library(), 'gpushare_ticket_eventfd',
                            lambda *arguments: refusals.pop() if refusals else eventfd(*arguments))
        polled.drain()
        return await asyncio.wait_for(asyncio.gather(*waits), 10)

    assert len(asyncio.run(ask())) == 33
    assert not refusals


def test_an_await_gets_a_descriptor_when_the_loops_own_awaits_are_cancelled(polled, open_task, monkeypatch):
    async def ask():
        waits = [asyncio.ensure_future(_awaited(open_task())) for _ in range(33)]
        await turns()
        monkeypatch.setattr(polled._waiter, '_share', lambda *arguments: 1 // 0)  # as where epoll refuses
        for wait in waits[:32]:
            wait.cancel()
        ended = await asyncio.gather(*waits[:32], return_exceptions=True)
        assert {type(error) for error in ended} == {ZeroDivisionError}
        polled.drain()
        return await asyncio.wait_for(waits[32], 10)

    assert asyncio.run(ask()).verdict is gpushare.Verdict.OK


class LoopWithoutReaders(asyncio.SelectorEventLoop):
    def add_reader(self, *arguments):
        raise NotImplementedError

    def remove_reader(self, *arguments):
        raise NotImplementedError


def test_a_loop_without_readers_says_so_and_leaves_the_ticket_to_the_thread(polled, open_task):
    polled._completions()
    at_rest = descriptors()
    ticket = open_task()
    loop = LoopWithoutReaders()
    with pytest.raises(NotImplementedError):
        loop.run_until_complete(_awaited(ticket))
    loop.close()
    polled.drain()
    assert ticket.future().result(timeout=30) is ticket.record()
    assert come_down_to(at_rest) == at_rest
    assert not polled._waiter._watched and not polled._waiter._armed


def test_awaits_beyond_the_descriptors_of_a_queue_go_to_the_thread(polled, open_task):
    async def ask():
        waits = [asyncio.ensure_future(_awaited(open_task())) for _ in range(100)]
        await turns()
        assert descriptors() - before <= 2 * 32
        assert len(polled._waiter._watched) == 32
        polled.drain()
        assert {record.verdict for record in await asyncio.gather(*waits)} == {gpushare.Verdict.OK}

    async def count():  # with what a loop has open
        return descriptors()

    polled._completions()
    before = asyncio.run(count())
    asyncio.run(ask())


def test_a_task_that_fails_raises_where_it_is_awaited(runtime, training, sincos):
    async def ask():
        runtime.quiesce()
        ticket = training.submit(sincos, block_tasks=1000)
        assert ticket.cancel()
        runtime.resume()
        await ticket

    with pytest.raises(gpushare.TaskError, match='CANCELLED'):
        asyncio.run(ask())


def test_futures_complete_and_their_callbacks_may_submit(service, chain):
    second = []
    first = service.submit(chain).future()
    first.add_done_callback(lambda _: second.append(service.submit(chain)))
    assert first.result(timeout=30).verdict is gpushare.Verdict.OK
    assert not first.cancel()
    futures = [service.submit(chain).future() for _ in range(100)]
    done, left = concurrent.futures.wait(futures, timeout=30)
    assert (len(done), len(left)) == (100, 0)
    assert second[0].wait().verdict is gpushare.Verdict.OK


def test_a_future_of_a_complete_ticket_is_resolved_and_is_one(service, chain):
    ticket = service.submit(chain)
    ticket.wait()
    assert ticket.future() is ticket.future()
    assert ticket.future().result(timeout=30) is ticket.record()


def test_closing_the_runtime_resolves_every_future(run_python):
    with gpushare.Runtime(device='sim') as runtime:
        app = runtime.create_app('training', gpushare.BEST_EFFORT)
        kernel = runtime.register_kernel('sincos_27us')
        futures = [app.submit(kernel, block_tasks=1000).future() for _ in range(200)]
    assert all(future.done() for future in futures)
    assert {future.result().verdict for future in futures} == {gpushare.Verdict.OK}


def test_without_file_descriptors_futures_come_late_and_not_never(run_python):
    said = run_python('''
        import gpushare, os, resource
        runtime = gpushare.Runtime(device='sim')
        app = runtime.create_app('training', gpushare.BEST_EFFORT)
        kernel = runtime.register_kernel('sincos_27us')
        app.submit(kernel, block_tasks=10).future().result(30)
        used = len(os.listdir('/proc/self/fd'))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 4, used + 4))
        futures = [app.submit(kernel, block_tasks=1000).future() for _ in range(100)]
        print(sum(future.result(30).verdict for future in futures))
    ''')
    assert said == '100\n'


def test_a_wait_can_be_interrupted(run_python):
    said = run_python('''
        import gpushare, os, signal, threading
        runtime = gpushare.Runtime(device='sim')
        runtime.quiesce()
        app = runtime.create_app('training', gpushare.BEST_EFFORT)
        ticket = app.submit(runtime.register_kernel('sincos_27us'), block_tasks=10)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            ticket.wait()
        except KeyboardInterrupt:
            print('interrupted')
    ''')
    assert said == 'interrupted\n'


@pytest.mark.parametrize('kind', [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_an_exception_that_is_no_error_fails_its_future_only(service, chain, kind):
    def leave(stream):
        raise kind

    with pytest.raises(gpushare.TaskError) as caught:
        service.submit(enqueue=leave).future().result(timeout=30)
    assert isinstance(caught.value.__cause__, kind)
    leaves = service.submit(chain).future()
    leaves.add_done_callback(leave)
    assert leaves.result(timeout=30).verdict is gpushare.Verdict.OK
    assert service.submit(chain).future().result(timeout=30).verdict is gpushare.Verdict.OK


@pytest.mark.filterwarnings('ignore::pytest.PytestUnhandledThreadExceptionWarning')
def test_when_the_thread_ends_its_futures_fail(polled, monkeypatch):
    service = polled.create_app('service', gpushare.LATENCY_CRITICAL)
    chain = polled.register_kernel('chain1')
    first, second = service.submit(chain), service.submit(chain)
    future = first.future()
    monkeypatch.setattr(polled._waiter, '_arm', lambda queue: 1 // 0)
    # The call raises, unless the thread has come here first and has ended.
    with pytest.raises(ZeroDivisionError):
        second.future().result(timeout=30)
    if polled._waiter._ended is None:
        os.eventfd_write(polled._waiter._wake, 1)
    with pytest.raises(ZeroDivisionError):
        future.result(timeout=30)
    with pytest.raises(ZeroDivisionError):
        service.submit(chain).future().result(timeout=30)


def test_nothing_is_written_to_an_eventfd_that_the_thread_has_closed(polled):
    service = polled.create_app('service', gpushare.LATENCY_CRITICAL)
    ticket = service.submit(polled.register_kernel('chain1'))
    waiter = polled._completions()
    waiter.close()
    with os.fdopen(os.eventfd(0, os.EFD_NONBLOCK)) as other:  # which may get the number of the closed one
        if other.fileno() != waiter._wake:
            os.dup2(other.fileno(), waiter._wake)
        with pytest.raises(gpushare.FailedPreconditionError, match='This Runtime is closed'):
            waiter.add(service.queue.handle, ticket).result(timeout=30)
        waiter.close()
        with pytest.raises(BlockingIOError):
            os.eventfd_read(waiter._wake)
        if other.fileno() != waiter._wake:
            os.close(waiter._wake)


def test_futures_that_are_made_during_a_close_are_resolved_or_refused(monkeypatch):
    closed, wrong = set(), []
    made, close, write = os.eventfd, os.close, os.eventfd_write

    def make(*arguments):
        descriptor = made(*arguments)
        closed.discard(descriptor)
        return descriptor

    monkeypatch.setattr(os, 'eventfd', make)
    monkeypatch.setattr(os, 'close', lambda descriptor: (closed.add(descriptor), close(descriptor)))
    monkeypatch.setattr(os, 'eventfd_write', lambda descriptor, value: (
        wrong.append(descriptor) if descriptor in closed else write(descriptor, value)))

    def ask(tickets):
        futures = []
        for ticket in tickets:
            try:
                futures.append(ticket.future())
            except gpushare.FailedPreconditionError:  # closed
                break
        for future in futures:
            assert future.exception(timeout=30) is None or 'closed' in str(future.exception())
        return len(futures)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            runtime = gpushare.Runtime(device='sim')
            service = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
            chain = runtime.register_kernel('chain1')
            tickets = [service.submit(chain) for _ in range(200)]
            runtime.drain()
            tickets[0].future().result(timeout=30)
            asked = [pool.submit(ask, tickets[number::2]) for number in range(2)]
            runtime.close()
            assert [call.result() >= 0 for call in asked] == [True, True]
    assert not wrong


def test_a_future_without_a_file_descriptor_is_tried_again_by_the_thread(runtime, service, chain, monkeypatch):
    runtime._completions()  # its thread waits
    refusals = [gpushare.Status.RESOURCE_EXHAUSTED] * 3
    eventfd = gpushare.library().gpushare_ticket_eventfd
    monkeypatch.setattr(gpushare.library(), 'gpushare_ticket_eventfd',
                        lambda *arguments: refusals.pop() if refusals else eventfd(*arguments))
    assert service.submit(chain).future().result(30).verdict is gpushare.Verdict.OK
    assert not refusals


def test_a_future_with_a_file_descriptor_does_not_wake_the_thread(runtime, service, chain, monkeypatch):
    """It would take the interpreter's lock from the caller."""
    runtime._completions()
    wakes = []
    with monkeypatch.context() as patch:
        patch.setattr(os, 'eventfd_write', lambda *arguments: wakes.append(arguments))
        assert service.submit(chain).future().result(30).verdict is gpushare.Verdict.OK
    assert not wakes
