"""The dispatch modes of gpushare.torch with PyTorch's own dispatcher, on the CPU. Skipped where there is no PyTorch."""

import importlib

import pytest

torch = pytest.importorskip('torch')


def test_fills_are_seen_in_order_with_their_tensors():
    fills = importlib.import_module('gpushare.torch._graph_random')._fills
    seed, offset, filled = torch.empty(1, dtype=torch.int64), torch.empty(1, dtype=torch.int64), []
    with fills(filled):
        seed.fill_(2**63 - 5)
        torch.ones(3).mul_(2)
        offset.fill_(0)
    seed.fill_(7)
    assert [(tensor.data_ptr(), value) for tensor, value in filled] == [
        (seed.data_ptr(), 2**63 - 5), (offset.data_ptr(), 0)]
    assert (seed.item(), offset.item()) == (7, 0)


def test_a_seed_of_64_bits_fits_into_the_tensor():
    signed = importlib.import_module('gpushare.torch._graph_random')._signed
    tensor = torch.empty(1, dtype=torch.int64)
    for seed in (0, 5, 2**63 - 1, 2**63, 2**64 - 1):
        assert tensor.fill_(signed(seed)).item() % 2**64 == seed


def test_the_operations_of_a_training_step_are_seen_with_those_of_its_backward_pass():
    eager = importlib.import_module('gpushare.torch.eager')
    net, seen = torch.nn.Linear(4, 3), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = [parameter.clone() for parameter in net.parameters()]
    is_on_gpu, eager._is_on_gpu = eager._is_on_gpu, lambda given, named: True
    try:
        with eager._dispatch_mode(lambda: seen.append(1)):
            net(torch.ones(2, 4)).sum().backward()
            forward_and_backward = len(seen)
            optimizer.step()
    finally:
        eager._is_on_gpu = is_on_gpu
    assert forward_and_backward > 5
    assert len(seen) > forward_and_backward
    assert not any(torch.equal(left, right) for left, right in zip(before, net.parameters(), strict=True))
    assert not eager._is_on_gpu((torch.ones(1), [torch.ones(1)]), {'device': torch.device('cpu')})
    assert eager._is_on_gpu(([4],), {'device': torch.device('cuda', 0)})
