"""Threads, garbage, the interpreter's end and fork: nothing crashes, hangs or leaks."""

import concurrent.futures
import ctypes
import gc
import os
import threading
import time
import weakref

import pytest

import gpushare


def test_threads_submit_and_wait_at_once(runtime, service, training, chain, sincos):
    def work(number):
        queue = (service if number % 2 else training).create_queue()
        kernel, options = (chain, {}) if number % 2 else (sincos, {'block_tasks': 100})
        return sum(queue.submit(kernel, **options).wait().verdict for _ in range(50))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [50] * 8
    runtime.drain()
    assert service.stats().completed + training.stats().completed == 400


def test_dropped_tickets_give_their_slots_back(runtime, chain):
    app = runtime.create_app('small', gpushare.LATENCY_CRITICAL, tasks_max=8)
    for _ in range(100):
        app.submit(chain).wait()
    assert app.stats().completed == 100


def test_a_queue_that_is_dropped_with_work_in_flight_is_released_later(polled):
    app = polled.create_app('training', gpushare.BEST_EFFORT)
    kernel = polled.register_kernel('sincos_27us')
    app.create_queue().submit(kernel, block_tasks=1_000_000)
    gc.collect()
    assert polled._leftovers
    polled.drain()
    assert app.stats().completed == 1
    polled.create_app('next', gpushare.BEST_EFFORT)
    assert not polled._leftovers


def test_a_new_queue_releases_queues_that_were_dropped_with_work_in_flight(polled):
    app = polled.create_app('training', gpushare.BEST_EFFORT)
    kernel = polled.register_kernel('sincos_27us')
    for _ in range(3):
        app.create_queue().submit(kernel, block_tasks=1_000_000)
    gc.collect()
    assert len(polled._leftovers) == 3
    polled.drain()
    app.create_queue()
    assert not polled._leftovers


def test_a_dropped_runtime_closes_and_is_collected():
    for _ in range(3):
        runtime = gpushare.Runtime(device='sim')
        app = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
        app.submit(runtime.register_kernel('chain1')).future()
        gone = weakref.ref(runtime)
        del runtime, app
        for _ in range(100):  # the thread of the futures ends its round first
            gc.collect()
            if gone() is None:
                break
            threading.Event().wait(0.05)
        assert gone() is None


def test_everything_can_be_closed_in_any_order():
    runtime = gpushare.Runtime(device='sim')
    app = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
    queue, kernel = app.create_queue(), runtime.register_kernel('chain1')
    ticket = queue.submit(kernel)
    record = ticket.wait()
    kernel.close()
    runtime.close()
    queue.close()
    app.close()
    runtime.close()
    ticket.release()
    assert ticket.record() is record
    with pytest.raises(gpushare.FailedPreconditionError, match='This Runtime is closed'):
        runtime.stats()


def test_work_that_a_close_cuts_off_is_told(runtime):
    other = gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL)
    app = other.create_app('training', gpushare.BEST_EFFORT)
    app.submit(other.register_kernel('sincos_27us'), block_tasks=2**40)
    with pytest.raises(gpushare.DeadlineExceededError):
        other.close(timeout_s=0.001)
    assert other.closed


IN_FLIGHT = '''
import gpushare
runtime = gpushare.Runtime(device='sim')
training = runtime.create_app('training', gpushare.BEST_EFFORT)
kernel = runtime.register_kernel('sincos_27us')
steps = [training.submit(kernel, block_tasks=10_000) for _ in range(50)]
'''


def test_python_code_that_waits_runs_before_the_interpreter_ends(run_python):
    assert run_python(IN_FLIGHT + '''
runtime.quiesce()
service = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
ticket = service.submit(enqueue=lambda stream: print('enqueued', flush=True))
''') == 'enqueued\n'


@pytest.mark.parametrize('rest', [
    '',
    'futures = [step.future() for step in steps]',
    'import threading; threading.Thread(target=runtime.drain, daemon=True).start()',
    'del runtime',
    'steps[0].future().add_done_callback(lambda f: [step.done() for step in steps])',
    'runtime.keep(steps)',
])
def test_the_interpreter_ends_with_work_in_flight(run_python, rest):
    assert run_python(IN_FLIGHT + rest) == ''


def test_an_exception_with_work_in_flight_is_the_one_that_is_seen(run_python):
    said = run_python(IN_FLIGHT + 'with runtime:\n    raise KeyError("mine")', expected=1)
    assert "KeyError: 'mine'" in said
    assert 'gpushare' not in said.splitlines()[-1]


def test_a_child_after_fork_gets_errors_and_ends(run_python):
    said = run_python(IN_FLIGHT + '''
import os, sys, tempfile
path = tempfile.mkdtemp() + '/log'
runtime.start_trace(event_log_path=path)
runtime.stop_trace()
log = gpushare.EventLog(path)
step = steps[-1]
child = os.fork()
if child == 0:
    for call in (step.done, step.wait, step.cancel, step.future, runtime.stats,
                 lambda: training.submit(kernel, block_tasks=1)):
        try:
            call()
            print('no error', call)
        except gpushare.FailedPreconditionError as error:
            pass
    step.release()
    log.close()
    runtime.close()
    print('child done', flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
print('child', status, step.wait().verdict.name)
''', PYTHONWARNINGS='ignore')
    assert said == 'child done\nchild 0 OK\n'


def test_workers_of_a_pool_that_forks_can_be_used_beside_a_runtime(run_python):
    assert run_python(IN_FLIGHT + '''
import multiprocessing
with multiprocessing.get_context('fork').Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
''', PYTHONWARNINGS='ignore') == '[1, 2]\n'


def test_a_callback_of_a_future_cannot_close_the_runtime(runtime, service, chain):
    raised, called = [], threading.Event()

    def close(_):
        try:
            runtime.close()
        except gpushare.FailedPreconditionError as error:
            raised.append(error.message)
        called.set()

    runtime.quiesce()
    service.submit(chain).future().add_done_callback(close)
    runtime.resume()
    assert called.wait(timeout=30)
    assert 'A callback of a future cannot close its runtime' in raised[0]
    assert not runtime.closed


def test_threads_that_close_at_once_close_once():
    for _ in range(20):
        runtime = gpushare.Runtime(device='sim')
        service = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
        future = service.submit(runtime.register_kernel('chain1')).future()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            ends = [pool.submit(runtime.close) for _ in range(4)]
        assert [end.result() for end in ends] == [None] * 4
        assert runtime.closed
        assert future.result(timeout=0).verdict is gpushare.Verdict.OK


def test_a_close_ends_the_waits_of_other_threads_before_it_frees_the_runtime():
    for _ in range(30):
        runtime = gpushare.Runtime(device='sim')
        training = runtime.create_app('training', gpushare.BEST_EFFORT)
        kernel = runtime.register_kernel('sincos_27us')
        steps = [training.submit(kernel, block_tasks=10_000) for _ in range(20)]

        def drain(opened=runtime):
            while True:
                opened.drain()

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            waits = [pool.submit(drain), pool.submit(drain), *[pool.submit(step.wait) for step in steps]]
            runtime.close()
            for wait in waits[:2]:
                with pytest.raises(gpushare.FailedPreconditionError, match='This Runtime is closed'):
                    wait.result(timeout=30)


def test_a_wait_for_work_that_a_close_cuts_off_ends(polled):
    app = polled.create_app('training', gpushare.BEST_EFFORT)
    ticket = app.submit(polled.register_kernel('sincos_27us'), block_tasks=2**40)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        wait = pool.submit(ticket.wait)
        with pytest.raises(gpushare.DeadlineExceededError):
            polled.close(timeout_s=0.001)
        with pytest.raises((gpushare.TaskError, gpushare.FailedPreconditionError)):
            wait.result(timeout=30)


def test_a_wait_has_read_the_record_before_a_close_may_go_on(form, runtime, service, chain):
    ticket = service.submit(chain)
    releases, ended = runtime._use._releases, []

    class Ending(gpushare._use.Use):
        __slots__ = ()

        @property
        def _releases(self):  # read at the end of a use
            ended.append(gpushare.library().gpushare_ticket_release(runtime.handle, ticket.c_value))
            return releases

    # Not the class's own method: CPython 3.11 frees a method that is replaced before it forgets where it was, and
    # the finalizer of the ticket, which the method holds, would call it.
    runtime._use.__class__ = Ending
    record = ticket.wait()
    runtime._use.__class__ = gpushare._use.Use
    assert gpushare.Status.OK in ended
    assert record.verdict is gpushare.Verdict.OK


CALLS = {
    'runtime stats': lambda it: it.runtime.stats(),
    'metrics': lambda it: it.runtime.metrics(),
    'the clock': lambda it: it.runtime.now_ns(),
    'kernel names': lambda it: it.runtime.kernel_names(),
    'kernel info': lambda it: it.runtime.kernel_info('sincos_27us'),
    'guarantees': lambda it: it.runtime.guarantees(it.kernel),
    'a shutdown': lambda it: it.runtime.shutdown(),
    'a new app': lambda it: it.runtime.create_app('another', gpushare.BEST_EFFORT).close(),
    'a new queue': lambda it: it.app.create_queue(),
    'app stats': lambda it: it.app.stats(),
    'a guarantee': lambda it: it.app.guarantee(),
    'an id': lambda it: it.kernel.id,
    'submit': lambda it: it.queue.submit(it.kernel, block_tasks=10),
    'done': lambda it: [ticket.done() for ticket in it.tickets],
    'cancel': lambda it: [ticket.cancel() for ticket in it.tickets],
    'a record': lambda it: it.queue.submit(it.kernel, block_tasks=10).wait(),
}


class Open:
    def __init__(self):
        self.runtime = gpushare.Runtime(device='sim')
        self.app = self.runtime.create_app('training', gpushare.BEST_EFFORT)
        self.kernel = self.runtime.register_kernel('sincos_27us')
        self.queue = self.app.create_queue()
        self.tickets = [self.queue.submit(self.kernel, block_tasks=10) for _ in range(20)]


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('closed', ['runtime', 'app', 'queue', 'kernel'])
def test_a_close_beside_any_call_is_an_exception_there(call, closed):
    for number in range(4):
        it = Open()
        begun = threading.Barrier(4)
        ended = threading.Event()

        def repeat(it=it, begun=begun, ended=ended):
            begun.wait()
            while not ended.is_set():
                try:
                    CALLS[call](it)
                except gpushare.Error:
                    if closed == 'runtime' and it.runtime.closed:
                        return

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            calls = [pool.submit(repeat) for _ in range(3)]
            begun.wait()
            time.sleep(number * 0.0005)
            getattr(it, closed).close()
            ended.set()
        assert [done.result() for done in calls] == [None] * 3
        it.runtime.close()


STEPS = {
    'run': lambda queue, kernel: queue.run(kernel),
    'wait': lambda queue, kernel: queue.submit(kernel).wait(),
    'poll': lambda queue, kernel: queue.submit(kernel).done(),
}


@pytest.mark.parametrize('step', STEPS)
@pytest.mark.parametrize('closed', ['runtime', 'app', 'queue', 'kernel'])
def test_a_close_beside_a_step_is_an_exception_there(form, step, closed):
    for number in range(4):
        runtime = gpushare.Runtime(device='sim')
        app = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
        it = {'runtime': runtime, 'app': app, 'queue': app.create_queue(), 'kernel': runtime.register_kernel('chain1')}

        def repeat(it=it):
            while True:
                try:
                    STEPS[step](it['queue'], it['kernel'])
                except gpushare.TaskError:  # cut off
                    continue
                except gpushare.Error:
                    return

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            calls = [pool.submit(repeat) for _ in range(3)]
            time.sleep(number * 0.002)
            it[closed].close()
            if closed == 'app':
                it['queue'].close()
        assert [done.result() for done in calls] == [None] * 3
        assert not any(it[name]._use.in_use() for name in it)
        runtime.close()


def test_a_call_that_a_signal_handler_interrupts_to_close_keeps_its_handle():
    it = Open()
    with it.runtime._use as handle:  # here the handler runs
        it.runtime.close()
        assert it.runtime.closed
        assert not is_released(handle)
    assert is_released(handle)


def test_a_queue_that_is_made_beside_a_close_is_released(monkeypatch):
    it = Open()
    handle = it.runtime.handle
    closing = threading.Thread(target=it.runtime.close)
    create = gpushare.library().gpushare_queue_create

    def create_beside_a_close(*arguments):
        status = create(*arguments)
        closing.start()
        while not it.runtime.closed:
            time.sleep(0.001)
        return status
    with monkeypatch.context() as patch:
        patch.setattr(gpushare.library(), 'gpushare_queue_create', create_beside_a_close)
        it.app.create_queue().close()
    closing.join(30)
    assert is_released(handle)


def test_a_release_that_fails_can_be_repeated(service, chain, monkeypatch):
    ticket, query = service.submit(chain), service.queue.begin_query()
    ticket.wait()
    values = ticket.value, query.value
    with monkeypatch.context() as patch:
        patch.setattr(gpushare.library(), 'gpushare_ticket_release', lambda *_: gpushare.Status.UNAVAILABLE)
        patch.setattr(gpushare.library(), 'gpushare_query_end', lambda *_: gpushare.Status.UNAVAILABLE)
        for call in (ticket.release, query.end):
            with pytest.raises(gpushare.UnavailableError):
                call()
    assert (ticket.value, query.value) == values
    ticket.release()
    query.end()
    assert (ticket.value, query.value) == (0, 0)


def test_an_app_lives_as_long_as_a_queue_or_ticket_of_it(runtime, sincos):
    runtime.quiesce()
    tickets = [runtime.create_app('own', gpushare.BEST_EFFORT).submit(sincos, block_tasks=10),
               runtime.create_app('made', gpushare.BEST_EFFORT).create_queue().submit(sincos, block_tasks=10)]
    queue = runtime.create_app('held', gpushare.BEST_EFFORT).queue
    gc.collect()
    assert not runtime._leftovers
    runtime.resume()
    for ticket in [*tickets, queue.submit(sincos, block_tasks=10)]:
        assert ticket.future().result(timeout=30).verdict is gpushare.Verdict.OK


def test_a_dropped_app_is_released_without_garbage_collection(runtime, service, chain):
    gc.disable()
    try:
        for _ in range(3):
            app = runtime.create_app('again', gpushare.LATENCY_CRITICAL)
            assert app.queue is app.queue
            app.submit(chain).wait()
            del app
    finally:
        gc.enable()


def test_a_ticket_outlives_the_close_of_its_app(runtime, sincos):
    runtime.quiesce()
    with runtime.create_app('training', gpushare.BEST_EFFORT) as app:
        tickets = [app.submit(sincos, block_tasks=10) for _ in range(2)]
        future = tickets[0].future()
    runtime.resume()
    assert future.result(timeout=30) is tickets[0].record()
    assert tickets[1].wait().verdict is gpushare.Verdict.OK
    with pytest.raises(gpushare.FailedPreconditionError, match='closed'):
        tickets[1].future()


class Held:
    """A runtime with the library's thread and that of futures, in a cycle with this object."""

    def __init__(self):
        self.runtime = gpushare.Runtime(device='sim')
        self.app = self.runtime.create_app('service', gpushare.LATENCY_CRITICAL)
        self.app.submit(self.runtime.register_kernel('chain1')).wait()
        self.runtime._completions()
        self.queue = self.app.create_queue()
        self.cycle = self.runtime.cycle = self.app.cycle = self
        self.handle = self.runtime.handle


def is_released(handle):
    """Whether the library has ended the runtime of a handle."""
    time = ctypes.c_int64()
    return gpushare.library().gpushare_now_ns(handle, ctypes.byref(time)) == gpushare.Status.INVALID_ARGUMENT


def drop(held):
    """Drops the last references; garbage collection finds them at once. Returns the handle."""
    handle = held.pop().handle
    gc.collect()
    return handle


DROPS = {
    'an enqueue function': lambda service, chain, call: service.submit(enqueue=call).wait(),
    'a callback of a future': lambda service, chain, call: service.submit(chain).future().add_done_callback(call),
    'a capture function': lambda service, chain, call: gpushare.kernel._capture_callback(call, [])(None, 0, 132),
    'a log function': lambda service, chain, call: gpushare.runtime._log_callback(lambda *_: call(0))(None, 1, b''),
}


@pytest.mark.parametrize('where', DROPS)
def test_a_runtime_that_is_dropped_inside_a_callback_is_closed_on_another_thread(service, chain, where, monkeypatch):
    held, handles, threads, called = [Held()], [], [], threading.Event()
    close = gpushare.Runtime._close_once
    monkeypatch.setattr(gpushare.Runtime, '_close_once', lambda runtime, timeout_s: (
        threads.append(threading.get_ident()), close(runtime, timeout_s)))

    def call(*_):
        handles.append(drop(held))
        threads.append(threading.get_ident())
        called.set()

    DROPS[where](service, chain, call)
    assert called.wait(timeout=30)
    assert within(30, lambda: is_released(handles[0]))
    assert within(30, lambda: not gpushare._callbacks._unfinished)
    assert len(set(threads)) == len(threads) == 2
    service.submit(chain).wait()


def test_a_runtime_that_its_own_thread_of_futures_collects_is_closed():
    """The thread holds the lock that a close takes, and garbage collection may come at any time."""
    held = Held()
    handle, waiter = held.handle, held.runtime._waiter

    class Collecting(dict):
        def values(self):
            gc.collect()
            return super().values()

    del held
    waiter._lanes = Collecting()
    os.eventfd_write(waiter._wake, 1)
    assert within(30, lambda: is_released(handle))


def test_an_app_that_is_dropped_inside_a_callback_after_its_runtime_is_released(service):
    runtime = gpushare.Runtime(device='sim')
    app = runtime.create_app('late', gpushare.LATENCY_CRITICAL)
    runtime._children.discard(app)  # as garbage collection does, which clears weak references first
    runtime.close()
    handle = app.handle
    service.submit(enqueue=lambda stream: app.close()).wait()
    assert within(30, lambda: gpushare.library().gpushare_app_id(handle) == 0)
    assert not runtime._leftovers


def test_a_runtime_whose_own_callback_drops_it_is_closed():
    runtime = gpushare.Runtime(device='sim')
    handle = runtime.handle
    app = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
    runtime.quiesce()
    held = [runtime, app, app.submit(enqueue=lambda stream: held.clear())]
    del app
    runtime.resume()
    del runtime
    assert within(30, lambda: is_released(handle))


def test_a_runtime_that_is_dropped_in_a_callback_of_ones_own_is_closed(service, chain):
    """The package does not know a callback of gpushare.abi; the library refuses the shutdown there."""
    held, handles = [Held()], []
    callback = gpushare.abi.gpushare_completion_callback(lambda user, record: handles.append(drop(held)))
    ticket = service.submit(chain)
    gpushare._library.check(gpushare.library().gpushare_ticket_set_callback(
        ticket.runtime_handle, ticket.c_value, callback, None))
    ticket.wait()
    assert within(30, lambda: handles and is_released(handles[0]))


@pytest.mark.parametrize('threads', ['_thread.start_new_thread', 'None'])  # None: no thread can be started
def test_the_interpreters_end_waits_for_a_runtime_that_was_dropped_in_a_callback(run_python, threads):
    assert run_python(IN_FLIGHT + f'''
import _thread, gc, types
def refuse(*_):
    raise RuntimeError("can't start new thread")
gpushare._callbacks._thread = types.SimpleNamespace(start_new_thread={threads} or refuse)
runtime.quiesce()
training.submit(enqueue=lambda stream: print('enqueued', flush=True), declared_ns=1000)
held = [runtime, training, steps, kernel]
runtime.cycle = runtime
other = gpushare.Runtime(device='sim')
service = other.create_app('service', gpushare.LATENCY_CRITICAL)
del runtime, training, steps, kernel
service.submit(enqueue=lambda stream: (held.clear(), gc.collect())).wait()
''') == 'enqueued\n'


def within(seconds, condition):
    """Whether a condition becomes true in time."""
    for _ in range(int(seconds / 0.01)):
        if condition():
            return True
        threading.Event().wait(0.01)
    return False
