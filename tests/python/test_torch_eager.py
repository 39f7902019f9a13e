"""eager_be: operations of an unmodified loop, held between launches, on the simulated device."""

import threading
import time
import types

import fake_torch
import pytest
from fake_torch import Tensor, calls
from test_torch_feed import held, until

import gpushare
from gpushare.app import Queue, Region


@pytest.fixture
def regions(monkeypatch):
    """The bounds of the regions that begin; their stream is as on a GPU."""
    begun, begin = [], Queue.begin_region

    def noted(queue, bound_ns):
        region = begin(queue, bound_ns)
        begun.append(bound_ns)
        region.stream = 0x77
        return region

    monkeypatch.setattr(Queue, 'begin_region', noted)
    return begun


def test_operations_run_in_regions_on_a_stream_of_their_own(torch, capturing, regions):
    tensor, before = Tensor([1, 2]), len(calls)
    with torch.eager_be(capturing, name='loop') as gate:
        assert fake_torch.cuda.current_stream().name == 'side'
        for number in range(50):
            tensor.fill_(number)
    assert tensor.values == [49, 49]
    assert fake_torch.cuda.current_stream().name == 'current'
    assert gate.operations == 50
    assert gate.regions == len(regions) > 1
    assert set(regions) == {100_000}, 'two of them are outstanding'
    assert calls[before:before + 1] == [('wait_stream', 'side', 'current')]
    assert calls.count(('wait_event', 'external 0x77')) == gate.regions, 'each ends behind what was launched in it'
    assert calls[-1] == ('wait_stream', 'current', 'side')
    assert capturing.stats().tasks_pending == 0


def test_operations_wait_while_nothing_may_run(torch, capturing):
    tensor, said = Tensor([0]), []

    def loop():
        with torch.eager_be(capturing) as gate:
            said.append(gate)
            for number in range(1, 20):
                tensor.fill_(number)

    thread = threading.Thread(target=loop)
    with held(capturing):
        thread.start()
        until(lambda: said and said[0].refusals > 6)
        assert tensor.values == [0]
    thread.join(10)
    assert tensor.values == [19]


def test_an_operation_without_the_gpu_is_not_held(torch, capturing):
    host = Tensor([1], device='cpu')
    with torch.eager_be(capturing) as gate, held(capturing):
        host.fill_(3)
    assert host.values == [3]
    assert gate.operations == gate.regions == 0


def test_tensors_in_lists_and_factories_count(torch):
    seen = torch.eager._is_on_gpu
    gpu, host = Tensor([1]), Tensor([1], device='cpu')
    assert seen((host, gpu), {})
    assert seen(([gpu],), {})
    assert seen(((4,),), {'device': 'cuda:0'})
    assert not seen((host, [host], []), {'device': 'cpu'})


def test_a_bound_that_does_not_fit_is_tried_shorter(torch, capturing, regions, monkeypatch):
    begin = Queue.begin_region

    def tight(queue, bound_ns):
        if bound_ns > 10_000:
            raise gpushare.UnavailableError(14, 'does not fit now')
        return begin(queue, bound_ns)

    monkeypatch.setattr(Queue, 'begin_region', tight)
    with torch.eager_be(capturing) as gate:
        Tensor([1]).fill_(2)
    assert regions == [6250]
    assert gate.refusals % 3 == 2, 'the longer ones, and all of them until the first plan'


def test_a_region_has_as_many_operations_as_fit_by_what_earlier_ones_took(torch, capturing, monkeypatch):
    tensor = Tensor([1])
    record = types.SimpleNamespace(start_ns=5, end_ns=10**9 + 5)
    monkeypatch.setattr(gpushare.Ticket, 'record', lambda _: record)
    with torch.eager_be(capturing, outstanding_ns=2 * 10**9) as gate:
        for number in range(1, 200):
            tensor.fill_(number)
        assert gate._operation_ns == pytest.approx(2.5 * 10**8), '4 operations take a second, as was expected'
        assert gate.regions == 50
        record.end_ns = 4 * 10**8 + 5
        for number in range(400):
            tensor.fill_(number)
        assert gate._lanes[1].operations > 5, 'they took less: more of them fit'


def test_a_region_ends_although_its_operations_were_not_launched(torch, capturing):
    tensor = Tensor([1])
    with torch.eager_be(capturing, outstanding_ns=20_000) as gate:
        tensor.fill_(1)
        time.sleep(0.001)
        tensor.fill_(1)
        assert gate.regions == 2


def test_the_end_of_a_region_is_tried_again(torch, capturing, monkeypatch):
    end, tries = Region.end, []

    def full(region):
        tries.append(1)
        if len(tries) == 1:
            raise gpushare.ResourceExhaustedError(8, 'too many launches')
        return end(region)

    monkeypatch.setattr(Region, 'end', full)
    with torch.eager_be(capturing):
        Tensor([1]).fill_(2)
    assert len(tries) >= 2


def test_an_exception_of_the_loop_ends_its_regions(torch, capturing):
    with pytest.raises(KeyError, match='mine'), torch.eager_be(capturing, name='loop'):
        Tensor([1]).fill_(2)
        raise KeyError('mine')
    assert not fake_torch.TorchDispatchMode.active
    capturing.quiesce(timeout_s=1)
    capturing.resume()
    with torch.eager_be(capturing, name='loop'):
        Tensor([1]).fill_(2)
    with pytest.raises(ValueError, match='outstanding_ns is 1'), torch.eager_be(capturing, outstanding_ns=1):
        pass
