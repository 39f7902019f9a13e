"""gpushare.triton: which functions have an image, and what a registration gives to the library. Triton is a stub."""

import ctypes
import gc
import json
import sys
import threading
import time
import types
import weakref

import pytest

import gpushare
from gpushare import _function_images, _graph_functions, _twins
from gpushare.enums import PtxFormBit, TaskKind


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


def test_of_more_bytes_than_the_limit_the_first_are_forgotten(images, monkeypatch):
    monkeypatch.setattr(_function_images, 'BYTES_LIMIT', 10, raising=False)
    for function in (1, 2, 3, 3, 3):
        images.add(function, b'image', 'kernel')
    assert [function for function, _, _ in entries(graph_spec())] == [2, 3]


def test_a_cubin_that_is_gone_does_not_fail_the_launch(enabled, images, tmp_path, caplog, monkeypatch):
    gone = str(tmp_path / 'gone.cubin')
    enabled.hook(0x10, 0x1000, 'softmax', {'softmax.cubin': gone}, 'hash')
    monkeypatch.setattr('pathlib.Path.exists', lambda path: True)  # and then it is deleted
    for _ in range(2):
        kernel = enabled.launched('triton_poi_fused', gone)
        kernel.load_kernel(3)
        assert kernel.function == 0x2003
    assert len(images) == 0
    message, = caplog.messages
    assert message.startswith("The image of kernel 'softmax' is not known")
    assert 'FileNotFoundError' in message


def test_only_graphs_get_images(images):
    images.add(1, b'a', 'kernel')
    assert gpushare.KernelSpec('kernel').struct.function_image_count == 0
    assert graph_spec().struct.function_image_count == 1


@pytest.fixture
def disabled(monkeypatch):
    """gpushare.triton, imported anew."""
    monkeypatch.delitem(sys.modules, 'gpushare.triton', raising=False)
    import gpushare.triton as module
    yield module
    sys.modules.pop('gpushare.triton', None)


@pytest.mark.parametrize('runtime', [{'kernel_load_end_hook': None}, {}], ids=['None', 'missing'])
def test_a_triton_that_is_too_old_is_named(monkeypatch, disabled, runtime):
    old = types.ModuleType('triton')
    old.knobs = types.SimpleNamespace(runtime=types.SimpleNamespace(**runtime))
    monkeypatch.setitem(sys.modules, 'triton', old)
    with pytest.raises(ModuleNotFoundError, match=r'needs Triton 3\.5 or later'):
        disabled.enable()


def test_an_enable_that_failed_leaves_no_hook(monkeypatch, disabled):
    triton, hook = types.ModuleType('triton'), HookChain()
    triton.knobs = types.SimpleNamespace(runtime=types.SimpleNamespace(kernel_load_end_hook=hook))
    monkeypatch.setitem(sys.modules, 'triton', triton)

    def broken():
        raise RuntimeError('this import fails')

    with monkeypatch.context() as patch:
        patch.setattr(disabled, '_launched_kernel_class', broken)
        with pytest.raises(RuntimeError, match='this import fails'):
            disabled.enable()
    monkeypatch.setattr(disabled, '_launched_kernel_class', lambda: None)
    disabled.enable()
    assert len(hook.calls) == 1


def test_without_triton_enable_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'triton', None)
    monkeypatch.delitem(sys.modules, 'gpushare.triton', raising=False)
    import gpushare.triton as module
    with pytest.raises(ModuleNotFoundError, match='pip install triton'):
        module.enable(twins=True)
    assert not module._with_twins, 'a failed call changes nothing'
    sys.modules.pop('gpushare.triton', None)


PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry softmax(.param .u64 out)
.reqntid 128
{
  .reg .b32 %r<2>;
  mov.u32 %r1, %ctaid.x;
  ret;
}
"""


@pytest.fixture
def twins(monkeypatch, enabled):
    """Of gpushare.triton with twins, whose set of functions is new."""
    fresh = _twins.Twins()
    monkeypatch.setattr(_twins, 'twins', fresh)
    enabled.module.enable(twins=True)
    return fresh


class Registry:
    """A runtime as far as twins need one."""

    def __init__(self, error=None, device_ordinal=0, simulated=False):
        self.registered, self.error, self.closed, self.kept = [], error, [], []
        self.device_ordinal, self._simulated = device_ordinal, simulated

    def device(self):
        return types.SimpleNamespace(simulated=self._simulated)

    def keep(self, memory):
        self.kept.append(memory)

    def register_kernel(self, name, **options):
        if self.error is not None:
            raise self.error
        self.registered.append((name, options))
        return types.SimpleNamespace(close=lambda: self.closed.append(name), runtime=self)


def load(enabled, folder, function=0x1000, name='softmax', text=PTX, **metadata):
    """As Triton: the stages of a kernel are files of one folder."""
    files = {f'{name}.{kind}': folder / f'{name}{function}.{kind}' for kind in ('cubin', 'ptx', 'json')}
    for file, content in zip(files.values(), (b'cubin', text, json.dumps({'shared': 512, **metadata}).encode()),
                             strict=True):
        file.write_bytes(content)
    enabled.hook(0x10, function, name, {file: str(path) for file, path in files.items()}, 'hash')


def test_a_measured_graph_gets_the_twins_of_all_functions_first(enabled, twins, tmp_path):
    load(enabled, tmp_path)
    load(enabled, tmp_path, 0x2000)
    registry = Registry()
    assert [twin.state for twin in enabled.module.twins(registry)] == ['known', 'known']
    twins.register(registry)
    twins.register(registry)  # once each
    (name, options), (other, _) = registry.registered
    assert name == 'twin 1 softmax' and other == 'twin 2 softmax'
    assert options['original_function'] == 0x1000 and options['dynamic_shared_memory_bytes'] == 512
    assert options['ptx'].text == PTX and options['ptx'].entry == 'softmax'
    assert options['ptx'].struct.forms == PtxFormBit.WORKERS | PtxFormBit.GRAPH_NODES
    assert [twin.state for twin in enabled.module.twins(registry)] == ['made', 'made']
    assert [twin.state for twin in enabled.module.twins()] == ['known', 'known'], 'another runtime has none'


class Driver:
    """The driver of a graph of two kernels, a copy and a graph with a third kernel, which a library has."""

    def __init__(self):
        self.graphs = {0x10: [0x11, 0x12, 0x13, 0x14], 0x20: [0x21]}
        self.kinds = {0x11: 0, 0x12: 0, 0x13: 1, 0x14: 4, 0x21: 0}
        self.functions = {0x11: (0x1000, 0), 0x12: (0x2000, 0), 0x21: (0, 0x77)}

    def nodes_of(self, graph, nodes, count):
        found = self.graphs.get(graph.value)
        if found is None:
            return 400
        count._obj.value = len(found)
        if nodes is not None:
            nodes[:] = found
        return 0

    def kind_of(self, node, kind):
        kind._obj.value = self.kinds[node.value]
        return 0

    def params_of(self, node, params):
        params._obj.function, params._obj.kernel = self.functions[node.value]
        return 0

    def child_of(self, node, graph):
        graph._obj.value = 0x20
        return 0

    def function_of(self, function, kernel):
        function._obj.value = kernel.value + 0x4000
        return 0


@pytest.fixture
def driver(monkeypatch):
    fake = Driver()
    calls = types.SimpleNamespace(
        cuGraphGetNodes=fake.nodes_of, cuGraphNodeGetType=fake.kind_of, cuGraphKernelNodeGetParams_v2=fake.params_of,
        cuGraphChildGraphNodeGetGraph=fake.child_of, cuKernelGetFunction=fake.function_of)
    monkeypatch.setattr(_graph_functions, 'driver', lambda: calls)


def test_the_functions_of_a_graph_are_those_of_its_kernels_and_child_graphs(driver):
    assert _graph_functions.functions_of(0x10) == {0x1000, 0x2000, 0x4077}
    assert _graph_functions.functions_of(0x30) is None, 'the driver refuses it'


def test_without_a_driver_nobody_can_say_what_a_graph_launches(monkeypatch):
    def missing():
        raise OSError('libcuda.so.1: cannot open shared object file')
    monkeypatch.setattr(_graph_functions, 'driver', missing)
    assert _graph_functions.functions_of(0x10) is None


def test_a_driver_without_a_call_cannot_say_it(monkeypatch):
    monkeypatch.setattr(_graph_functions, 'driver', object)
    assert _graph_functions.functions_of(0x10) is None


# An autotuned product loads twenty candidates, of which the step launches one.
def test_only_the_functions_that_the_graph_launches_get_twins(enabled, twins, driver, tmp_path):
    for function in (0x1000, 0x3000, 0x4077):
        load(enabled, tmp_path, function)
    registry = Registry()
    twins.register(registry, 0x10)
    assert [options['original_function'] for _, options in registry.registered] == [0x1000, 0x4077]
    assert [twin.state for twin in enabled.module.twins(registry)] == ['made', 'known', 'made']
    twins.register(registry, 0x30)
    assert [twin.state for twin in enabled.module.twins(registry)] == ['made'] * 3, 'nobody knows what it launches'


def test_a_registration_does_not_wait_for_twins_of_other_graphs(enabled, twins, driver, tmp_path):
    load(enabled, tmp_path, 0x1000)
    registry, assembled = Registry(), threading.Event()
    twins.register(registry)
    register_kernel = registry.register_kernel

    def slow(name, **options):
        assert assembled.wait(60)
        return register_kernel(name, **options)
    made, = registry.kept
    made._register_kernel = lambda: slow
    load(enabled, tmp_path, 0x3000)
    twins.register(registry, wait_s=0)
    began = time.monotonic()
    twins.register(registry, 0x10, wait_s=20)  # it launches 0x1000 alone
    took = time.monotonic() - began
    states = [twin.state for twin in enabled.module.twins(registry)]
    assembled.set()
    assert took < 10 and states == ['made', 'known']
    twins.register(registry)
    assert [twin.state for twin in enabled.module.twins(registry)] == ['made', 'made']


def test_a_simulated_graph_is_not_shown_to_the_driver(enabled, twins, driver, tmp_path):
    load(enabled, tmp_path, 0x3000)
    registry = Registry(simulated=True)
    twins.register(registry, 0x10)
    assert len(registry.registered) == 1


def test_the_options_of_templates_leave_the_process_as_it_is(enabled):
    options = enabled.module.gemm_templates()
    assert options == {'max_autotune_gemm': True, 'max_autotune_gemm_backends': 'TRITON',
                       'max_autotune_conv_backends': 'TRITON'}
    options.clear()
    assert enabled.module.gemm_templates(), 'each call gives a dict of its own'


def test_twins_keep_no_runtime_alive(enabled, twins, tmp_path):
    load(enabled, tmp_path)
    registry = Registry()
    twins.register(registry)
    gone = weakref.ref(registry)
    registry.kept.clear()  # as close() does
    del registry
    gc.collect()
    assert gone() is None


def test_only_measured_graphs_that_are_cut_ask_for_twins():
    def asks(**options):
        return gpushare.KernelSpec('graph', kind=TaskKind.GRAPH, **options).wants_twins()
    assert asks(measure_nodes=True)
    assert not asks() and not asks(measure_nodes=True, segment_ns=-1)
    assert not asks(measure_nodes=True, node_twins=False)
    assert not gpushare.KernelSpec('kernel').wants_twins()


def test_a_refused_kernel_is_listed_with_its_line(enabled, twins, tmp_path):
    load(enabled, tmp_path, text=PTX.replace(b'%ctaid.x', b'%smid'))
    registry = Registry()
    twins.register(registry)
    assert registry.registered == []
    for table in (enabled.module.twins(), enabled.module.twins(registry)):
        twin, = table
        assert twin.state == 'refused' and twin.line == 9 and '%smid' in twin.reason


@pytest.mark.parametrize('metadata', [{'num_ctas': 2}, {'cluster_dims': [2, 1, 1]}, {'launch_cooperative_grid': True}])
def test_a_launch_that_workers_are_not_is_left_out(enabled, twins, tmp_path, metadata):
    load(enabled, tmp_path, **metadata)
    registry = Registry()
    twins.register(registry)
    twin, = enabled.module.twins(registry)
    assert registry.registered == [] and twin.state == 'left out' and twin.reason.startswith('It is launched ')


def test_a_failed_registration_fails_no_graph(enabled, twins, tmp_path):
    load(enabled, tmp_path)
    registry = Registry(ValueError('no assembler'))
    twins.register(registry)
    twin, = enabled.module.twins(registry)
    assert twin.state == 'failed' and 'no assembler' in twin.reason


def test_a_check_that_fails_is_no_failure_of_the_caller(enabled, twins, tmp_path, monkeypatch):
    def fails(self, form):
        raise MemoryError('no memory for the check')
    load(enabled, tmp_path)
    monkeypatch.setattr('gpushare.ptx.Ptx.refusal', fails)
    registry = Registry()
    twins.register(registry)
    for table in (enabled.module.twins(), enabled.module.twins(registry)):
        twin, = table
        assert twin.state == 'failed' and 'no memory for the check' in twin.reason


def test_an_offer_that_fails_has_a_message_of_its_own(enabled, twins, tmp_path, caplog):
    (tmp_path / 'softmax.cubin').write_bytes(b'cubin')
    gone = {f'softmax.{kind}': str(tmp_path / f'softmax.{kind}') for kind in ('cubin', 'ptx', 'json')}
    for _ in range(2):
        enabled.hook(0x10, 0x1000, 'softmax', gone, 'hash')
    message, = caplog.messages
    assert message.startswith("The PTX of kernel 'softmax' is not known") and 'FileNotFoundError' in message
    assert enabled.module.known_functions() == 1


def test_a_runtime_has_the_twins_of_its_own_gpu(enabled, twins, tmp_path, monkeypatch):
    ordinals = iter((0, 1, None))
    monkeypatch.setattr(enabled.module, '_current_device', lambda: next(ordinals))
    for function in (0x1000, 0x2000, 0x3000):
        load(enabled, tmp_path, function)
    registry = Registry(device_ordinal=1)
    twins.register(registry)
    assert [options['original_function'] for _, options in registry.registered] == [0x2000, 0x3000]
    assert [twin.function for twin in enabled.module.twins(registry)] == [0x2000, 0x3000]
    assert len(enabled.module.twins()) == 3


def test_the_gpu_is_tritons_current_one(enabled, monkeypatch):
    assert enabled.module._current_device() is None  # the stub has no driver
    runtime = types.ModuleType('triton.runtime')
    runtime.driver = types.SimpleNamespace(active=types.SimpleNamespace(get_current_device=lambda: 5))
    monkeypatch.setitem(sys.modules, 'triton.runtime', runtime)
    assert enabled.module._current_device() == 5


def test_a_runtime_keeps_no_text_of_a_twin_that_is_done(enabled, twins, tmp_path):
    load(enabled, tmp_path)
    load(enabled, tmp_path, 0x2000, text=PTX.replace(b'%ctaid.x', b'%smid'))
    registry = Registry()
    twins.register(registry)
    registry.registered.clear()  # its own options
    texts = [weakref.ref(one) for one in twins._offered.values()]
    for function in list(twins._offered):
        twins._forget(function)
    gc.collect()
    assert [text() for text in texts] == [None, None]
    load(enabled, tmp_path, 0x3000)
    twins.register(registry)
    made, = registry.kept
    assert list(made._done) == [0x1000, 0x3000], 'of a refused function that is forgotten nothing is kept'


def test_a_function_that_is_loaded_again_has_the_twin_of_its_last_text(enabled, twins, tmp_path):
    load(enabled, tmp_path)
    registry = Registry()
    twins.register(registry)
    load(enabled, tmp_path, text=PTX + b'// another\n')
    twins.register(registry)
    assert registry.closed == ['twin 1 softmax']
    assert [options['ptx'].text for _, options in registry.registered] == [PTX, PTX + b'// another\n']


def test_of_more_functions_than_the_limit_the_first_have_twins(enabled, twins, tmp_path, monkeypatch):
    monkeypatch.setattr(_twins, 'LIMIT', 1)
    load(enabled, tmp_path)
    load(enabled, tmp_path, 0x2000)
    registry = Registry()
    twins.register(registry)
    assert [twin.state for twin in enabled.module.twins(registry)] == ['made', 'left out']


def test_inductors_kernel_has_the_ptx_beside_its_cubin(enabled, twins, tmp_path):
    (tmp_path / 'softmax.cubin').write_bytes(b'cubin')
    (tmp_path / 'softmax.ptx').write_bytes(PTX)
    kernel = enabled.launched('softmax', str(tmp_path / 'softmax.cubin'))
    kernel.shared = 64
    kernel.load_kernel(3)
    registry = Registry(device_ordinal=3)
    twins.register(registry)
    (_, options), = registry.registered
    assert options['original_function'] == 0x2003 and options['dynamic_shared_memory_bytes'] == 64


def test_without_twins_no_text_is_kept(enabled, tmp_path, monkeypatch):
    fresh = _twins.Twins()
    monkeypatch.setattr(_twins, 'twins', fresh)
    load(enabled, tmp_path)
    assert fresh.table() == []
