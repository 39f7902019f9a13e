"""Random numbers of a captured step: those of the same steps outside a graph.

The fake PyTorch has generators with the states and tensors of PyTorch's, and its graphs run as the library runs them:
without CUDAGraph.replay().
"""

import fake_torch
import pytest
from fake_torch import Generator, default_generator, draw

import gpushare


@pytest.fixture
def trained(torch, capturing):
    """Makes a training of a step and runs its graph: returns the training and what the runs drew."""
    def make(step, runs, **options):
        out = []
        capturing.step = lambda: training_graph[0].run() if training_graph else None  # the registration measures
        training_graph = []
        monkey = fake_torch.CUDAGraph.raw_cuda_graph
        fake_torch.CUDAGraph.raw_cuda_graph = lambda graph: (training_graph.append(graph), 0xabc)[1]
        try:
            training = torch.Training(capturing, lambda: step(out), name='chain1', **options)
        finally:
            fake_torch.CUDAGraph.raw_cuda_graph = monkey
        out.clear()
        for _ in range(runs):
            training_graph[0].run()
        return training, out
    return make


def test_each_run_draws_what_the_eager_loop_draws(trained):
    def step(out):
        draw(out, 4)
        draw(out, 12)

    default_generator.manual_seed(2**64 - 5)
    default_generator.set_offset(8)
    eager = []
    _, drawn = trained(step, 5)
    assert (default_generator.initial_seed(), default_generator.get_offset()) == (2**64 - 5, 8), 'it stays'
    for _ in range(5):
        step(eager)
    assert drawn == eager
    assert len(set(drawn)) == 10


def test_each_generator_has_its_own_sequence(trained):
    mine = Generator(seed=7, offset=16)  # of a run: 4
    idle = Generator(seed=7)

    def step(out):
        draw(out, 4, mine)
        draw(out, 8)

    _, drawn = trained(step, 3, generators=[idle, mine, default_generator])
    eager = []
    for _ in range(3):
        step(eager)
    assert drawn == eager
    assert idle.get_offset() == 0


def test_generators_go_on_behind_the_steps_when_they_are_asked_to(trained):
    default_generator.manual_seed(3)
    training, drawn = trained(lambda out: draw(out, 4), 6)
    training.sync_generators()
    assert default_generator.get_offset() == 24
    draw(drawn, 4)
    assert drawn == [(3, 4 * number) for number in range(7)]


def test_a_step_that_draws_nothing_has_no_further_node(trained):
    trained(lambda out: None, 0)
    assert ('synchronize', 'side') in fake_torch.calls
    end = fake_torch.calls.index(('capture_end',))
    assert fake_torch.calls[end - 1][0] == 'capture_begin'


def test_a_registration_that_fails_gives_the_generators_back(torch, capturing):
    capturing.refused = gpushare.InvalidArgumentError(gpushare.Status.INVALID_ARGUMENT, 'A reason.')
    state = default_generator.state
    with pytest.raises(gpushare.InvalidArgumentError, match='A reason'):
        torch.Training(capturing, lambda: draw([], 4), name='chain1')
    assert default_generator.state is state
    assert state.offset == 0


def test_a_step_that_draws_a_different_count_each_time_is_refused(torch, capturing):
    counts = iter(range(0, 100, 4))
    with pytest.raises(gpushare.UnimplementedError, match=r'draws a different count .*\(\[0, 4, 8\]\)'):
        torch.Training(capturing, lambda: draw([], next(counts)), name='chain1')
    assert default_generator.get_offset() == 0


def test_a_first_run_may_draw_more(torch, capturing):
    counts = iter([8, 4, 4, 4])
    torch.Training(capturing, lambda: draw([], next(counts)), name='chain1')


def test_a_pytorch_that_hides_the_offset_is_refused_and_its_capture_is_ended(
        torch, capturing, monkeypatch):
    monkeypatch.setattr(fake_torch, 'fill', fake_torch._fill)
    with pytest.raises(gpushare.UnimplementedError, match=r'this version of PyTorch \(fake\) does not show'):
        torch.Training(capturing, lambda: draw([], 4), name='chain1')
    assert fake_torch.CUDAGraph.capturing is None
    torch.Training(capturing, lambda: None, name='chain1')


def test_generators_elsewhere_are_refused(torch, capturing):
    with pytest.raises(gpushare.InvalidArgumentError, match=r"A generator of Training 'chain1' is on cpu"):
        torch.Training(capturing, lambda: None, name='chain1', generators=[Generator('cpu')])


def test_a_generator_of_the_current_device_needs_no_number(torch, capturing):
    torch.Training(capturing, lambda: None, name='chain1', generators=[Generator('cuda')])
