"""start(), stop(), feed() and on_step() of a Training, on the simulated device."""

import contextlib
import threading
import time

import pytest

import gpushare


@pytest.fixture
def training(torch, capturing):
    with torch.Training(capturing, lambda: None, name='chain1') as made:
        yield made


@contextlib.contextmanager
def held(runtime):
    """Nothing runs inside. A test that fails there still ends: the close of its runtime waits for its steps."""
    runtime.quiesce()
    try:
        yield
    finally:
        runtime.resume()


def until(condition, limit_s=10):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, 'it never happened'
        time.sleep(0.001)


class Outstanding:
    """Counts the steps that are submitted and not complete, at each submit."""

    def __init__(self, training, monkeypatch):
        self.most, self.submitted = 0, []
        submit = training._chain.submit

        def counted(*args, **options):
            self.submitted.append(submit(*args, **options))
            self.most = max(self.most, sum(not ticket.done() for ticket in self.submitted[-20:]))
            return self.submitted[-1]

        monkeypatch.setattr(training._chain, 'submit', counted)


def test_started_steps_run_until_they_are_stopped(training, capturing, monkeypatch):
    counted = Outstanding(training, monkeypatch)
    with held(capturing):
        training.start(outstanding=4)
        until(lambda: len(counted.submitted) == 4)
        time.sleep(0.05)
        assert len(counted.submitted) == 4, 'no more than four steps are ahead of the GPU'
    until(lambda: training.steps_done >= 50)
    training.stop()
    assert counted.most <= 4
    assert training.steps_done == len(counted.submitted), 'stop() waits for what was submitted'
    assert all(ticket.done() for ticket in counted.submitted)
    training.stop()
    training.start()
    training.stop()


def test_a_second_start_is_refused_until_the_first_is_stopped(training):
    training.start()
    with pytest.raises(gpushare.FailedPreconditionError, match="'chain1' is fed already"):
        training.start()
    training.stop()
    with pytest.raises(ValueError, match='outstanding is 0'):
        training.start(outstanding=0)
    training.start(outstanding=1)
    training.stop()


def test_callbacks_hear_of_every_hundredth_step(training):
    every, third = [], []
    training.on_step(every.append)
    training.on_step(third.append, every=3)
    training.start(outstanding=2)
    until(lambda: training.steps_done >= 201)
    training.stop()
    assert every == [100 * number for number in range(1, training.steps_done // 100 + 1)]
    assert third == [3 * number for number in range(1, training.steps_done // 3 + 1)]
    with pytest.raises(ValueError, match='every is 0'):
        training.on_step(print, every=0)


def test_a_callback_that_raises_is_reported_by_wait_and_once_by_stop(training, monkeypatch):
    counted = Outstanding(training, monkeypatch)

    def fail(steps):
        raise KeyError('mine')

    training.on_step(fail, every=5)
    training.start()
    until(lambda: training._feeding._error is not None)
    for _ in range(2):
        with pytest.raises(KeyError, match='mine'):
            training.wait()
    with pytest.raises(KeyError, match='mine'):
        training.start()
    with pytest.raises(KeyError, match='mine'):
        training.stop()
    training.stop()
    training.wait()
    assert 5 < training.steps_done == len(counted.submitted), 'the steps behind it ran'


def test_a_callback_may_stop_and_may_not_close(training):
    said = []

    def end(steps):
        training.stop()
        try:
            training.close()
        except gpushare.FailedPreconditionError as error:
            said.append(str(error))

    training.on_step(end, every=10)
    training.start(outstanding=1)
    until(lambda: training._feeding._ended.is_set())
    training.stop()
    assert training.steps_done == 10
    assert "A callback of on_step cannot close 'chain1'" in said[0]


def test_a_step_that_fails_is_reported(training, capturing, monkeypatch):
    counted = Outstanding(training, monkeypatch)
    with held(capturing):
        training.start(outstanding=4)
        until(lambda: len(counted.submitted) == 4)
        assert counted.submitted[1].cancel()
    until(lambda: training._feeding._error is not None)
    with pytest.raises(gpushare.TaskError):
        training.stop()
    assert [ticket.record().verdict for ticket in counted.submitted[:2]] == [
        gpushare.Verdict.OK, gpushare.Verdict.CANCELLED]
    assert training.steps_done == 1
    training.start()
    until(lambda: training.steps_done > 5)
    training.stop()


def test_a_full_app_is_waited_for(torch, capturing):
    training = torch.Training(capturing, lambda: None, name='chain1', tasks_max=4)
    training.start(outstanding=16)
    until(lambda: training.steps_done >= 30)
    training.stop()


def test_a_stop_has_a_timeout(training, capturing):
    with held(capturing):
        training.start()
        with pytest.raises(gpushare.DeadlineExceededError, match=r"'chain1' are not complete after 0\.01 s"):
            training.stop(timeout_s=0.01)
    training.stop()


def test_a_close_ends_the_thread(torch, capturing):
    with torch.Training(capturing, lambda: None, name='chain1') as training:
        training.start()
        until(lambda: training.steps_done > 5)
    assert not [thread for thread in threading.enumerate() if thread.name == 'gpushare-chain1']
    assert training.app.closed


def test_the_end_of_the_runtime_is_no_error(torch, capturing):
    training = torch.Training(capturing, lambda: None, name='chain1')
    training.start()
    until(lambda: training.steps_done > 5)
    capturing.close()
    training.stop()
    training.close()


def test_the_thread_uses_the_stream_that_start_was_called_on(torch, capturing, monkeypatch):
    import fake_torch
    training, seen = torch.Training(capturing, lambda: None, name='chain1'), []
    training.on_step(lambda _: seen.append(fake_torch.cuda.current_stream().name), every=1)
    with fake_torch.cuda.stream(fake_torch.Stream('mine')):
        training.start()
    until(lambda: seen)
    training.stop()
    assert set(seen) == {'mine'}


def test_an_interpreter_ends_with_a_training_that_was_never_stopped(run_python):
    run_python('''
        import importlib, sys
        sys.path.insert(0, 'tests/python')
        import fake_torch, gpushare, pytest
        with pytest.MonkeyPatch.context() as patch:
            fake_torch.install(patch)
            from fake_torch import CapturingRuntime
            import gpushare.torch
            runtime = CapturingRuntime(device='sim')
            training = gpushare.torch.Training(runtime, lambda: None, name='chain1')
            training.start()
            while training.steps_done < 5:
                pass
    '''.replace("'tests/python'", repr(str(__import__('pathlib').Path(__file__).parent))))
