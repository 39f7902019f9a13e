"""The snapshot around a warm-up, with PyTorch's own optimizers on the CPU. It is skipped where there is no PyTorch."""

import importlib

import pytest

torch = pytest.importorskip('torch')

OPTIMIZERS = {
    'Adadelta': {}, 'Adagrad': {}, 'Adam': {'amsgrad': True}, 'AdamW': {}, 'Adamax': {}, 'ASGD': {}, 'NAdam': {},
    'RAdam': {}, 'RMSprop': {'momentum': 0.9}, 'Rprop': {}, 'SGD': {'momentum': 0.9, 'nesterov': True},
}


def trained(name, warm_up_runs):
    """The parameters after four steps, which a warm-up precedes that is undone."""
    snapshot = importlib.import_module('gpushare.torch._snapshot').Snapshot
    torch.manual_seed(1)
    net, data = torch.nn.Linear(4, 3), torch.ones(5, 4)
    optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.01, **OPTIMIZERS[name])

    def step():
        optimizer.zero_grad()
        net(data).square().sum().backward()
        optimizer.step()

    if warm_up_runs:
        with snapshot([net, optimizer]) as taken:
            for _ in range(warm_up_runs):
                step()
            taken.restore()
    for _ in range(4):
        step()
    return list(net.parameters())


@pytest.mark.parametrize('name', OPTIMIZERS)
@pytest.mark.parametrize('runs', [1, 3])
def test_an_optimizer_goes_on_as_if_there_had_been_no_warm_up(name, runs):
    assert all(torch.equal(left, right) for left, right in zip(trained(name, 0), trained(name, runs), strict=True))
