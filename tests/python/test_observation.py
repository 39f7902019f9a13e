"""What a runtime tells of itself: device, counters, metrics, traces, profiles, calibration, log."""

import math
import time

import pytest

import gpushare
from gpushare.ptx import Ptx


def test_the_device_is_the_simulated_h200(runtime):
    device = runtime.device()
    assert (device.name, device.simulated, device.sm_count) == ('sim', True, 132)
    assert device.policy == 'adaptive'
    assert 'chain1' in runtime.kernel_names()
    assert runtime.kernel_info('chain1').kind is gpushare.TaskKind.GRAPH
    assert 'adaptive' in gpushare.policy_names()


def test_counters_and_metrics_count(runtime, service, chain):
    service.submit(chain).wait()
    runtime.drain()
    assert runtime.stats().launches >= 1
    assert 'simulated="true"' in runtime.metrics()
    runtime.set_policy('priority')
    with pytest.raises(gpushare.InvalidArgumentError):
        runtime.set_policy('no_such_policy')


def test_a_guarantee_says_what_was_promised_and_delivered(polled):
    service = polled.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05, p50_bound=1.1,
                                p99_alone_ns=2_000_000)
    training = polled.create_app('training', gpushare.BEST_EFFORT)
    copy = training.submit(enqueue=lambda stream: None, declared_ns=50_000_000)  # longer than any budget
    chain = polled.register_kernel('chain1')
    for _ in range(20):
        service.submit(chain).wait()
    given = service.guarantee()
    assert (given.app_class, given.p99_bound, given.p50_bound) == (gpushare.AppClass.LATENCY_CRITICAL, 1.05, 1.1)
    assert given.queries == 20
    assert 0 < given.p50_ns <= given.p99_ns
    assert given.p99_over_alone == pytest.approx(given.p99_ns / 2_000_000)
    copy.wait()
    held = training.guarantee().held_ns
    assert held
    assert all(reason.name.startswith('HOLD_') and time > 0 for reason, time in held.items())


def test_what_nobody_knows_is_nan_and_an_update_states_it(polled):
    service = polled.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05)
    chain = polled.register_kernel('chain1')
    service.submit(chain).wait()
    given = service.guarantee()
    assert math.isnan(given.p99_over_alone)
    assert math.isnan(given.late_share)
    service.update(p99_alone_ns=2_000_000)
    service.update(priority=-3)
    service.submit(chain).wait()
    given = service.guarantee()
    assert (given.p99_bound, given.p99_alone_ns, given.queries) == (1.05, 2_000_000, 1)
    assert given.p99_over_alone == pytest.approx(given.p99_ns / 2_000_000)
    assert given.late_share == 0
    with pytest.raises(gpushare.InvalidArgumentError, match='weight'):
        service.update(weight=2)
    with pytest.raises(gpushare.InvalidArgumentError, match='fields'):
        service.update()


def test_a_graph_that_is_never_cut_says_so(runtime):
    kernel = runtime.register_kernel('chain1', segment_ns=-1)
    info = runtime.kernel_info(kernel.name)
    assert info.segment_count == 1
    assert info.whole_reason.endswith('.')


def test_a_quiesced_runtime_holds_work_until_it_resumes(runtime, service, chain):
    runtime.quiesce()
    ticket = service.submit(chain)
    with pytest.raises(gpushare.DeadlineExceededError):
        ticket.wait(timeout_s=0.01)
    runtime.resume()
    ticket.wait()


def test_a_trace_is_read_back(runtime, service, chain, tmp_path):
    path = tmp_path / 'events.log'
    runtime.start_trace(event_log_path=str(path))
    service.submit(chain).wait()
    runtime.drain()
    summary = runtime.stop_trace()
    with gpushare.EventLog(path) as log:
        events = list(log)
        assert len(log) == len(events) == summary.records > 0
        assert log[-1] == events[-1]
        with pytest.raises(IndexError, match=str(len(log))):
            log[len(log)]
    assert gpushare.EventType.COMPLETED in {event.type for event in events}


def test_a_profile_is_saved_loaded_and_validated(runtime, tmp_path):
    path = tmp_path / 'profile.json'
    runtime.save_profile(path)
    gpushare.validate_profile(path)
    runtime.load_profile(path)
    path.write_text('{')
    with pytest.raises(gpushare.Error, match=r'profile\.json'):
        gpushare.validate_profile(path)


def item(name):
    return gpushare.KernelSpec(name, kind=gpushare.TaskKind.GRAPH), None


def test_a_calibration_writes_a_profile_and_reports(tmp_path):
    seen = []

    def progress(given):
        if given.kernel:
            seen.append(given.kernel.contents.name)

    path = tmp_path / 'profile.json'
    gpushare.calibrate(path, [item('chain1')], progress, device='sim', kernel_time_ns=100_000_000)
    assert seen == [b'chain1']
    gpushare.validate_profile(path)


def test_an_exception_stops_a_calibration_and_is_raised(tmp_path):
    def progress(given):
        raise KeyError('enough')

    with pytest.raises(KeyError, match='enough'):
        gpushare.calibrate(tmp_path / 'p.json', [item('chain1')], progress, device='sim', kernel_time_ns=100_000_000)


COUNTERS = {'instructions': 18736, 'memory_instructions': 8, 'sectors_per_request': 1, 'issue': 0.6, 'special': 0.86}


def test_a_kernel_is_registered_with_its_counters(runtime):
    simulation = gpushare.abi.init(gpushare.abi.gpushare_simulation_record, block_task_ns=10_000)
    with pytest.raises(gpushare.InvalidArgumentError, match=r'kernel_counters\.issue is 60, and it must be above 0'):
        runtime.register_kernel('counted', simulation=simulation, counters={**COUNTERS, 'issue': 60})
    with pytest.raises(TypeError, match="no option 'isue'; did you mean 'issue'"):
        runtime.register_kernel('counted', simulation=simulation, counters={'isue': 0.5})
    assert runtime.register_kernel('counted', simulation=simulation, counters=COUNTERS).id > 0


def test_a_pre_run_needs_a_device_that_counts():
    task = gpushare.abi.init(gpushare.abi.gpushare_task_options, block_tasks=5280)
    with pytest.raises(gpushare.UnimplementedError, match="needs device 'cuda'"):
        gpushare.pre_run(gpushare.KernelSpec('sincos'), task, device='sim')
    with pytest.raises(TypeError, match='KernelSpec'):
        gpushare.pre_run('sincos', task, device='sim')
    code = Ptx('.version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n')
    with pytest.raises(TypeError, match="'sincos' has PTX"):
        gpushare.pre_run(gpushare.KernelSpec('sincos', ptx=code), task, device='sim')


def test_a_pre_run_gives_a_dict_of_counters(monkeypatch):
    def count(options, counters):
        assert options._obj.kernel.contents.name == b'sincos' and options._obj.task.contents.block_tasks == 5280
        counters._obj.instructions, counters._obj.issue = 100, 0.5
        return 0

    monkeypatch.setattr(gpushare.library(), 'gpushare_kernel_pre_run', count)
    task = gpushare.abi.init(gpushare.abi.gpushare_task_options, block_tasks=5280)
    counters = gpushare.pre_run(gpushare.KernelSpec('sincos'), task)
    assert (counters['instructions'], counters['issue'], counters['dram']) == (100, 0.5, 0)


def test_the_log_callback_gets_sentences():
    said = []
    with gpushare.Runtime(device='auto', device_ordinal=1000, log=lambda level, text: said.append((level, text))):
        pass
    for level, text in said:
        assert level in gpushare.LogLevel
        assert text.endswith('.')


@pytest.mark.parametrize('device', ['null', 'sim:realtime'])
def test_pythons_monotonic_clock_is_that_of_a_device_in_real_time(device):
    with gpushare.Runtime(device=device) as runtime:
        before = runtime.from_monotonic_ns(time.monotonic_ns())
        now_ns = runtime.now_ns()
        assert before <= now_ns <= runtime.from_monotonic_ns(time.monotonic_ns())


def test_the_clock_of_a_device_in_virtual_time_is_another_one():
    with gpushare.Runtime(device='sim') as runtime, pytest.raises(
            gpushare.FailedPreconditionError, match='clock of this device is virtual'):
        runtime.from_monotonic_ns(0)
