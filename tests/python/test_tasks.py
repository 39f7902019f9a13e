"""Submits, waits, cancels, queries and regions on the simulated device."""

import time

import pytest

import gpushare

Verdict = gpushare.Verdict

pytestmark = pytest.mark.usefixtures('form')  # both forms of a step's calls


def test_a_query_completes_and_its_record_reads_in_order(runtime, service, chain):
    record = service.submit(chain).wait()
    assert record.verdict is Verdict.OK
    assert record.kind is gpushare.TaskKind.GRAPH
    assert record.app_id == service.id
    assert record.kernel_id == chain.id
    assert record.submit_ns <= record.launch_ns < record.end_ns <= record.complete_ns


def test_best_effort_work_makes_way_and_completes(service, training, chain, sincos):
    step = training.submit(sincos, block_tasks=100_000)
    for _ in range(20):
        service.submit(chain).wait()
    record = step.wait()
    assert record.block_tasks == 100_000
    assert training.stats().completed == 1
    assert service.stats().latency.count == 20


def test_a_wait_that_is_too_short_raises_and_the_task_goes_on(polled):
    app = polled.create_app('training', gpushare.BEST_EFFORT)
    step = app.submit(polled.register_kernel('sincos_27us'), block_tasks=1_000_000)
    assert not step.done()
    with pytest.raises(gpushare.DeadlineExceededError):
        step.wait(timeout_s=1e-6)
    with pytest.raises(gpushare.FailedPreconditionError):
        step.record()
    assert step.wait(timeout_s=60).verdict is Verdict.OK
    assert step.done()


def test_a_long_wait_in_slices_ends_at_the_same_time(monkeypatch):
    def complete_ns(slice_ns):
        monkeypatch.setattr(gpushare.ticket._waits, 'SLICE_NS', slice_ns)
        with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL) as runtime:
            app = runtime.create_app('training', gpushare.BEST_EFFORT)
            return app.submit(runtime.register_kernel('sincos_27us'), block_tasks=1_000_000).wait().complete_ns
    assert complete_ns(1_000_000) == complete_ns(10**15)


def test_a_cancelled_task_raises_with_its_record(polled):
    app = polled.create_app('training', gpushare.BEST_EFFORT)
    kernel = polled.register_kernel('sincos_27us')
    first, second = (app.submit(kernel, block_tasks=1_000_000) for _ in range(2))
    assert second.cancel()
    with pytest.raises(gpushare.TaskError, match=r'ended with verdict CANCELLED\.') as caught:
        second.wait()
    assert caught.value.verdict is Verdict.CANCELLED
    assert second.record() is caught.value.record
    assert first.wait().verdict is Verdict.OK
    assert not first.cancel()


def test_a_failed_dependency_is_named(polled):
    app = polled.create_app('training', gpushare.BEST_EFFORT)
    kernel = polled.register_kernel('sincos_27us')
    first = app.submit(kernel, block_tasks=1_000_000)
    second = app.submit(kernel, block_tasks=10, wait_tickets=[first])
    assert first.cancel()
    with pytest.raises(gpushare.TaskError, match=f'because it waited for task {first.value}, which ended with CANCEL'):
        second.wait()


def test_a_released_ticket_is_stale_and_its_task_goes_on(training, sincos, runtime):
    ticket = training.submit(sincos, block_tasks=1000)
    ticket.release()
    ticket.release()
    with pytest.raises(gpushare.InvalidArgumentError):
        ticket.wait()
    runtime.drain()
    assert training.stats().completed == 1


def test_a_query_of_several_tasks_counts_once(polled):
    app = polled.create_app('service', gpushare.LATENCY_CRITICAL)
    kernel = polled.register_kernel('chain1')
    with app.queue.begin_query() as query:
        tickets = [app.submit(kernel, query=query) for _ in range(3)]
        assert all(ticket.wait().query == query.value for ticket in tickets) is True
    assert app.stats().latency.count == 0
    query.end()
    polled.poll()
    assert app.stats().latency.count == 1
    assert app.stats().completed == 3


def test_a_region_completes_with_its_ticket(runtime, service):
    with service.queue.begin_region(bound_ns=1_000_000) as region:
        assert region.stream == 0
    assert region.wait().kind is gpushare.TaskKind.OPAQUE
    region = service.queue.begin_region(arrival_ns=1, input_size=128, wait_s=0.001, next_within_ns=gpushare.NO_NEXT)
    assert region.wait().verdict is Verdict.OK  # the bound is that of the first one


def test_the_room_of_regions_is_what_lc_apps_tolerate(runtime, chain):
    hour = 3_600_000_000_000
    end = time.monotonic() + 10
    while runtime.region_room_ns() != hour and time.monotonic() < end:
        time.sleep(0.001)  # the first plan may still be to come
    assert runtime.region_room_ns() == hour, 'nobody waits'
    service = runtime.create_app('strict', gpushare.LATENCY_CRITICAL, p99_bound=1.05, p99_alone_ns=2_000_000)
    service.submit(chain).wait()
    runtime.drain()
    assert 0 < runtime.region_room_ns() < 1_000_000
    runtime.quiesce()
    assert runtime.region_room_ns() == 0
    runtime.resume()


def test_an_enqueue_function_runs_once_and_its_exception_is_raised(service):
    streams = []
    assert service.submit(enqueue=streams.append).wait().verdict is Verdict.OK
    assert streams == [0]

    def fail(stream):
        raise KeyError('no such thing')

    ticket = service.submit(enqueue=fail)
    with pytest.raises(gpushare.TaskError, match=r"its enqueue function raised KeyError: 'no such thing'\.$") as caught:
        ticket.wait()
    assert isinstance(caught.value.__cause__, KeyError)
    assert ticket.record().verdict is Verdict.FAILED
    assert not gpushare.app._Enqueue.waiting


def test_a_task_behind_an_enqueue_function_that_raises_fails_and_the_log_says_why():
    said = []
    with gpushare.Runtime(device='sim:realtime', log=lambda level, text: said.append(text)) as runtime:
        app = runtime.create_app('training', gpushare.BEST_EFFORT)
        first = app.submit(enqueue=lambda stream: int('many\nlines'), declared_ns=1000)
        behind = app.submit(runtime.register_kernel('sincos_27us'), block_tasks=1, wait_tickets=[first])
        with pytest.raises(gpushare.TaskError, match=f'it waited for task {first.value}, which ended with FAILED'):
            behind.wait()
    assert f'The enqueue callback of ticket {first.value} failed: ValueError: invalid literal for int()' in said[0]
    assert '\n' not in said[0]


def test_an_enqueue_function_of_a_cancelled_task_never_runs_and_is_dropped(runtime, training):
    runtime.quiesce()
    streams = []
    ticket = training.submit(enqueue=streams.append, declared_ns=1000)
    assert ticket.cancel()
    runtime.resume()
    with pytest.raises(gpushare.TaskError, match='CANCELLED'):
        ticket.wait()
    assert not streams
    assert not gpushare.app._Enqueue.waiting


def test_a_copy_needs_no_kernel(service):
    ticket = service.submit(kind=gpushare.TaskKind.MEMCPY, copy_size_bytes=1 << 20,
                            copy_direction=gpushare.CopyDirection.HOST_TO_DEVICE)
    assert ticket.wait().kind is gpushare.TaskKind.MEMCPY


def test_arguments_are_passed_and_too_many_are_refused(service, sincos):
    assert service.submit(sincos, block_tasks=1, arguments=b'1234').wait().verdict is Verdict.OK
    with pytest.raises(gpushare.InvalidArgumentError, match='4097'):
        service.submit(sincos, block_tasks=1, arguments=bytes(4097))


def test_a_reservation_beyond_the_device_names_the_limit(runtime, service):
    with pytest.raises(gpushare.InvalidArgumentError):
        service.reserve_capsms(100_000)
    service.reserve_capsms(0)


def test_a_simulated_kernel_of_ones_own_runs(runtime, training):
    simulation = gpushare.abi.init(gpushare.abi.gpushare_simulation_record, block_task_ns=10_000)
    kernel = runtime.register_kernel('mine', simulation=simulation, evictable=gpushare.Choice.YES)
    assert training.submit(kernel, block_tasks=1000).wait().measured_ns > 0
    assert gpushare.GuaranteeBit.EVICTABLE in runtime.guarantees(kernel)


def test_a_library_call_is_registered_with_its_shapes(runtime, training):
    simulation = gpushare.abi.init(gpushare.abi.gpushare_simulation_record, block_task_ns=10_000)
    kernel = runtime.register_kernel(
        'product', simulation=simulation, solo_ns=100_000,
        library_call={'operation': gpushare.LibraryOperation.MATMUL, 'm': 8, 'n': 8, 'k': 8})
    assert runtime.kernel_info('product').kind is gpushare.TaskKind.LIBRARY
    arguments = bytes(gpushare.abi.gpushare_library_arguments())
    assert training.submit(kernel, arguments=arguments).wait().verdict is Verdict.OK


def test_an_exception_in_a_capture_is_raised_and_not_the_librarys(runtime, monkeypatch):
    def register(function, handle, struct):  # a CUDA device calls it; the simulated one captures nothing
        assert struct._obj.capture(None, 0x10, 132) == 1
        raise gpushare.InvalidArgumentError(3, 'The capture callback returned 1.')

    def capture(stream, sm_count):
        raise KeyError(f'{stream} {sm_count}')

    monkeypatch.setattr(gpushare.kernel, 'make', register)
    with pytest.raises(KeyError, match='16 132'):
        runtime.register_kernel('mine', capture=capture)
