"""What gpushare.torch uses of PyTorch, without a GPU: tensors are lists, and every call on a stream is written down.

`install` puts the module in the place of torch and returns it. `calls` lists what happened, in order.
The simulated device captures nothing; CapturingRuntime calls the capture callback as a CUDA device does.
"""

import contextlib
import ctypes
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

    def is_contiguous(self):
        return self.strides == (1,)

    def contiguous(self):
        return self if self.is_contiguous() else self.clone()

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

    def fill_(self, value):
        return fill(self, value)

    def add_(self, value):
        launch(lambda: self.values.__setitem__(slice(None), [old + value for old in self.values]))
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
    def __init__(self, name='side', cuda_stream=0):
        self.name, self.cuda_stream = name, cuda_stream

    def wait_stream(self, other):
        calls.append(('wait_stream', self.name, other.name))

    def wait_event(self, event):
        calls.append(('wait_event', self.name))

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


class CUDAGraph:
    """A capture runs its calls, although a GPU would not, and notes those of `launch`, which run() repeats."""

    numbers = itertools.count(0xabc, 0x10)
    capturing = None

    def __init__(self, keep_graph=False):
        self.keep_graph = keep_graph
        self.raw = next(CUDAGraph.numbers)
        self.nodes, self.states = [], []

    def register_generator_state(self, generator):
        self.states.append(generator.state)

    def capture_begin(self, capture_error_mode, pool=None):
        self.pool = MemPool.by_id.get(pool)
        self.register_generator_state(default_generator)
        for state in self.states:
            state.capture_prologue()
        calls.append(('capture_begin', cuda.current_stream().name, capture_error_mode, *([pool] if pool else [])))
        CUDAGraph.capturing = self

    def capture_end(self):
        CUDAGraph.capturing = None
        for state in self.states:
            state.capturing = False
        calls.append(('capture_end',))

    def run(self):
        """As the library launches it: nobody writes the generators' tensors."""
        for node in self.nodes:
            node()

    def raw_cuda_graph(self):
        if not self.keep_graph:
            raise RuntimeError('You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with '
                               'keep_graph=true')
        return self.raw


def launch(node):
    """Runs a kernel; a capture notes it."""
    if CUDAGraph.capturing is not None:
        CUDAGraph.capturing.nodes.append(node)
    node()


class GeneratorState:
    """PyTorch's CUDAGeneratorState: the host's seed and offset, and the tensors that captured kernels read."""

    def __init__(self, seed, offset):
        self.seed, self.offset, self.capturing = seed, offset, False

    def capture_prologue(self):
        self.capturing, self.inside = True, 0
        self.seed_tensor, self.offset_tensor = Tensor([None], 'int64'), Tensor([None], 'int64')
        self.seed_tensor.fill_(self.seed)
        self.offset_tensor.fill_(0)


class Generator:
    def __init__(self, device='cuda:0', seed=0, offset=0):
        self.device, self.state = device, GeneratorState(seed, offset)

    def initial_seed(self):
        return self.state.seed

    def manual_seed(self, seed):
        self.state.seed, self.state.offset = seed, 0

    def get_offset(self):
        assert not self.state.capturing
        return self.state.offset

    def set_offset(self, offset):
        self.state.offset = offset

    def clone_state(self):
        return Generator(self.device, self.state.seed, self.state.offset)

    def graphsafe_get_state(self):
        shared = Generator(self.device)
        shared.state = self.state
        return shared

    def graphsafe_set_state(self, other):
        self.state = other.state


default_generator = Generator()


def draw(out, count, generator=None):
    """A kernel that draws `count` numbers: it appends the seed and the offset that it draws from to `out`."""
    state = (generator or default_generator).state
    if not state.capturing:
        drawn = (state.seed, state.offset)
        state.offset += count
        launch(lambda: out.append(drawn))
        return
    inside = state.inside
    state.inside += count
    seed, offset = state.seed_tensor, state.offset_tensor
    launch(lambda: out.append((seed.values[0] % 2**64, offset.values[0] + inside)))


class TorchDispatchMode:
    active = []

    def __enter__(self):
        TorchDispatchMode.active.append(self)
        return self

    def __exit__(self, *_):
        TorchDispatchMode.active.pop()


def _dispatched(function):
    """A function of the dispatcher: the innermost dispatch mode gets its calls."""
    def call(*given):
        if not TorchDispatchMode.active:
            return function(*given)
        mode = TorchDispatchMode.active.pop()
        try:
            return mode.__torch_dispatch__(call, (), given, {})
        finally:
            TorchDispatchMode.active.append(mode)
    return call


def _fill(tensor, value):
    launch(lambda: tensor.values.__setitem__(slice(None), [value] * len(tensor.values)))
    return tensor


fill = _dispatched(_fill)
class OutOfMemoryError(RuntimeError):
    pass


class MemPool:
    """A pool of the caching allocator, which takes segments of 2 MiB from the pool's allocator."""

    by_id = weakref.WeakValueDictionary()
    numbers = itertools.count(1)
    used = []  # the pools of use_mem_pool, innermost last
    SEGMENT = 2 << 20

    def __init__(self, allocator=None):
        self.allocator, self.id, self.segments = allocator, (0, next(MemPool.numbers)), []
        MemPool.by_id[self.id] = self

    def allocate(self, size):
        alloc, free = self.allocator
        size = -(-size // MemPool.SEGMENT) * MemPool.SEGMENT
        alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(alloc)
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(free)
        memory = alloc(size, 0, None)
        if not memory:
            raise OutOfMemoryError(f'CUDA out of memory. Tried to allocate {size} bytes.')
        self.segments.append((free, memory, size))

    def __del__(self):
        for free, memory, size in self.segments:
            free(memory, size, 0, None)


@contextlib.contextmanager
def _use_mem_pool(pool):
    assert CUDAGraph.capturing is None or CUDAGraph.capturing.pool is not pool, 'already recording to mempool_id'
    assert pool not in MemPool.used, 'already recording to mempool_id'
    MemPool.used.append(pool)
    try:
        with _noted('pool', pool.id):
            yield
    finally:
        MemPool.used.remove(pool)


def allocate(size):
    """Memory of a tensor of `size` bytes: from the capture's pool or that of use_mem_pool, if it has an allocator."""
    pool = CUDAGraph.capturing.pool if CUDAGraph.capturing else MemPool.used[-1] if MemPool.used else None
    calls.append(('allocate', size, pool and pool.id))
    if pool is not None and pool.allocator is not None:
        pool.allocate(size)


L2_CACHE = 1 << 20
calls = []


class _Streams(threading.local):
    """The current streams of a thread, innermost last."""

    def __init__(self):
        self.stack = [Stream('current')]


_streams = _Streams()
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
    ExternalStream=lambda stream: Stream(f'external {stream:#x}', stream),
    MemPool=MemPool,
    use_mem_pool=_use_mem_pool,
    current_stream=lambda: _streams.stack[-1],
    current_device=lambda: 0,
    init=lambda: None,
    default_generators=(default_generator,),
    is_available=lambda: True,
    get_device_properties=lambda device: types.SimpleNamespace(multi_processor_count=132, L2_cache_size=L2_CACHE),
    get_rng_state=lambda: Tensor([default_generator.state.seed, default_generator.state.offset]))


def _full_like(tensor, value, device=None, pin_memory=False):
    if device is None:
        allocate(4 * len(tensor.values))
    made = Tensor([value] * len(tensor.values), tensor.dtype, device or tensor.device)
    made.pinned = pin_memory
    return made


def install(monkeypatch):
    calls.clear()
    del _streams.stack[1:]
    default_generator.manual_seed(0)
    del TorchDispatchMode.active[:], MemPool.used[:]
    CUDAGraph.capturing = None
    carve_out[0] = None
    CUDAGraph.numbers = itertools.count(0xabc, 0x10)
    MemPool.numbers = itertools.count(1)
    module = types.ModuleType('torch')
    module.Tensor, module.cuda, module.__version__ = Tensor, cuda, 'fake'
    module.ops = types.SimpleNamespace(aten=types.SimpleNamespace(fill_=types.SimpleNamespace(Scalar=fill)))
    module.utils = types.SimpleNamespace(
        _python_dispatch=types.SimpleNamespace(TorchDispatchMode=TorchDispatchMode))
    module.empty_like = lambda tensor, **options: _full_like(tensor, float('nan'), **options)
    module.device = lambda kind, index: f'{kind}:{index}'
    module.full_like = _full_like
    module.zeros_like = lambda tensor: module.full_like(tensor, 0)
    module.equal = lambda left, right: left.values == right.values
    module.empty = lambda count, device: (allocate(4 * count), Tensor([0] * count, device=device))[1]
    module.OutOfMemoryError = OutOfMemoryError
    module.strided = 'strided'
    module.nn = types.SimpleNamespace(Module=Module)
    module.no_grad = lambda: _noted('no_grad')
    module.autograd = types.SimpleNamespace(set_multithreading_enabled=lambda enabled: _noted('threads', enabled))
    module._C = types.SimpleNamespace(
        _cuda_customAllocator=lambda alloc, free: (alloc, free),
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
