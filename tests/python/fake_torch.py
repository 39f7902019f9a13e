"""What gpushare.torch uses of PyTorch, without a GPU: tensors are lists, and every call on a stream is written down.

`install` puts the module in the place of torch and returns it. `calls` lists what happened, in order.
The simulated device captures nothing; CapturingRuntime calls the capture callback as a CUDA device does.
"""

import contextlib
import itertools
import sys
import threading
import types
import weakref

import gpushare

PLACES = (132, 96, 36)  # the SMs of the places in which a CapturingRuntime captures


class Tensor:
    """A row of numbers of 4 bytes, at an address of its own."""

    pointers = itertools.count(0x1000, 0x100)
    at = weakref.WeakValueDictionary()  # by address
    is_cuda = True
    pinned = False
    layout = 'strided'
    strides = (1,)

    def __init__(self, values, dtype='float32', device='cuda:0'):
        self.values, self.dtype = list(values), dtype
        self.pointer = next(Tensor.pointers)
        self.is_cuda = device != 'cpu'
        Tensor.at[self.pointer] = self

    @property
    def device(self):
        return 'cuda:0' if self.is_cuda else 'cpu'

    def to(self, device):
        return self if device == self.device else Tensor(self.values, self.dtype, device)

    def is_pinned(self):
        return self.pinned

    def stride(self):
        return self.strides

    def element_size(self):
        return 4

    @property
    def shape(self):
        return (len(self.values),)

    def data_ptr(self):
        return self.pointer

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=self.data_ptr, nbytes=lambda: 4 * len(self.values))

    def detach(self):
        return self

    def pin_memory(self):
        copy = self.clone()
        copy.is_cuda, copy.pinned = False, True
        return copy

    def clone(self):
        return Tensor(self.values, self.dtype, self.device)

    def copy_(self, other, non_blocking=False):
        self.values[:] = other.values
        return self

    def numel(self):
        return len(self.values)

    def flatten(self):
        return self

    def item(self):
        value, = self.values
        return value

    def __getitem__(self, index):
        return Tensor([self.values[index]], self.dtype)


class Module:
    """A network with these weights that doubles its input."""

    def __init__(self, parameters=(), buffers=()):
        self._parameters, self._buffers = parameters, buffers

    def parameters(self):
        return iter(self._parameters)

    def buffers(self):
        return iter(self._buffers)

    def __call__(self, tensor):
        return Tensor([2 * value for value in tensor.values])


class Stream:
    def __init__(self, name='side'):
        self.name = name

    def wait_stream(self, other):
        calls.append(('wait_stream', self.name, other.name))

    def synchronize(self):
        calls.append(('synchronize', self.name))


class Event:
    numbers = itertools.count(0xe0)

    def __init__(self):
        self.cuda_event = next(Event.numbers)

    def record(self, stream):
        calls.append(('record', stream.name))

    def synchronize(self):
        calls.append(('event',))


class MemPool:
    numbers = itertools.count(1)

    def __init__(self):
        self.id = (0, next(MemPool.numbers))


class CUDAGraph:
    numbers = itertools.count(0xabc, 0x10)

    def __init__(self, keep_graph=False):
        self.keep_graph = keep_graph
        self.raw = next(CUDAGraph.numbers)

    def capture_begin(self, capture_error_mode, pool=None):
        calls.append(('capture_begin', cuda.current_stream().name, capture_error_mode, *([pool] if pool else [])))

    def capture_end(self):
        calls.append(('capture_end',))

    def raw_cuda_graph(self):
        if not self.keep_graph:
            raise RuntimeError('You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with '
                               'keep_graph=true')
        return self.raw


L2_CACHE = 1 << 20
calls = []


class _Streams(threading.local):
    """The current streams of a thread, innermost last."""

    def __init__(self):
        self.stack = [Stream('current')]


_streams = _Streams()
random_state = Tensor([0])
carve_out = [None]


@contextlib.contextmanager
def _stream(stream):
    _streams.stack.append(stream)
    try:
        yield
    finally:
        _streams.stack.pop()


@contextlib.contextmanager
def _noted(*words):
    calls.append(('enter', *words))
    try:
        yield
    finally:
        calls.append(('leave', *words))


def _set_carve_out(value):
    carve_out[0] = value
    calls.append(('carve_out', value))


cuda = types.SimpleNamespace(
    Stream=Stream, Event=Event, CUDAGraph=CUDAGraph, stream=_stream,
    ExternalStream=lambda stream: Stream(f'external {stream:#x}'),
    MemPool=MemPool,
    use_mem_pool=lambda pool: _noted('pool', pool.id),
    current_stream=lambda: _streams.stack[-1],
    current_device=lambda: 0,
    is_available=lambda: True,
    get_device_properties=lambda device: types.SimpleNamespace(multi_processor_count=132, L2_cache_size=L2_CACHE),
    get_rng_state=lambda: random_state.clone())


def install(monkeypatch):
    calls.clear()
    del _streams.stack[1:]
    random_state.values[:] = [0]
    carve_out[0] = None
    CUDAGraph.numbers = itertools.count(0xabc, 0x10)
    MemPool.numbers = itertools.count(1)
    module = types.ModuleType('torch')
    module.Tensor, module.cuda = Tensor, cuda
    module.empty_like = lambda tensor, device=None: Tensor(
        [float('nan')] * len(tensor.values), tensor.dtype, device or tensor.device)
    module.device = lambda kind, index: f'{kind}:{index}'
    module.full_like = lambda tensor, value: Tensor([value] * len(tensor.values), tensor.dtype)
    module.zeros_like = lambda tensor: module.full_like(tensor, 0)
    module.equal = lambda left, right: left.values == right.values
    module.strided = 'strided'
    module.nn = types.SimpleNamespace(Module=Module)
    module.no_grad = lambda: _noted('no_grad')
    module.autograd = types.SimpleNamespace(set_multithreading_enabled=lambda enabled: _noted('threads', enabled))
    module._C = types.SimpleNamespace(
        _cuda_clearCublasWorkspaces=lambda: calls.append(('clear_workspaces',)),
        _set_sm_carveout_experimental=_set_carve_out,
        _get_sm_carveout_experimental=lambda: carve_out[0])
    for name in [name for name in sys.modules if name.startswith('gpushare.torch')]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, 'torch', module)
    return module


class CapturingRuntime(gpushare.Runtime):
    """Registers simulated kernels of the profile, or graphs of one node of `node_ns`, whatever their names.

    It refuses graphs with the error `refused`, unless they stay on the whole device. One that is measured runs `step`
    twice.
    """

    refused = None
    step = None
    node_ns = 0

    def register_kernel(self, name, *, capture=None, **options):
        confinable = options.get('confinable') != gpushare.Choice.NO
        if capture is not None:
            for index, sms in enumerate(PLACES if confinable else PLACES[:1]):
                capture(0x100 + index, sms)
        if self.refused is not None and confinable:
            raise self.refused
        self.options = options
        if options.get('measure_nodes') and self.step is not None:
            calls.append(('measure',))
            for _ in range(2):
                self.step()
        if self.node_ns:
            node = gpushare.abi.gpushare_graph_node(duration_ns=self.node_ns, blocks=132)
            record = gpushare.abi.init(gpushare.abi.gpushare_simulation_record, node_count=1)
            record.nodes = (gpushare.abi.gpushare_graph_node * 1)(node)
            options['simulation'] = record
        return super().register_kernel(name, **options)


def double(tensor):
    calls.append(('double', cuda.current_stream().name))
    return Tensor([2 * value for value in tensor.values])
