"""examples/llm against a PyTorch, a transformers and a peft of a few lines, on the simulated device.

The stubs have the names that the example uses of transformers 5.17 and peft 0.21. Where these are installed,
test_engine_pages.py checks that they exist.
"""

import contextlib
import importlib
import itertools
import pathlib
import sys
import time
import types

import fake_torch
import pytest

import gpushare

FOLDER = pathlib.Path(__file__).resolve().parents[2] / 'examples/llm'


class Runtime(gpushare.Runtime):
    """Registers a simulated graph for each graph: its own for the fine-tuning, one for all steps of the engine."""

    def __init__(self):
        super().__init__(device='sim')
        self.registered, self.made = [], {}

    def register_kernel(self, name, **options):
        self.registered.append((name, options['graph'], options['kind'], options.get('segment_ns')))
        simulated = 'bert_b1' if name == 'fine-tuning' else 'resnet50_b1'
        if simulated not in self.made:
            self.made[simulated] = super().register_kernel(simulated)
        return self.made[simulated]


class Runner:
    """As transformers' ModelRunner: captures a step the first time it meets a size, then replays it."""

    def __init__(self):
        self.graphs, self.forwards, self.replays = {}, 0, 0

    def compute_batch(self, size):
        if size in self.graphs:
            self.replays += 1
            self.graphs[size].replay()
        else:
            self.forward()
            cuda = sys.modules['torch'].cuda
            graph = cuda.CUDAGraph()
            with cuda.graph(graph, stream='compute', pool='pool', capture_error_mode='thread_local'):
                self.forward()
            self.graphs[size] = graph

    def forward(self):
        self.forwards += 1


class Manager:
    """Serves each request while it is added: a prefill and its tokens."""

    made = []

    def __init__(self):
        self.runner, self.results, self.numbers = Runner(), [], itertools.count()
        Manager.made.append(self)

    def add_request(self, tokens, max_new_tokens, record_timestamps):
        assert record_timestamps
        times = []
        for number in range(max_new_tokens):
            self.runner.compute_batch(len(tokens) if number == 0 else 1)
            times.append(time.perf_counter())
        name = f'req_{next(self.numbers)}'
        self.results.append(types.SimpleNamespace(request_id=name, timestamps=times, error=None))
        return name

    def get_result(self, timeout):
        return self.results.pop(0)

    def is_running(self):
        return True


class Llama(fake_torch.Module):
    def __init__(self, config):
        super().__init__([fake_torch.Tensor([1.0])])
        self.config = config

    def to(self, dtype):
        return self

    def eval(self):
        return self

    def state_dict(self):
        return {}

    def set_attn_implementation(self, name):
        self.attention = name

    @contextlib.contextmanager
    def continuous_batching_context_manager(self, generation_config, continuous_batching_config):
        assert self.attention == 'paged|sdpa'
        assert continuous_batching_config.use_cuda_graph
        assert not continuous_batching_config.use_async_batching
        yield Manager()

    def __call__(self, input_ids, labels, use_cache):
        loss = fake_torch.Tensor([0.5])
        loss.backward = lambda: None
        return types.SimpleNamespace(loss=loss)


class Optimizer:
    state = {}

    def __init__(self, parameters, lr, capturable):
        assert capturable

    def zero_grad(self, set_to_none):
        assert set_to_none

    def step(self):
        pass

    def state_dict(self):
        return {}


class Graph(fake_torch.CUDAGraph):
    numbers = itertools.count(0x700)

    def __init__(self, keep_graph=False):
        super().__init__(keep_graph)
        self.kept, self.number, self.ended = keep_graph, next(Graph.numbers), False

    def raw_cuda_graph(self):
        assert self.kept
        return self.number

    def reset(self):
        self.ended = True


@contextlib.contextmanager
def captured(graph, stream, pool, capture_error_mode):
    yield
    graph.capture_end()


def stub(monkeypatch, name, **names):
    module = types.ModuleType(name)
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def llm(monkeypatch):
    torch = fake_torch.install(monkeypatch)
    cuda = types.SimpleNamespace(**vars(torch.cuda))
    cuda.CUDAGraph, cuda.graph = Graph, captured
    monkeypatch.setattr(torch, 'cuda', cuda)
    torch.bfloat16, torch.device = 'bfloat16', lambda name: contextlib.nullcontext()
    torch.randint = lambda low, high, size, device: fake_torch.Tensor([0])
    torch.optim = types.SimpleNamespace(AdamW=Optimizer)
    monkeypatch.setattr(fake_torch.Tensor, 'requires_grad', True, raising=False)
    config = type('Config', (types.SimpleNamespace,), {})
    stub(monkeypatch, 'peft', LoraConfig=config, get_peft_model=lambda model, config: model)
    stub(monkeypatch, 'transformers', ContinuousBatchingConfig=config, GenerationConfig=config, LlamaConfig=config,
         LlamaForCausalLM=Llama)
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, 'llm', raising=False)
    Manager.made.clear()
    yield importlib.import_module('llm')
    for name in [name for name in sys.modules if name == 'llm' or name.startswith('gpushare.torch')]:
        del sys.modules[name]


def test_the_engine_runs_through_the_library_and_the_fine_tuning_beside_it(llm, monkeypatch, capsys):
    runtimes = []

    def runtime():
        runtimes.append(Runtime())
        return runtimes[-1]

    monkeypatch.setattr(gpushare, 'Runtime', runtime)
    monkeypatch.setattr(sys, 'argv', ['llm.py', '--seconds', '0.5', '--rate', '20'])
    done = []
    monkeypatch.setattr(llm.gpushare.Queue, 'run', lambda queue, kernel, real=gpushare.Queue.run: (
        real(queue, kernel), done.append(kernel))[0])
    llm.main()
    alone, beside, steps = capsys.readouterr().out.splitlines()
    assert alone.startswith('engine alone: TTFT p50')
    assert beside.startswith('beside fine-tuning: TTFT p50')
    assert float(steps.split()[1]) > 0
    runner = Manager.made[0].runner
    # A prefill and a decode: each runs eagerly once and is captured once.
    assert runner.forwards == 4
    assert len(done) == runner.replays > 20 * llm.OUTPUT
    names = {name: rest for name, *rest in runtimes[0].registered}
    assert sorted(names) == ['fine-tuning', 'step-1', 'step-2']
    assert names['step-1'][0] != names['step-2'][0]
    assert {tuple(names[name][1:]) for name in ('step-1', 'step-2')} == {(gpushare.TaskKind.GRAPH, -1)}


def test_without_the_library_the_engine_replays_its_own_graphs(llm, monkeypatch, capsys):
    monkeypatch.setattr(gpushare, 'Runtime', Runtime)
    monkeypatch.setattr(sys, 'argv', ['llm.py', '--seconds', '0.2', '--rate', '20', '--bare'])
    monkeypatch.setattr(Graph, 'replay', lambda graph: None, raising=False)
    llm.main()
    assert capsys.readouterr().out.startswith('engine alone')
    assert Manager.made[0].runner.replays > 0


def test_a_step_that_ends_gives_its_graph_and_its_kernel_back(llm):
    with Runtime() as runtime:
        queue = runtime.create_app('engine', gpushare.AppClass.LATENCY_CRITICAL).create_queue()
        llm.run_engine_through(runtime, queue)
        step = llm.torch.cuda.CUDAGraph()
        with llm.torch.cuda.graph(step, 'stream', 'pool', 'relaxed'):
            pass
        step.replay()
        step.reset()
        assert step.ended
        with pytest.raises(gpushare.FailedPreconditionError):
            step.replay()


def test_a_request_that_fails_is_an_error(llm):
    manager = Manager()
    manager.get_result = lambda timeout: types.SimpleNamespace(error='No room.')
    manager.add_request = lambda *given, **named: 'req_0'
    with pytest.raises(RuntimeError, match='No room'):
        llm.serve(manager, 0.1, 20)
