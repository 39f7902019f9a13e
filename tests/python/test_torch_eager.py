"""eager_be: an unmodified loop whose operations are held while LC work runs, on the simulated device.

The gate itself has tests in C++ (native/eager_gate_test.cc). CUDA's driver and CUPTI are stand-ins here.
"""

import contextlib
import ctypes
import importlib.util
import logging
import signal
import threading
import time

import fake_torch
import pytest
from fake_torch import Tensor, calls
from test_torch_feed import held, until

import gpushare
from gpushare import _library

LAUNCH, ENTER, EXIT, DRIVER_DOMAIN = 307, 0, 1, 1  # cuLaunchKernel, and CUPTI's callback sites
_int, _word = ctypes.c_int, ctypes.c_void_p


class Driver:
    """The functions of CUDA's driver and runtime that are used. Streams are numbers from 0x7001 on."""

    def __init__(self):
        self.streams = 0
        self.cudaStreamCreateWithFlags = ctypes.CFUNCTYPE(_int, ctypes.POINTER(_word), ctypes.c_uint)(self._stream)
        self.cuEventCreate = ctypes.CFUNCTYPE(_int, ctypes.POINTER(_word), ctypes.c_uint)(self._event)
        self.cuEventDestroy_v2 = ctypes.CFUNCTYPE(_int, _word)(lambda event: 0)
        self.cuEventRecord = ctypes.CFUNCTYPE(_int, _word, _word)(lambda event, stream: self._note('record', stream))
        self.cuEventQuery = ctypes.CFUNCTYPE(_int, _word)(lambda event: 0)
        self.cuStreamWaitEvent = ctypes.CFUNCTYPE(_int, _word, _word, ctypes.c_uint)(lambda *_: 0)
        self.cuStreamIsCapturing = ctypes.CFUNCTYPE(_int, _word, ctypes.POINTER(_int))(lambda *_: 0)
        self.cuThreadExchangeStreamCaptureMode = ctypes.CFUNCTYPE(_int, ctypes.POINTER(_int))(lambda mode: 0)

    def _stream(self, out, flags):
        self.streams += 1
        out[0] = 0x7000 + self.streams
        return 0

    def _event(self, out, flags):
        out[0] = 0xe0
        return 0

    def _note(self, what, stream):
        calls.append((what, stream))
        return 0


class Arguments(ctypes.Structure):
    """Of cuLaunchKernel, as CUPTI gives them."""

    _fields_ = [('function', _word), ('grid', ctypes.c_uint * 3), ('block', ctypes.c_uint * 3),
                ('shared', ctypes.c_uint), ('stream', _word)]


class Data(ctypes.Structure):
    _fields_ = [('site', _int), ('name', ctypes.c_char_p), ('arguments', ctypes.POINTER(Arguments))]


class Cupti:
    """Calls the subscriber for each launch that the test makes."""

    Callback = ctypes.CFUNCTYPE(None, _word, _int, ctypes.c_uint32, ctypes.POINTER(Data))
    CallbackWithLock = ctypes.PYFUNCTYPE(None, _word, _int, ctypes.c_uint32, ctypes.POINTER(Data))

    def __init__(self, status=0):
        self.callback, self.subscribers, self.form = None, 0, Cupti.Callback
        self.subscribe = ctypes.CFUNCTYPE(_int, ctypes.POINTER(_word), _word, _word)(
            lambda out, callback, user: status or self._subscribe(callback))
        self.enable = ctypes.CFUNCTYPE(_int, ctypes.c_uint32, _word, _int, ctypes.c_uint32)(lambda *_: 0)
        self.unsubscribe = ctypes.CFUNCTYPE(_int, _word)(lambda _: self._unsubscribe())

    def _subscribe(self, callback):
        self.callback = self.form(callback)
        self.subscribers += 1
        return 0

    def _unsubscribe(self):
        self.subscribers -= 1
        return 0

    def addresses(self):
        return tuple(ctypes.cast(call, _word).value for call in (self.subscribe, self.enable, self.unsubscribe))

    def launch(self, stream):
        arguments = Arguments(0xf, (2, 1, 1), (64, 1, 1), 0, stream)
        for site in (ENTER, EXIT):
            self.callback(None, DRIVER_DOMAIN, LAUNCH, Data(site, b'', ctypes.pointer(arguments)))


@pytest.fixture
def eager(torch, monkeypatch):
    """gpushare.torch.eager with a driver, and without CUPTI."""
    _library.library()
    if not hasattr(_library.steps, 'gate_open'):
        pytest.skip('The extension gpushare._steps is not built: there are no headers of Python.')
    module, driver = torch.eager, Driver()

    def none():
        raise OSError('libcupti.so: no such file')

    monkeypatch.setattr(module, '_of_cuda', {'cudart': driver}.__getitem__)
    monkeypatch.setattr(module, '_driver_calls', lambda: module._addresses(driver, module._DRIVER))
    monkeypatch.setattr(module, '_cupti_calls', none)
    return module


@pytest.fixture
def cupti(eager, monkeypatch):
    stand_in = Cupti()
    monkeypatch.setattr(eager, '_cupti_calls', stand_in.addresses)
    return stand_in


def test_operations_run_in_regions_on_a_stream_of_their_own(eager, capturing):
    tensor, before = Tensor([1, 2]), len(calls)
    with eager.eager_be(capturing, name='loop') as gate:
        assert fake_torch.cuda.current_stream().cuda_stream == 0x7001
        for number in range(50):
            tensor.fill_(number)
        assert gate.gates == 'operations'
    assert tensor.values == [49, 49]
    assert fake_torch.cuda.current_stream().name == 'current'
    assert gate.operations == 50
    assert gate.regions >= 1
    assert gate.measured == 1, 'the first of them ran alone'
    assert calls[before:before + 1] == [('wait_stream', 'external 0x7001', 'current')]
    assert ('record', 0x7001) in calls
    assert calls[-1] == ('wait_stream', 'current', 'external 0x7001')
    assert capturing.stats().tasks_pending == 0


def test_operations_wait_while_nothing_may_run(eager, capturing):
    tensor, said = Tensor([0]), []

    def loop():
        with eager.eager_be(capturing) as gate:
            said.append(gate)
            for number in range(1, 20):
                tensor.fill_(number)

    thread = threading.Thread(target=loop)
    with held(capturing):
        thread.start()
        until(lambda: said and said[0].operations > 0)
        time.sleep(0.02)
        assert tensor.values == [0]
        assert said[0].operations == 1
    thread.join(10)
    assert tensor.values == [19]
    assert said[0].held_s >= 0.02


def test_operations_wait_while_a_query_is_active(eager, capturing, monkeypatch):
    service = capturing.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05, p99_alone_ns=2_000_000)
    kernel = capturing.register_kernel('chain1')
    service.submit(kernel).wait()
    tensor, done = Tensor([0]), threading.Event()

    def loop():
        with eager.eager_be(capturing):
            tensor.fill_(1)
        done.set()

    with service.queue.begin_query():
        until = time.monotonic() + 10
        while capturing.region_room_ns() > 0 and time.monotonic() < until:
            time.sleep(0.001)  # until a plan has seen it
        thread = threading.Thread(target=loop)
        thread.start()
        time.sleep(0.02)
        assert tensor.values == [0]
    assert done.wait(10)
    thread.join(10)
    assert tensor.values == [1]


def test_an_operation_without_the_gpu_is_not_held(eager, capturing):
    host = Tensor([1], device='cpu')
    with eager.eager_be(capturing) as gate, held(capturing):
        host.fill_(3)
    assert host.values == [3]
    assert gate.operations == gate.regions == 0


def test_tensors_in_lists_and_factories_count(eager):
    seen = eager._size_on_gpu
    gpu, host = Tensor([1, 2]), Tensor([1], device='cpu')
    assert seen((host, gpu), {}) == 2
    assert seen(([gpu],), None) == 2
    assert seen(((4,),), {'device': 'cuda:0'}) == 0
    assert seen((host, [host], []), {'device': 'cpu'}) == -1


def test_launches_of_the_driver_on_the_stream_pass(eager, capturing, cupti):
    with eager.eager_be(capturing) as gate:
        assert gate.gates == 'launches'
        assert not fake_torch.TorchDispatchMode.active, 'no Python at an operation'
        for _ in range(10):
            cupti.launch(0x7001)
        cupti.launch(0x5)
        assert gate.operations == 10
        assert cupti.subscribers == 1
        with eager.eager_be(capturing) as inner:
            cupti.launch(0x7002)
        assert (inner.operations, gate.operations, cupti.subscribers) == (1, 10, 1)
    assert cupti.subscribers == 0, 'a profiler may have it'
    with eager.eager_be(capturing):
        assert fake_torch.cuda.current_stream().cuda_stream in (0x7001, 0x7002), 'streams are used again'


with_or_without_lock = pytest.mark.parametrize('form', [Cupti.CallbackWithLock, Cupti.Callback],
                                               ids=['with the lock', 'without it'])


@with_or_without_lock
def test_a_launch_that_holds_the_interpreters_lock_gives_it_away_while_it_waits(eager, capturing, cupti, form):
    cupti.form, passed = form, []

    def loop():
        with eager.eager_be(capturing) as gate:
            passed.append(gate)
            cupti.launch(0x7001)

    thread = threading.Thread(target=loop)
    with held(capturing):
        thread.start()
        until(lambda: passed and passed[0].operations == 1)
        time.sleep(0.02)  # needs the lock
    thread.join(10)
    assert passed[0].held_s >= 0.02


def test_who_has_the_lock_is_known_beside_a_subinterpreter(run_python):
    name = next((name for name in ('_interpreters', '_xxsubinterpreters') if importlib.util.find_spec(name)), None)
    if name is None:
        pytest.skip('This Python makes no subinterpreters.')
    run_python(f'''
        import {name} as interpreters, pytest
        interpreters.create()
        assert pytest.main(['-q', '-p', 'no:cacheprovider', {__file__!r}, '-k', 'gives_it_away']) == 0
    ''')


@contextlib.contextmanager
def pressed_ctrl_c(gates):
    """As soon as an operation is in the gate. Python's handler of SIGINT raises KeyboardInterrupt."""
    def press():
        until(lambda: gates and gates[0].operations == 1)
        time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    thread.join(10)


def test_ctrl_c_ends_the_wait_of_an_operation(eager, capturing):
    tensor, gates = Tensor([0]), []
    with held(capturing), pressed_ctrl_c(gates), eager.eager_be(capturing) as gate:
        gates.append(gate)
        tensor.fill_(1)
    assert tensor.values == [0]


@with_or_without_lock
def test_ctrl_c_ends_the_wait_of_a_launch(eager, capturing, cupti, form):
    cupti.form, gates, went = form, [], []
    with held(capturing), pressed_ctrl_c(gates), eager.eager_be(capturing) as gate:
        gates.append(gate)
        for number in range(1000):
            cupti.launch(0x7001)
            went.append(number)
    assert len(went) <= 1, 'a launch cannot fail'


def test_a_handler_of_a_signal_may_use_the_gate_in_which_its_thread_waits(eager, capturing):
    tensor, gates = Tensor([0]), []

    def close(*_):
        gates[0].close()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, close)
    try:
        with held(capturing), pressed_ctrl_c(gates), eager.eager_be(capturing) as gate:
            gates.append(gate)
            tensor.fill_(1)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_close_of_another_thread_ends_the_wait_of_an_operation(eager, capturing):
    tensor, gates, errors = Tensor([0]), [], []

    def loop():
        try:
            with eager.eager_be(capturing) as gate:
                gates.append(gate)
                tensor.fill_(1)
        except gpushare.Error as error:
            errors.append(error)

    thread = threading.Thread(target=loop)
    with held(capturing):
        thread.start()
        until(lambda: gates and gates[0].operations == 1)
        gates[0].close()
        thread.join(10)
        assert not thread.is_alive()
    assert isinstance(errors[0], gpushare.FailedPreconditionError)
    assert tensor.values == [0]


def test_without_cupti_the_gate_stands_in_front_of_operations(eager, capturing, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING), eager.eager_be(capturing) as gate:
        assert gate.gates == 'operations'
    assert 'libcupti.so: no such file' in caplog.text
    with pytest.raises(OSError, match='libcupti'), eager.eager_be(capturing, gates='launches'):
        pass
    busy = Cupti(status=39)  # another subscriber, as a profiler
    monkeypatch.setattr(eager, '_cupti_calls', busy.addresses)
    with eager.eager_be(capturing) as gate:
        assert gate.gates == 'operations'
    with pytest.raises(RuntimeError, match='CUPTI refuses the gate with status 39'), \
            eager.eager_be(capturing, gates='launches'):
        pass
    with eager.eager_be(capturing, gates='operations', name='eager-own') as gate:
        assert gate.gates == 'operations'


def test_a_runtime_that_was_shut_down_ends_the_loop(eager, capturing):
    with pytest.raises(gpushare.FailedPreconditionError), eager.eager_be(capturing):
        Tensor([1]).fill_(2)
        capturing.shutdown()
        Tensor([1]).fill_(2)


def test_an_exception_of_the_loop_ends_its_regions(eager, capturing):
    with pytest.raises(KeyError, match='mine'), eager.eager_be(capturing, name='loop'):
        Tensor([1]).fill_(2)
        raise KeyError('mine')
    assert not fake_torch.TorchDispatchMode.active
    capturing.quiesce(timeout_s=1)
    capturing.resume()
    with eager.eager_be(capturing, name='loop'):
        Tensor([1]).fill_(2)


def test_what_it_is_given_is_checked(eager, capturing, monkeypatch):
    with pytest.raises(ValueError, match='outstanding_ns is 1'), eager.eager_be(capturing, outstanding_ns=1):
        pass
    with pytest.raises(ValueError, match="gates is 'all'"), eager.eager_be(capturing, gates='all'):
        pass
    monkeypatch.setattr(_library, 'steps', None)
    with pytest.raises(gpushare.UnavailableError, match='needs the extension'), eager.eager_be(capturing):
        pass
