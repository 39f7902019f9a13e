"""Errors are exceptions with the library's sentence and status, and arguments that C would cut are refused."""

import pickle

import pytest

import gpushare
from gpushare._structs import init
from gpushare.errors import error_of


def test_an_error_carries_the_sentence_and_the_status(runtime):
    with pytest.raises(gpushare.InvalidArgumentError, match='-1') as caught:
        runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=-1)
    assert caught.value.status is gpushare.Status.INVALID_ARGUMENT
    assert str(caught.value) == f'INVALID_ARGUMENT: {caught.value.message}'
    assert caught.value.message.endswith('.')


@pytest.mark.parametrize(('call', 'error', 'builtin'), [
    (lambda runtime: gpushare.Runtime(policy='no_such_policy'), gpushare.InvalidArgumentError, ValueError),
    (lambda runtime: runtime.kernel_info('no_such_kernel'), gpushare.NotFoundError, LookupError),
    (lambda runtime: runtime.resume(), gpushare.FailedPreconditionError, gpushare.Error),
    (lambda runtime: runtime.poll(), gpushare.FailedPreconditionError, gpushare.Error),
    (lambda runtime: [runtime.create_app('a', gpushare.BEST_EFFORT) for _ in range(2)],
     gpushare.AlreadyExistsError, gpushare.Error),
    (lambda runtime: gpushare.EventLog('/no/such/file'), gpushare.NotFoundError, LookupError),
])
def test_each_status_has_its_exception(runtime, call, error, builtin):
    with pytest.raises(error) as caught:
        call(runtime)
    assert isinstance(caught.value, builtin)


@pytest.mark.parametrize('status', [status for status in gpushare.Status if status != gpushare.Status.OK])
def test_an_error_goes_to_another_process(status):
    error = error_of(status, 'The device has 132 SMs.')
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.status, again.message) == (type(error), status, 'The device has 132 SMs.')
    assert str(again) == str(error)


def test_a_task_error_goes_to_another_process(service, chain):
    ticket = service.submit(chain)
    ticket.wait_ok()
    error = gpushare.TaskError(ticket.record(), KeyError('weight'))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is gpushare.TaskError
    assert (again.record, again.verdict, str(again)) == (error.record, gpushare.Verdict.OK, str(error))
    assert "raised KeyError: 'weight'" in str(again)


def test_a_missing_gpu_is_unavailable():
    with pytest.raises(gpushare.UnavailableError):
        gpushare.Runtime(device='cuda', device_ordinal=1000)


@pytest.mark.parametrize('memory', [(2**64, 4), (4096, 2**64), (0, 4), (4096, 0), (-1, 4)])
def test_warm_memory_that_does_not_fit_is_not_cut(memory):
    with pytest.raises(gpushare.InvalidArgumentError, match=f'the address {memory[0]} and {memory[1]} bytes'):
        gpushare.KernelSpec('network', warm_memory=[(4096, 4), memory])


def test_an_integer_that_does_not_fit_is_not_cut(runtime):
    with pytest.raises(gpushare.InvalidArgumentError, match=f'tasks_max is {2**32}, and it must be from'):
        runtime.create_app('service', gpushare.LATENCY_CRITICAL, tasks_max=2**32)


def test_a_name_with_a_nul_is_not_cut(runtime):
    with pytest.raises(gpushare.InvalidArgumentError, match='must not contain a NUL'):
        runtime.create_app('a\0b', gpushare.BEST_EFFORT)


def test_an_unknown_option_is_named(runtime):
    with pytest.raises(TypeError, match="There is no option 'p98_bound'; did you mean 'p99_bound'"):
        runtime.create_app('service', gpushare.LATENCY_CRITICAL, p98_bound=1.1)
    with pytest.raises(TypeError, match=r"There is no option 'xyzzy'\."):
        runtime.create_app('service', gpushare.LATENCY_CRITICAL, xyzzy=1)


def test_an_argument_of_a_wrong_type_is_named(service, chain):
    with pytest.raises(TypeError, match=r'block_tasks is 1\.5, and it must be an integer'):
        service.submit(chain, block_tasks=1.5)
    with pytest.raises(TypeError, match="kernel is 'chain1', and it must be a Kernel"):
        service.submit('chain1')
    with pytest.raises(TypeError, match="arguments is 'x', and it must be bytes"):
        service.submit(chain, arguments='x')


def test_arguments_may_be_of_a_class_derived_from_bytes(form, service, chain):
    class Packed(bytes):
        pass

    service.run(chain, arguments=Packed())
    assert service.submit(chain, arguments=Packed()).wait().verdict is gpushare.Verdict.OK


def test_a_text_is_no_number_and_a_number_no_text(runtime, tmp_path):
    with pytest.raises(TypeError, match=r"p99_bound is '1\.05', and it must be a number\."):
        runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound='1.05')
    with pytest.raises(TypeError, match=r'p99_bound is \[\], and it must be a number\.'):
        runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=[])
    with pytest.raises(TypeError, match=r'device is 3, and it must be a string or a path\.'):
        gpushare.Runtime(device=3)
    with pytest.raises(TypeError, match=r"items\[0\] is 'chain1', and it must be a pair: a KernelSpec, and a task"):
        gpushare.calibrate(tmp_path / 'profile.json', ['chain1'])


def test_objects_say_what_they_are(runtime, service, chain):
    assert repr([runtime, service, service.queue, chain]) == (
        "[<gpushare.Runtime on sim>, <gpushare.App 'service', LATENCY_CRITICAL>, "
        "<gpushare.Queue of <gpushare.App 'service', LATENCY_CRITICAL>>, <gpushare.Kernel 'chain1'>]")
    closed = gpushare.Runtime(device='sim')
    closed.close()
    assert repr(closed) == '<gpushare.Runtime, closed>'


def test_none_is_the_default():
    assert init(gpushare.abi.gpushare_runtime_options, {'policy': None, 'seed': 7}).seed == 7


def test_a_closed_object_says_so(runtime):
    app = runtime.create_app('service', gpushare.LATENCY_CRITICAL)
    app.close()
    app.close()
    with pytest.raises(gpushare.FailedPreconditionError, match='This App is closed'):
        app.create_queue()


def test_a_negative_timeout_is_refused(service, chain):
    with pytest.raises(gpushare.InvalidArgumentError, match='timeout_s is -1'):
        service.submit(chain).wait(timeout_s=-1)
