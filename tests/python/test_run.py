"""Steps: Queue.run and Ticket.wait_ok, each in both forms, the extension's and that of ctypes."""

import threading

import pytest

import gpushare

MS = 1_000_000


@pytest.fixture
def one_slot(runtime):
    """An app that has room for one task: a run that kept its ticket would leave none for the next."""
    return runtime.create_app('one slot', gpushare.LATENCY_CRITICAL, tasks_max=1)


def test_a_run_waits_and_leaves_no_ticket(form, one_slot, chain):
    for _ in range(3):
        assert one_slot.run(chain) is None
        assert one_slot.queue.run(chain, timeout_s=10) is None
    assert one_slot.stats().completed == 6


def test_a_run_belongs_to_its_query_and_arrival(form, runtime, service, chain):
    queue = service.create_queue()
    with queue.begin_query() as query:
        queue.run(chain, query=query)
        queue.run(chain, query=query)
    queue.run(chain)  # behind the end of the query; its own may not have been counted yet
    assert service.stats().latency.count in (1, 2)
    for _ in range(30):
        queue.run(chain)  # 0.67 ms of virtual time
    now_ns = runtime.now_ns()
    queue.run(chain, arrival_ns=1)
    assert service.stats().latency.max_ns >= now_ns - 1 > 15 * MS


def test_a_run_states_what_follows_it(form, runtime, service, chain):
    service.run(chain, next_within_ns=1000)
    service.run(chain, next_within_ns=gpushare.NO_NEXT)
    service.submit(chain, next_within_ns=1000).wait_ok()
    assert service.guarantee().next_lapsed in (0, 1)  # the queries follow each other, or a microsecond passes
    with pytest.raises(gpushare.InvalidArgumentError, match='next query within 100000001 ns'):
        service.run(chain, next_within_ns=100_000_001)
    with pytest.raises(gpushare.InvalidArgumentError, match='next_within_ns'):
        service.run(chain, next_within_ns=2**63)
    with pytest.raises(gpushare.InvalidArgumentError, match='latency-critical'):
        runtime.create_app('batch', gpushare.BEST_EFFORT).submit(chain, next_within_ns=1)


def test_arguments_reach_the_library(form, service, chain):
    with pytest.raises(gpushare.InvalidArgumentError, match='arguments_size_bytes'):
        service.run(chain, arguments=b'1234')  # a graph takes none


def test_a_run_that_fails_gives_its_record(form, runtime, service, training, chain, sincos):
    runtime.quiesce()
    ticket = training.submit(sincos, block_tasks=1)
    ticket.cancel()
    runtime.resume()
    with pytest.raises(gpushare.TaskError) as raised:
        service.submit(chain, wait_tickets=[ticket]).wait_ok()
    assert raised.value.record.failed_dependency == ticket.value
    with gpushare.Runtime(device='sim', sim_faults='launch_error=1') as broken:
        app = broken.create_app('service', gpushare.LATENCY_CRITICAL, tasks_max=1)
        kernel = broken.register_kernel('chain1')
        with pytest.raises(gpushare.TaskError) as raised:
            app.run(kernel)
        assert raised.value.record.verdict == gpushare.Verdict.FAILED
        del raised
        app.run(kernel)  # its one slot is free again


def test_a_run_that_is_late_goes_on(form, polled):
    app = polled.create_app('service', gpushare.LATENCY_CRITICAL)
    kernel = polled.register_kernel('chain1')
    with pytest.raises(gpushare.DeadlineExceededError):
        app.run(kernel, timeout_s=1e-6)
    app.run(kernel)
    assert app.stats().completed == 2


def test_a_run_of_several_slices_ends(form, runtime, service, chain):
    runtime.quiesce()
    threading.Timer(0.05, runtime.resume).start()
    service.run(chain)
    assert service.stats().completed == 1


def test_a_run_that_is_refused_says_why(form, runtime, service, training, chain):
    with pytest.raises(gpushare.InvalidArgumentError, match='best-effort'):
        training.run(chain)
    with pytest.raises(TypeError, match='must be a Kernel'):
        service.run('chain1')
    with pytest.raises(TypeError):
        service.run(chain, arguments='text')
    with pytest.raises(gpushare.InvalidArgumentError, match='arrival_ns'):
        service.run(chain, arrival_ns=2**63)
    with pytest.raises(gpushare.InvalidArgumentError, match='timeout_s'):
        service.run(chain, timeout_s=-1)
    queue = service.create_queue()
    queue.close()
    with pytest.raises(gpushare.FailedPreconditionError, match='closed'):
        queue.run(chain)
    assert service.stats().submitted == 0


def test_a_light_wait_raises_as_a_wait_and_keeps_the_record(form, runtime, service, chain):
    ticket = service.submit(chain)
    assert ticket.wait_ok() is None
    assert ticket.done()
    ticket.release()
    assert ticket.record().verdict == gpushare.Verdict.OK
    runtime.quiesce()
    with pytest.raises(gpushare.DeadlineExceededError, match='deadline'):
        service.submit(chain).wait_ok(timeout_s=0)
    runtime.resume()


def test_an_error_of_the_enqueue_function_leaves_a_light_wait(form, service):
    def fail(_):
        raise ValueError('no stream')
    with pytest.raises(gpushare.TaskError) as raised:
        service.submit(enqueue=fail, declared_ns=MS).wait_ok()
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_run_can_be_interrupted(form, run_python):
    said = run_python("""
        import os, signal, threading, gpushare
        runtime = gpushare.Runtime(device='sim')
        app = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
        kernel = runtime.register_kernel('chain1')
        runtime.quiesce()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            app.run(kernel)
        except KeyboardInterrupt:
            print('interrupted')
        runtime.resume()
        runtime.close()
    """, **({} if form == 'steps' else {'GPUSHARE_PYTHON_STEPS': ''}))
    assert said == 'interrupted\n'


def test_an_interrupted_run_leaves_no_ticket(form, run_python):
    said = run_python("""
        import os, signal, threading, gpushare
        runtime = gpushare.Runtime(device='null')  # its clock is real: a slice lasts 100 ms
        app = runtime.create_app('service', gpushare.LATENCY_CRITICAL, tasks_max=1)
        kernel = runtime.register_kernel('chain1')
        runtime.quiesce()
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()  # in the first slice
        try:
            app.run(kernel)
        except KeyboardInterrupt:
            print('interrupted')
        runtime.resume()
        runtime.drain()
        app.run(kernel)  # its one slot is free again
        print(app.stats().completed)
        runtime.close()
    """, **({} if form == 'steps' else {'GPUSHARE_PYTHON_STEPS': ''}))
    assert said == 'interrupted\n2\n'


def test_a_close_ends_the_runs_of_other_threads(form, runtime, service, chain):
    runtime.quiesce()
    failures = []

    def run():
        try:
            service.run(chain)
        except Exception as error:
            failures.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    while service.stats().submitted == 0:
        pass
    runtime.close()  # it runs what was accepted
    thread.join(30)
    assert not thread.is_alive()
    assert not failures or isinstance(failures[0], (gpushare.TaskError, gpushare.FailedPreconditionError))


def test_threads_run_steps_beside_each_other(form, runtime, service, chain):
    queues = [service.create_queue() for _ in range(4)]

    def loop(queue):
        for _ in range(50):
            queue.run(chain)
    threads = [threading.Thread(target=loop, args=(queue,)) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert service.stats().completed == 200


def test_a_python_without_the_stable_abi_uses_ctypes(run_python):
    said = run_python("""
        import importlib.machinery, gpushare
        from gpushare import _library
        importlib.machinery.EXTENSION_SUFFIXES[:] = ['.cpython-313t-x86_64-linux-gnu.so', '.so']  # a free-threaded one
        with gpushare.Runtime(device='sim') as runtime:
            runtime.create_app('service', gpushare.LATENCY_CRITICAL).run(runtime.register_kernel('chain1'))
        print(_library.steps)
    """)
    assert said == 'None\n'


def test_a_file_that_is_no_extension_is_left_out(run_python, tmp_path):
    path = tmp_path / '_steps.abi3.so'
    path.write_bytes(b'not a library')
    said = run_python("""
        import gpushare
        with gpushare.Runtime(device='sim') as runtime:
            runtime.create_app('service', gpushare.LATENCY_CRITICAL).run(runtime.register_kernel('chain1'))
        print('ran')
    """, GPUSHARE_PYTHON_STEPS=str(path))
    assert 'ran\n' in said
    assert 'uses ctypes' in said
