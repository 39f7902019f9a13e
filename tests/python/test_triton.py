"""gpushare.triton: which functions have an image, and what a registration gives to the library. Triton is a stub."""

import ctypes
import sys
import types

import pytest

import gpushare
from gpushare import _function_images
from gpushare.enums import TaskKind


class HookChain:
    def __init__(self):
        self.calls = []

    def add(self, call):
        self.calls.append(call)

    def __call__(self, *args):
        for call in self.calls:
            call(*args)


class LaunchedKernel:
    """As TorchInductor's: the load forgets the path."""

    def __init__(self, name, path):
        self.name, self.cubin_path, self.function = name, path, None

    def load_kernel(self, device):
        self.function, self.cubin_path = 0x2000 + device, None


@pytest.fixture
def images(monkeypatch):
    fresh = _function_images.FunctionImages()
    monkeypatch.setattr('gpushare.kernel.function_images', fresh)
    return fresh


@pytest.fixture
def enabled(monkeypatch, images):
    """gpushare.triton, imported anew and enabled, with the hook chain of the stub."""
    hook = HookChain()
    triton = types.ModuleType('triton')
    triton.knobs = types.SimpleNamespace(runtime=types.SimpleNamespace(kernel_load_end_hook=hook))
    launcher = types.ModuleType('torch._inductor.runtime.static_triton_launcher')
    launcher.StaticallyLaunchedTritonKernel = type('Launched', (LaunchedKernel,), {})
    runtime = types.ModuleType('torch._inductor.runtime')
    runtime.static_triton_launcher = launcher
    for name, module in {'triton': triton, 'torch': types.ModuleType('torch'),
                         'torch._inductor': types.ModuleType('torch._inductor'), 'torch._inductor.runtime': runtime,
                         'torch._inductor.runtime.static_triton_launcher': launcher}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, 'gpushare.triton', raising=False)
    import gpushare.triton as module
    monkeypatch.setattr(module, 'function_images', images)
    module.enable()
    module.enable()  # once is enough
    yield types.SimpleNamespace(hook=hook, launched=launcher.StaticallyLaunchedTritonKernel, module=module)
    sys.modules.pop('gpushare.triton', None)


def entries(spec):
    return [(entry.function, ctypes.string_at(entry.image, entry.image_bytes), entry.name)
            for entry in spec.struct.function_images[:spec.struct.function_image_count]]


def graph_spec():
    return gpushare.KernelSpec('graph', kind=TaskKind.GRAPH)


def test_a_loaded_function_comes_with_its_cubin(enabled, images, tmp_path):
    (tmp_path / 'softmax.cubin').write_bytes(b'\x7fELF softmax\0more')
    enabled.hook(0x10, 0x1000, 'softmax', {'softmax.ptx': 'nowhere', 'softmax.cubin': str(tmp_path / 'softmax.cubin')},
                 'hash')
    assert entries(graph_spec()) == [(0x1000, b'\x7fELF softmax\0more', b'softmax')]
    assert len(enabled.hook.calls) == 1
    assert enabled.module.known_functions() == 1


def test_inductors_function_comes_with_its_cubin(enabled, tmp_path):
    (tmp_path / 'fused.cubin').write_bytes(b'fused')
    kernel = enabled.launched('triton_poi_fused', str(tmp_path / 'fused.cubin'))
    kernel.load_kernel(3)
    assert kernel.cubin_path is None and kernel.function == 0x2003
    kernel.load_kernel(3)  # loaded already: nothing new
    assert entries(graph_spec()) == [(0x2003, b'fused', b'triton_poi_fused')]


def test_an_address_that_comes_again_has_the_last_image(images):
    images.add(1, b'a', 'old')
    images.add(2, b'b', 'other')
    images.add(1, b'c', 'new')
    assert entries(graph_spec()) == [(2, b'b', b'other'), (1, b'c', b'new')]


def test_of_more_than_the_limit_the_first_are_forgotten(images, monkeypatch):
    monkeypatch.setattr(_function_images, 'LIMIT', 2)
    for function in range(1, 5):
        images.add(function, b'image', 'kernel')
    assert [function for function, _, _ in entries(graph_spec())] == [3, 4]


def test_only_graphs_get_images(images):
    images.add(1, b'a', 'kernel')
    assert gpushare.KernelSpec('kernel').struct.function_image_count == 0
    assert graph_spec().struct.function_image_count == 1


def test_without_triton_enable_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'triton', None)
    monkeypatch.delitem(sys.modules, 'gpushare.triton', raising=False)
    import gpushare.triton as module
    with pytest.raises(ModuleNotFoundError, match='pip install triton'):
        module.enable()
    sys.modules.pop('gpushare.triton', None)
