"""BestEffort: batch inference with results of its own, on the simulated device."""

import asyncio
import gc

import fake_torch
import pytest
from fake_torch import Tensor, calls
from played import Played
from test_torch_feed import held

import gpushare


class Inference:
    def __init__(self, torch, runtime, monkeypatch, **options):
        def double(x):
            self.given = x
            return {'twice': Tensor([2 * value for value in x.values]), 'note': 3, 'none': Tensor([])}

        self.work = torch.BestEffort(runtime, double, Tensor([1, 2]), name='resnet50_b1', **options)
        self.played = Played(monkeypatch, {'resnet50_b1': self.run})

    def run(self):
        self.work.outputs['twice'].values[:] = [2 * value for value in self.given.values]


@pytest.fixture
def inference(torch, capturing, monkeypatch):
    made = Inference(torch, capturing, monkeypatch)
    with made.work:
        yield made


def test_each_run_has_results_of_its_own(inference, capturing):
    with held(capturing):
        runs = [inference.work.submit(Tensor([number, 5], device='cpu')) for number in range(6)]
        assert not runs[0].done()
    results = [run.wait() for run in runs]
    assert all(run.done() for run in runs)
    inference.played.play()
    assert [result['twice'].values for result in results] == [[2 * number, 10] for number in range(6)]
    assert [(result['note'], result['none'].values) for result in results] == [(3, [])] * 6
    assert all(result['twice'].is_cuda for result in results)


def test_results_may_be_copied_to_the_cpu(torch, capturing, monkeypatch):
    inference = Inference(torch, capturing, monkeypatch, to_cpu=True)
    run = inference.work.submit(Tensor([7, 8]))
    assert inference.played.copies()[-1][0] == 'DEVICE_TO_HOST'
    assert not inference.played.copies()[-1][3], 'the memory is pinned'
    inference.played.play()
    assert (run.wait()['twice'].values, run.wait()['twice'].is_cuda) == ([14, 16], False)


def test_results_are_awaited_and_have_a_future(inference):
    async def ask():
        return await inference.work.submit(Tensor([3, 4]))

    result = asyncio.run(ask())
    run = inference.work.submit(Tensor([3, 4]))
    assert run.ticket.future().result(10).verdict is gpushare.Verdict.OK
    inference.played.play()
    assert result['twice'].values == [6, 8]


def test_a_run_that_fails_has_no_results(inference, capturing):
    with held(capturing):
        run = inference.work.submit(Tensor([3, 4]))
        assert next(ticket for ticket, kernel, *_ in inference.played.tasks if kernel).cancel()
    with pytest.raises(gpushare.TaskError):
        run.wait()


def test_the_memory_of_results_is_kept_until_they_are_copied(inference, capturing):
    with held(capturing):
        inference.work.submit(Tensor([3, 4], device='cpu'))
        target = inference.played.tasks[-1][-1].pointer
        inference.played.tasks.clear()
        gc.collect()
        assert target in Tensor.at
    inference.work.wait()
    inference.work.submit(Tensor([3, 4]))
    inference.work.wait()
    inference.played.tasks.clear()
    gc.collect()
    assert target not in Tensor.at


def test_a_result_is_written_behind_what_used_its_memory(inference):
    before = len(calls)
    with fake_torch.cuda.stream(fake_torch.Stream('mine')):
        inference.work.submit(Tensor([3, 4]))
    waits = [call for call in calls[before:] if call[0] in ('record', 'event')]
    assert waits == [('record', 'mine'), ('event',)] * 2, 'one for the input and one for the result'


def test_it_runs_without_gradients_and_is_named_for_what_it_is(torch, capturing):
    before = len(calls)
    with pytest.raises(gpushare.InvalidArgumentError, match="A generator of BestEffort 'besteffort-1'"):
        torch.BestEffort(capturing, lambda x: x, Tensor([1]), generators=[fake_torch.Generator('cpu')])
    torch.BestEffort(capturing, lambda x: x, Tensor([1]), name='resnet50_b1')
    assert ('enter', 'no_grad') in calls[before:]
    spread, host = Tensor([1]), Tensor([1], device='cpu')
    spread.strides = (2,)
    work = torch.BestEffort(capturing, lambda x: spread, Tensor([1]), name='decode16')
    assert work.outputs is not spread, 'a result is copied as bytes'
    with pytest.raises(gpushare.InvalidArgumentError, match=r'A result of shape .* is on the CPU'):
        torch.BestEffort(capturing, lambda x: host, Tensor([1]))
    with pytest.raises(ValueError, match='batches is 0'):
        torch.BestEffort(capturing, lambda x: x, Tensor([1]), batches=0)
