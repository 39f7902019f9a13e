"""MemoryPool: a limit that is counted natively, with a malloc of the test in the place of CUDA's."""

import ctypes
import gc
import threading

import fake_torch
import pytest
from fake_torch import Tensor, allocate, calls

import gpushare
from gpushare import _library

MIB = 1 << 20


class Cuda:
    """cudaMalloc, cudaFree and cudaGetLastError of a GPU with this much memory."""

    def __init__(self, total=1 << 40):
        self.total, self.live, self.cleared = total, {}, 0
        self.next = 0x10000

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t)
        def malloc(out, size):
            if sum(self.live.values()) + size > self.total:
                return 2
            self.next += 0x1000
            out[0] = self.next
            self.live[self.next] = size
            return 0

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        def free(memory):
            del self.live[memory]
            return 0

        @ctypes.CFUNCTYPE(ctypes.c_int)
        def last_error():
            self.cleared += 1
            return 2

        self.functions = malloc, free, last_error
        self.addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in self.functions]


@pytest.fixture
def cuda(torch, monkeypatch):
    _library.library()
    if not hasattr(_library.steps, 'pool_open'):
        pytest.skip('The extension gpushare._steps is not built: there are no headers of Python.')
    made = Cuda()
    monkeypatch.setattr(torch.memory_pool, '_cuda_runtime', lambda: made.addresses)
    return made


def test_an_allocation_beyond_the_limit_says_so_and_leaves_the_rest_usable(torch, cuda):
    pool = torch.MemoryPool(10 * MIB)
    assert pool.used_bytes == 2 * MIB, 'the pool is tried when it is made'
    with pool.use():
        allocate(6 * MIB)
    with pytest.raises(gpushare.ResourceExhaustedError, match=(
            rf'A MemoryPool of {10 * MIB} bytes, of which PyTorch has taken {8 * MIB}, has no room .* Tried to alloc'
    )), pool.use():
        allocate(3 * MIB)
    assert pool.used_bytes == 8 * MIB
    with pool.use():
        allocate(2 * MIB)
    assert sum(cuda.live.values()) == pool.used_bytes == pool.limit_bytes


def test_a_full_gpu_is_not_the_pools_fault(torch, cuda):
    pool = torch.MemoryPool(10 * MIB)
    cuda.total = 4 * MIB
    with pytest.raises(fake_torch.OutOfMemoryError), pool.use():
        allocate(3 * MIB)
    assert cuda.cleared == 1, 'PyTorch would find the error behind its next kernel'
    assert pool.used_bytes == 2 * MIB, 'what was not allocated is not counted'


def test_what_a_training_allocates_comes_from_its_pool(torch, capturing, cuda):
    pool = torch.MemoryPool(100 * MIB)
    weight, before = Tensor([1, 2]), len(calls)
    torch.Training(capturing, lambda x: allocate(MIB), inputs=Tensor([1]), state=[weight], pool=pool, name='chain1')
    found = [pool_id for name, _, pool_id in (call for call in calls[before:] if call[0] == 'allocate')]
    assert len(found) == 6, 'two slots, three runs and the capture'
    assert len(set(found[:5])) == 1
    assert found[5] not in found[:5], 'nothing else gets the memory of the graph'
    assert pool.used_bytes == 14 * MIB
    assert ('enter', 'threads', False) in calls[before:], 'a backward pass allocates on this thread'


def test_a_capture_that_does_not_fit_leaves_the_model_as_it_was(torch, capturing, cuda):
    pool, weight = torch.MemoryPool(12 * MIB), Tensor([1, 2])

    def step():
        weight.values[0] += 1
        allocate(3 * MIB if fake_torch.CUDAGraph.capturing else MIB)  # after three runs 8 MiB are taken

    training = torch.Training(capturing, step, state=[weight], pool=pool, name='chain1')
    assert (pool.used_bytes, weight.values) == (12 * MIB, [1, 2])
    with pytest.raises(gpushare.ResourceExhaustedError, match='A MemoryPool of'):
        torch.Training(capturing, step, state=[weight], pool=pool, name='decode16')
    assert weight.values == [1, 2]
    assert fake_torch.CUDAGraph.capturing is None
    training.submit()[0].wait()


def test_results_that_do_not_fit_leave_nothing_submitted(torch, capturing, cuda):
    pool = torch.MemoryPool(8 * MIB)
    work = torch.BestEffort(capturing, lambda x: Tensor([0]), Tensor([1]), pool=pool, name='chain1')
    work.submit(Tensor([1])).wait()
    launches = capturing.stats().launches
    assert pool.used_bytes == 8 * MIB
    with pytest.raises(gpushare.ResourceExhaustedError, match='A MemoryPool of'):
        work.submit(Tensor([1]))
    capturing.drain()
    assert capturing.stats().launches == launches


def test_use_may_be_nested(torch, cuda):
    pool = torch.MemoryPool(100 * MIB)
    with pool.use(), pool.use():
        allocate(MIB)
    assert pool.used_bytes == 4 * MIB


def test_threads_use_a_pool_at_once(torch, cuda):
    pool, inside = torch.MemoryPool(100 * MIB), []

    def other():
        with pool.use():
            allocate(MIB)
            inside.append('other')

    with pool.use():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        inside.append('first')
    assert inside == ['other', 'first']
    assert pool.used_bytes == 4 * MIB


def test_graphs_share_a_limit_and_no_memory(torch, capturing, cuda):
    pool, before = torch.MemoryPool(100 * MIB), len(calls)
    works = [torch.Training(capturing, lambda: allocate(MIB), pool=pool, name=name) for name in ('chain1', 'decode16')]
    begun = [call[3] for call in calls[before:] if call[0] == 'capture_begin']
    eager = {call[2] for call in calls[before:] if call[:2] == ('enter', 'pool')}
    assert len({*begun, *eager}) == 3, 'one for each graph and one for all of the eager work'
    assert pool.used_bytes == 2 * MIB + 2 * 4 * 2 * MIB
    with pytest.raises(gpushare.FailedPreconditionError, match=r'inside use\(\) of its MemoryPool'), pool.use():
        torch.Training(capturing, lambda: None, pool=pool, name='resnet50_b1')
    for work in works:
        work.close()
    del works, work
    gc.collect()
    assert pool.used_bytes == 2 * MIB + 2 * 3 * 2 * MIB, 'what the graphs had is given back'


def test_a_submit_waits_for_no_block_of_its_pool(torch, capturing, cuda):
    pool = torch.MemoryPool(100 * MIB)
    work = torch.BestEffort(capturing, lambda x: Tensor([0]), Tensor([1]), pool=pool, name='chain1')
    thread = threading.Thread(target=work.submit, args=(Tensor([1]),))
    with pool.use():
        thread.start()
        thread.join(10)
        ended = not thread.is_alive()
    thread.join()
    assert ended


def test_pools_count_for_themselves_and_are_given_back(torch, cuda):
    gc.collect()  # earlier tests' pools may be in cycles with exceptions
    pools = [torch.MemoryPool((number + 2) * MIB) for number in range(16)]
    for number, pool in enumerate(pools):
        with pool.use():
            if number > 1:
                allocate(MIB)
    assert [pool.used_bytes for pool in pools] == [2 * MIB] * 2 + [4 * MIB] * 14
    with pytest.raises(gpushare.ResourceExhaustedError, match='16 pools are open or still have memory'):
        torch.MemoryPool(8 * MIB)
    del pool, pools
    gc.collect()
    assert not cuda.live
    assert torch.MemoryPool(8 * MIB).used_bytes == 2 * MIB


def test_a_pool_that_is_dropped_has_its_memory_until_that_is_freed(torch, cuda):
    pool = torch.MemoryPool(8 * MIB)
    kept, number = pool._idle[0], pool._number
    del pool
    gc.collect()
    assert torch.MemoryPool(8 * MIB)._number != number
    del kept
    gc.collect()
    assert _library.steps.pool_state(number) == (0, 0)


def test_a_pytorch_that_goes_around_the_allocator_is_refused(torch, cuda, monkeypatch):
    monkeypatch.setattr(fake_torch.MemPool, 'allocate', lambda pool, size: None)
    with pytest.raises(gpushare.UnimplementedError, match='does not use the allocator of a pool'):
        torch.MemoryPool(8 * MIB)


def test_a_limit_must_be_a_number_of_bytes(torch, cuda, monkeypatch):
    for limit in (0, -1, 1 << 62):
        with pytest.raises(gpushare.InvalidArgumentError, match='at least 1 byte'):
            torch.MemoryPool(limit)
    with pytest.raises(gpushare.ResourceExhaustedError, match='A MemoryPool of 1000 bytes'):
        torch.MemoryPool(1000)
    monkeypatch.setattr(_library, 'steps', None)
    with pytest.raises(gpushare.UnavailableError, match=r'needs the extension gpushare\._steps'):
        torch.MemoryPool(8 * MIB)


def test_a_pool_number_that_does_not_exist_is_refused(cuda):
    for number in (-1, 16):
        with pytest.raises(ValueError, match=f'There is no pool {number}'):
            _library.steps.pool_state(number)
    with pytest.raises(TypeError, match='2 arguments are given'):
        _library.steps.pool_close(1, 2)


def test_threads_never_pass_the_limit(torch, cuda):
    number, alloc, free = _library.steps.pool_open(64, *cuda.addresses)
    alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(alloc)
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(free)
    over = []

    def work():
        for _ in range(2000):
            memory = alloc(24, 0, None)
            if _library.steps.pool_state(number)[0] > 64:
                over.append(1)
            free(memory, 24, 0, None)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _library.steps.pool_close(number)
    assert not over
    assert _library.steps.pool_state(number)[0] == 0
