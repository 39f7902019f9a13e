"""Batches of a Training: copies that the library orders, on the simulated device."""

import gc
import threading
import weakref

import fake_torch
import pytest
from fake_torch import Tensor, calls
from played import Played
from test_torch_feed import held

import gpushare


class Jobs:
    """A training whose step notes the batch that it reads."""

    def __init__(self, torch, runtime, monkeypatch, **options):
        self.seen, self.live = [], False

        def step(x, y):
            self.given = x, y
            if self.live:
                self.seen.append((list(x.values), list(y.values)))

        self.training = torch.Training(runtime, step, inputs=(Tensor([0, 0]), Tensor([0])), name='chain1', **options)
        self.live = True
        self.played = Played(monkeypatch, {'chain1': lambda: step(*self.given)})


@pytest.fixture
def jobs(torch, capturing, monkeypatch):
    made = Jobs(torch, capturing, monkeypatch)
    with made.training:
        yield made


def batch(number, device='cpu', pinned=False):
    given = Tensor([number, number + 0.5], device=device), Tensor([-number], device=device)
    for tensor in given:
        tensor.pinned = pinned
    return given


def expected(numbers):
    return [([number, number + 0.5], [-number]) for number in numbers]


@pytest.mark.parametrize('kind', ['pinned', 'pageable', 'GPU', 'mixed'])
def test_each_of_the_steps_that_are_queued_ahead_reads_its_batch(jobs, capturing, kind):
    with held(capturing):
        for number in range(1, 8):
            on_gpu = kind == 'GPU' or (kind == 'mixed' and number % 3 == 0)
            given = batch(number, 'cuda:0' if on_gpu else 'cpu', kind == 'pinned')
            ticket, = jobs.training.submit(batch=given)
    ticket.wait()
    jobs.played.play()
    assert jobs.seen == expected(range(1, 8))


def test_slots_are_taken_in_turn_and_gpu_batches_take_none(jobs):
    for number in range(1, 4):
        jobs.training.submit(batch=batch(number, pinned=True))
    jobs.training.submit(batch=batch(4, 'cuda:0'))
    copies = jobs.played.copies()
    assert [(direction, pageable) for direction, _, _, pageable in copies] == [
        ('HOST_TO_DEVICE', False), ('HOST_TO_DEVICE', False), ('PEER', False), ('PEER', False)] * 3 + [
        ('PEER', False), ('PEER', False)]
    slots = [copies[number][2] for number in (0, 4, 8)]
    assert slots[0] is slots[2] is not slots[1]
    assert copies[-2][2] is jobs.given[0], 'a batch on the GPU is copied once'
    jobs.training.submit(batch=batch(5))
    assert jobs.played.copies()[-4][3], 'memory that is not pinned is said to be pageable'


def test_a_batch_serves_several_steps_and_stays_for_later_ones(jobs):
    jobs.training.submit(2, batch=batch(3))
    jobs.training.submit()[0].wait()
    jobs.played.play()
    assert jobs.seen == expected([3, 3, 3])


def test_copies_start_behind_the_work_of_the_current_stream(jobs):
    before = len(calls)
    with fake_torch.cuda.stream(fake_torch.Stream('mine')):
        jobs.training.submit(batch=batch(3))
    assert [call for call in calls[before:] if call[0] == 'record'] == [('record', 'mine')]
    assert ('event',) in calls[before:]


def test_a_batch_of_another_shape_is_refused_before_a_copy(jobs):
    with pytest.raises(gpushare.InvalidArgumentError, match=r'Tensor 0 of the batch is \(3,\) of float32'):
        jobs.training.submit(batch=(Tensor([1, 2, 3]), Tensor([1])))
    with pytest.raises(gpushare.InvalidArgumentError, match='has a tuple of 1, and the captured one has 2'):
        jobs.training.submit(batch=Tensor([1, 2]))
    assert not jobs.played.tasks


def test_a_batch_that_is_laid_out_otherwise_is_laid_out_first(jobs):
    given = batch(3)
    given[0].strides = (7,)
    jobs.training.submit(batch=given)[0].wait()
    assert jobs.played.copies()[0][1] is not given[0]
    assert jobs.played.copies()[1][1] is given[1]
    jobs.played.play()
    assert jobs.seen == expected([3])


def test_a_training_without_inputs_takes_no_batch(torch, capturing):
    training = torch.Training(capturing, lambda: None, name='chain1')
    with pytest.raises(gpushare.FailedPreconditionError, match='made without inputs='):
        training.submit(batch=batch(1))
    with pytest.raises(ValueError, match='batches is 0'):
        torch.Training(capturing, lambda: None, inputs=Tensor([1]), batches=0)


def test_a_batch_is_kept_until_it_is_copied_and_no_longer(jobs, capturing):
    with held(capturing):
        for device in ('cpu', 'cuda:0'):
            given = batch(1, device)
            alive = [weakref.ref(tensor) for tensor in given]
            jobs.training.submit(batch=given)
            jobs.played.tasks.clear()
            del given
            gc.collect()
            assert all(reference() for reference in alive)
    jobs.training.wait()
    jobs.training.submit(batch=batch(2))
    jobs.training.wait()
    assert not any(reference() for reference in alive)


def test_a_copy_that_fails_fails_its_step_and_the_next_batch_is_right(jobs, capturing):
    with held(capturing):
        step, = jobs.training.submit(batch=batch(1))
        following, = jobs.training.submit(batch=batch(2))
        assert jobs.played.tasks[0][0].cancel()
    for ticket in (step, following):
        with pytest.raises(gpushare.TaskError):
            ticket.wait()
    jobs.played.play()
    for number in range(3, 7):
        jobs.training.submit(batch=batch(number))
    jobs.training.wait()
    jobs.played.play()
    assert jobs.seen == expected(range(3, 7))


@pytest.mark.parametrize('part', [0, 1, 2, 3, 4])
def test_a_part_that_has_failed_when_the_next_is_submitted_fails_it(jobs, capturing, monkeypatch, part):
    """Two copies to the slot, two from it, and the step."""
    submit, parts = gpushare.Queue.submit, []

    def failing(queue, *given, **options):
        ticket = submit(queue, *given, **options)
        parts.append(ticket)
        if len(parts) - 1 == part:
            assert ticket.cancel()
            ticket.wait_complete()
        return ticket

    monkeypatch.setattr(gpushare.Queue, 'submit', failing)
    with held(capturing):
        steps = jobs.training.submit(2, batch=batch(1))
    assert len(parts) == 6
    for step in steps:
        with pytest.raises(gpushare.TaskError):
            step.wait()
    jobs.training.submit(batch=batch(2))[0].wait()


def test_a_loader_feeds_it(jobs):
    def loader():
        for number in range(20):
            yield list(batch(number))

    assert jobs.training.feed(loader(), outstanding=3) == 20
    jobs.played.play()
    assert jobs.seen == expected(range(20))
    assert jobs.training.steps_done == 20
    jobs.training.start(batches=loader())
    jobs.training._feeding._ended.wait(10)
    jobs.training.stop()
    jobs.played.play()
    assert jobs.seen == expected(list(range(20)) * 2)


def test_an_exception_of_the_loader_is_raised_when_its_steps_are_done(jobs):
    def loader():
        yield batch(1)
        yield batch(2)
        raise KeyError('mine')

    with pytest.raises(KeyError, match='mine'):
        jobs.training.feed(loader())
    assert jobs.training.steps_done == 2
    jobs.training.feed([batch(3)])


def test_a_name_is_free_when_its_training_is_closed(torch, capturing):
    for _ in range(2):
        with torch.Training(capturing, lambda x: None, inputs=Tensor([1]), name='chain1') as training:
            training.submit(batch=Tensor([2], device='cpu'))
        with torch.BestEffort(capturing, lambda x: x, Tensor([1]), name='decode16') as work:
            results = work.submit(Tensor([2]))
        del training, work, results


def test_a_nest_is_a_batch(torch, capturing, monkeypatch):
    seen = []
    training = torch.Training(capturing, seen.append, inputs={'x': [Tensor([1])], 'scale': 2}, name='chain1')
    played = Played(monkeypatch, {'chain1': lambda: None})
    training.submit(batch={'x': [Tensor([5], device='cpu')], 'scale': 2})
    played.play()
    assert seen[-1]['x'][0].values == [5]


def test_a_close_waits_for_the_copies_of_a_batch_that_was_refused(torch, capturing, monkeypatch):
    training = torch.Training(capturing, lambda *_: None, inputs=(Tensor([1]), Tensor([1])), name='chain1', tasks_max=2)
    seen, stats, close = [], training.app.stats, training.app.close
    capturing.quiesce()
    with pytest.raises(gpushare.ResourceExhaustedError):
        training.submit(batch=(Tensor([1], device='cpu'), Tensor([1], device='cpu')))
    assert stats().queue_depth == 2
    threading.Timer(0.05, capturing.resume).start()
    with monkeypatch.context() as patch:
        patch.setattr(training.app, 'close', lambda: (seen.append(stats().queue_depth), close()))
        training.close()
    assert seen == [0]
    training.close()


def test_a_value_is_written_between_the_steps_before_and_behind(torch, capturing, monkeypatch):
    rate, seen = Tensor([0.5]), []

    def step():
        seen.append(rate.values[0])

    training = torch.Training(capturing, step, name='chain1')
    seen.clear()
    played = Played(monkeypatch, {'chain1': step})
    with held(capturing):
        training.submit(2)
        training.write(rate, 0.25)
        training.submit()
        training.write(rate, Tensor([0.125], device='cpu'))
        training.submit(2)
    training.wait()
    assert [pageable for *_, pageable in played.copies()] == [False, True]
    played.play()
    assert seen == [0.5, 0.5, 0.25, 0.125, 0.125]
    host, spread = Tensor([1], device='cpu'), Tensor([1])
    spread.strides = (2,)
    for tensor in (host, spread):
        with pytest.raises(gpushare.InvalidArgumentError, match='is not contiguous on the GPU'):
            training.write(tensor, 1)
    with pytest.raises(gpushare.InvalidArgumentError, match=r'Tensor 0 of the value is \(2,\)'):
        training.write(rate, Tensor([1, 2]))
