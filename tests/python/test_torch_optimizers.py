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


def scaled(warm_up_runs):
    """The parameters and the scale after four steps with a GradScaler, whose scale grows every second step."""
    snapshot = importlib.import_module('gpushare.torch._snapshot').Snapshot
    torch.manual_seed(1)
    net, data = torch.nn.Linear(4, 3), torch.ones(5, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
    scaler = torch.amp.GradScaler('cpu', init_scale=8.0, growth_interval=2)

    def step():
        optimizer.zero_grad()
        scaler.scale(net(data).square().sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    if warm_up_runs:
        with snapshot([net, optimizer, scaler]) as taken:
            for _ in range(warm_up_runs):
                step()
            taken.restore()
    for _ in range(4):
        step()
    return [*net.parameters(), scaler._scale, scaler._growth_tracker]


@pytest.mark.parametrize('runs', [1, 3])
def test_a_gradient_scaler_goes_on_as_if_there_had_been_no_warm_up(runs):
    assert all(torch.equal(left, right) for left, right in zip(scaled(0), scaled(runs), strict=True))


def test_a_learning_rate_that_is_a_tensor_is_part_of_the_state():
    snapshot = importlib.import_module('gpushare.torch._snapshot').Snapshot
    rate = torch.tensor(0.01)
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=rate)
    with snapshot([optimizer]) as taken:
        rate.fill_(3)
        taken.restore()
    assert rate == torch.tensor(0.01)
