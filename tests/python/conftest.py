"""Fixtures of the Python package's tests: runtimes on the simulated device.

GPUSHARE_LIBRARY names the library under test; unset, it is that of build/dev. The package is that of the
source tree.
"""

import importlib
import os
import pathlib
import subprocess
import sys
import textwrap
import weakref

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'bindings/python'
sys.path.insert(0, str(PACKAGE))
os.environ.setdefault('GPUSHARE_LIBRARY', str(ROOT / 'build/dev/bindings/c/libgpushare.so.1'))
os.environ.setdefault('GPUSHARE_PYTHON_STEPS', str(ROOT / 'build/dev/bindings/python/_steps.abi3.so'))

import fake_torch  # noqa: E402

import gpushare  # noqa: E402


@pytest.fixture
def runtime():
    """A simulated runtime with its scheduler thread."""
    with gpushare.Runtime(device='sim') as opened:
        yield opened


@pytest.fixture
def polled():
    """A simulated runtime that the test drives."""
    with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL) as opened:
        yield opened


@pytest.fixture
def service(runtime):
    return runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05, p99_alone_ns=2_000_000)


@pytest.fixture
def training(runtime):
    return runtime.create_app('training', gpushare.BEST_EFFORT)


@pytest.fixture
def chain(runtime):
    return runtime.register_kernel('chain1')


@pytest.fixture
def sincos(runtime):
    return runtime.register_kernel('sincos_27us')


@pytest.fixture(params=['steps', 'ctypes'])
def form(request, monkeypatch):
    """Both forms of a step's calls: the extension's, where it is built, and that of ctypes."""
    from gpushare import _library
    _library.library()
    if request.param == 'ctypes':
        monkeypatch.setattr(_library, 'steps', None)
    elif _library.steps is None:
        pytest.skip('The extension gpushare._steps is not built: there are no headers of Python.')
    return request.param


@pytest.fixture
def run_python():
    """Runs a program in a new interpreter. Returns what it printed; a bad exit code fails the test."""
    def run(program, expected=0, **environment):
        variables = {**os.environ, 'PYTHONPATH': str(PACKAGE), **environment}
        done = subprocess.run([sys.executable, '-X', 'faulthandler', '-c', textwrap.dedent(program)], env=variables,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == expected, f'exit code {done.returncode}\n{done.stdout}\n{done.stderr}'
        return done.stdout + done.stderr
    return run


@pytest.fixture
def torch(monkeypatch):
    """gpushare.torch with a PyTorch that needs no GPU."""
    fake_torch.install(monkeypatch)
    yield importlib.import_module('gpushare.torch')
    for name in [name for name in sys.modules if name.startswith('gpushare.torch')]:
        del sys.modules[name]


@pytest.fixture
def capturing():
    """A simulated runtime that calls capture callbacks."""
    with fake_torch.CapturingRuntime(device='sim') as opened:
        yield opened


@pytest.fixture
def live_events(monkeypatch):
    """The events of the PyTorch without a GPU that exist."""
    events = weakref.WeakSet()

    class Event(fake_torch.Event):
        def __init__(self):
            super().__init__()
            events.add(self)

    monkeypatch.setattr(fake_torch.cuda, 'Event', Event)
    return events
