"""The pages about engines: their code runs against stubs with the calls of each engine, and their names exist.

Names are checked where the package is installed, which CI's machine has none of.
"""

import contextlib
import itertools
import pathlib
import pkgutil
import re
import sys
import types

import fake_torch
import pytest

import gpushare

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {'transformers': '5.17.0', 'vllm': '0.33.0', 'sglang': '0.5.23', 'compile': '2.11.0'}
GRAPHS = 'engines-graphs.md'


def page(name):
    return (ROOT / 'docs' / name).read_text(encoding='utf-8')


def blocks(name):
    return re.findall(r'```python\n(.*?)```', page(name), re.DOTALL)


def names_of(name):
    """The names with a package in the first column of a page's tables."""
    rows = re.findall(r'^\| (`[^|]*) \|', page(name), re.MULTILINE)
    return [word for row in rows for word in re.findall(r'`((?:transformers|vllm|sglang|torch)\.[\w.]+)`', row)]


class Graph(fake_torch.CUDAGraph):
    numbers = itertools.count(0x700)

    def __init__(self, keep_graph=False):
        super().__init__(keep_graph)
        self.number = next(Graph.numbers)

    def raw_cuda_graph(self):
        return self.number

    def replay(self):
        raise AssertionError('A step runs through the library.')

    def reset(self):
        self.number = 0


@pytest.fixture
def torch(monkeypatch):
    module = fake_torch.install(monkeypatch)
    cuda = types.SimpleNamespace(**vars(module.cuda))

    @contextlib.contextmanager
    def captured(cuda_graph, pool=None, stream=None):
        yield
        cuda_graph.capture_end()

    cuda.CUDAGraph, cuda.graph = Graph, captured
    monkeypatch.setattr(module, 'cuda', cuda)
    return module


@pytest.fixture
def engine(torch, monkeypatch):
    """The names of the page about graphs, and the runtimes that its code makes."""
    made = []

    class Runtime(gpushare.Runtime):
        def __init__(self, device_ordinal=0):
            super().__init__(device='sim')
            self.graphs, self.simulated = [], None
            made.append(self)

        def register_kernel(self, name, **options):
            assert options['kind'] == gpushare.TaskKind.GRAPH
            self.graphs.append((name, options['graph']))
            self.simulated = self.simulated or super().register_kernel('resnet50_b1')
            return self.simulated

    monkeypatch.setattr(gpushare, 'Runtime', Runtime)
    names = {'torch': torch, 'gpushare': gpushare, 'itertools': itertools, 'contextlib': contextlib}
    exec(blocks(GRAPHS)[1], names)
    yield types.SimpleNamespace(names=names, made=made)
    for runtime in made:
        runtime.close()


# --- the engines' own calls, as their versions make them ---


class CudaGraphManager:
    """As vLLM 0.33's: capture() fills `graphs`, run_fullgraph() replays one."""

    def __init__(self, torch):
        self.torch, self.graphs, self.pool = torch, {}, 'pool'

    def capture(self, create_forward_fn, progress_bar_desc='Capturing CUDA graphs'):
        for desc in (4, 2, 1):
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph, self.pool, stream='stream'):
                create_forward_fn(desc)
            self.graphs[desc] = graph

    def run_fullgraph(self, desc):
        self.graphs[desc].replay()


class FullCudaGraphBackend:
    """As SGLang 0.5.23's: capture_one() fills `_graphs`, replay() replays one."""

    def __init__(self, torch):
        self._device_module, self._graphs, self._outputs = torch.cuda, {}, {}
        self.torch = torch

    def capture_one(self, shape_key, forward_fn, capture_inputs=None, post_warmup_hook=None):
        graph = self.torch.cuda.CUDAGraph()
        with self._device_module.graph(cuda_graph=graph, pool='pool', stream='stream'):
            self._outputs[shape_key] = forward_fn()
        self._graphs[shape_key] = graph

    def replay(self, shape_key, static_forward_batch):
        self._graphs[shape_key].replay()
        return self._outputs[shape_key]

    def cleanup(self):
        for graph in self._graphs.values():
            graph.reset()


class HookRegistry:
    """As SGLang's, for a hook around a function."""

    hooks = []

    @classmethod
    def register(cls, target, hook, hook_type):
        cls.hooks.append((target, hook, hook_type))

    @classmethod
    def apply(cls, monkeypatch, owner):
        (target, hook, hook_type), = cls.hooks
        assert hook_type == 'around'
        name = target.rpartition('.')[2]
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **named: hook(original, *given, **named))
        return target


def stub(monkeypatch, path, **names):
    """A module at the path, with packages above it."""
    parts = path.split('.')
    for depth in range(1, len(parts) + 1):
        name = '.'.join(parts[:depth])
        if name not in sys.modules:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    vars(sys.modules[path]).update(names)


def test_the_hook_of_vllm_runs_its_steps_through_the_library(engine, torch, monkeypatch):
    stub(monkeypatch, 'vllm.v1.worker.gpu.cudagraph_utils', CudaGraphManager=CudaGraphManager)
    monkeypatch.setattr(CudaGraphManager, 'capture', CudaGraphManager.capture)  # put back what the hook replaces
    exec(blocks('engines-vllm.md')[0], engine.names)
    engine.names['register']()
    manager = CudaGraphManager(torch)
    manager.capture(lambda desc: None, progress_bar_desc='Capturing')
    assert [name for name, _ in engine.made[0].graphs] == ['step-1', 'step-2', 'step-3']
    assert torch.cuda.CUDAGraph is Graph  # outside of the capture, graphs are PyTorch's
    for desc in (1, 4, 2, 1):
        manager.run_fullgraph(desc)
    assert engine.names['StepGraph'].queue.app.stats().completed == 4


def test_the_hook_of_sglang_runs_its_steps_through_the_library(engine, torch, monkeypatch):
    HookRegistry.hooks.clear()
    stub(monkeypatch, 'sglang.srt.plugins.hook_registry', HookRegistry=HookRegistry,
         HookType=types.SimpleNamespace(AROUND='around'))
    exec(blocks('engines-sglang.md')[0], engine.names)
    engine.names['register']()
    target = HookRegistry.apply(monkeypatch, FullCudaGraphBackend)
    assert target in names_of('engines-sglang.md')
    backend = FullCudaGraphBackend(torch)
    for shape in (8, 4):
        backend.capture_one(shape, lambda shape=shape: f'out {shape}', post_warmup_hook=None)
    assert backend.replay(4, None) == 'out 4'
    assert backend.replay(8, None) == 'out 8'
    assert engine.names['StepGraph'].queue.app.stats().completed == 2
    assert len(engine.made) == 1
    backend.cleanup()


def test_the_graph_of_your_own_is_registered_as_the_page_says(engine, torch):
    names = {**engine.names, 'runtime': gpushare.Runtime(), 'pool': 'pool', 'step': lambda: None}
    exec(blocks(GRAPHS)[0], names)
    assert engine.made[0].graphs == [('d8', names['graph'].number)]
    assert names['queue'].app.stats().completed == 1


def test_the_pages_class_is_the_examples():
    example = (ROOT / 'examples/llm/llm.py').read_text(encoding='utf-8')
    code = blocks(GRAPHS)[1]
    assert code[:code.index('@contextlib')].rstrip() in example


@pytest.mark.parametrize('engine_name', PAGES)
def test_a_page_names_its_version_and_its_names_exist(engine_name):
    name = f'engines-{engine_name}.md'
    assert PAGES[engine_name] in page(name)
    names = names_of(name)
    assert len(names) >= 3
    package = names[0].partition('.')[0]
    try:
        module = __import__(package)
        version = module.__version__
    except (ImportError, AttributeError):
        pytest.skip(f'{package} is not installed.')
    if not version.startswith(PAGES[engine_name]):
        pytest.skip(f'{package} is {version}, and the page is about {PAGES[engine_name]}.')
    for one in names:
        assert pkgutil.resolve_name(one) is not None
