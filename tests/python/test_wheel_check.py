"""gpu/wheel_check.py by itself: its cases run to the end on a simulated device, with a PyTorch without a GPU."""

import importlib
import pathlib
import sys
import types

import fake_torch
import pytest
from fake_torch import Tensor, double

import gpushare

NODE_NS = 200_000  # of a query and of a training step


class Step:
    state = ()

    def __call__(self):
        pass


class RealTimeRuntime(fake_torch.CapturingRuntime):
    node_ns = NODE_NS

    def __init__(self, device):
        assert device == 'cuda'
        super().__init__(device='sim:realtime')


def assert_close(found, wanted, **limits):
    assert found.values == wanted.values


@pytest.fixture
def checks(torch, monkeypatch):
    """The checks of a tenth of a second on that PyTorch."""
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parent / 'gpu'))
    module = sys.modules['torch']
    module.randn = lambda *shape, device: types.SimpleNamespace(half=lambda: Tensor([1.0, 2.0]))
    module.enable_grad = module.no_grad
    module.testing = types.SimpleNamespace(assert_close=assert_close)
    for name in ('harness', 'torch_check', 'wheel_check'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    script = importlib.import_module('wheel_check')
    monkeypatch.setattr(script.torch_check, 'model', lambda width, depth: double)
    monkeypatch.setattr(script.torch_check, 'Step', Step)
    monkeypatch.setattr(script, 'P99_RATIO_MAX', float('inf'))  # of a machine that does other things meanwhile
    monkeypatch.setattr(gpushare, 'Runtime', RealTimeRuntime)
    yield script.Checks(0.1)
    for name in ('harness', 'torch_check', 'wheel_check'):
        sys.modules.pop(name, None)


def test_a_service_is_served_beside_a_training(checks):
    checks.a_service_is_served_beside_a_training()
    assert checks.figures['training steps beside'] > 0
    assert checks.figures['p99 alone us'] >= NODE_NS / 1e3


def test_a_wrong_answer_closes_the_training_first(checks, monkeypatch):
    module, closed, runtimes = sys.modules['wheel_check'], [], []

    class Training(module.gt.Training):
        def __init__(self, runtime, *args, **options):
            super().__init__(runtime, *args, **options)
            runtimes.append(runtime)

        def close(self):
            closed.append(runtimes[0].device().simulated)  # raises if the runtime is closed
            super().close()

    def wrong_beside(service, x, expected):
        if runtimes:
            raise AssertionError('a wrong answer')
        return NODE_NS

    monkeypatch.setattr(module.gt, 'Training', Training)
    monkeypatch.setattr(checks, '_p99_ns', wrong_beside)
    with pytest.raises(AssertionError, match='a wrong answer'):
        checks.a_service_is_served_beside_a_training()
    assert closed == [True]


def test_a_library_from_elsewhere_is_found_out(checks, monkeypatch):
    monkeypatch.setattr(gpushare, 'library_path', lambda: '/usr/lib/libgpushare.so.1')
    with pytest.raises(AssertionError, match='/usr/lib/libgpushare'):
        checks.the_wheel_brings_its_library()
