"""BE training: a training step with autograd and optimizer as a CUDA graph that runs when LC work leaves room."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._captured_work import CapturedWork
from gpushare.torch._feeding import Feeding
from gpushare.torch._tensors import recorded_event

_numbers = itertools.count(1)


class Training(CapturedWork):
    """A training step as BE work.

    step: a function that runs zero_grad(), forward, backward() and optimizer.step() on tensors that keep their
    addresses. It must not wait for the GPU, draw random numbers on it or change shapes; Adam needs capturable=True.
    state: the modules and optimizers (anything with a state_dict) and tensors that the step changes. The registration
    runs steps to warm up and to measure, and then restores the state. Without it these steps stay part of the training.
    name: of the app and its kernel; a profile knows the kernel by it. Default: 'training-1' and so on.
    measure: the registration executes the step, twice as a whole and for up to a second in places. The durations of its
    kernels decide where it is cut into segments, and its speed on part of the SMs becomes known.
    kernel_options are those of Runtime.register_kernel, such as segment_ns; app_options those of Runtime.create_app.

    The step is captured once, by PyTorch, in a memory pool of its own; the library makes a copy of the graph for
    each place. So a step that moves between places gives the same bits. What the step returns is in `outputs`,
    which each step overwrites.

    Threads: any. close() waits for the submitted steps; the runtime's close ends what is left.
    """

    def __init__(self, runtime: Runtime, step: Callable[[], Any], *, state: Sequence[Any] = (), name: str | None = None,
                 warmup_runs: int = 3, measure: bool = True, kernel_options: dict[str, Any] | None = None,
                 **app_options: Any) -> None:
        super().__init__(runtime, step, name or f'training-{next(_numbers)}', state=state, warmup_runs=warmup_runs,
                         measure=measure, kernel_options=kernel_options, app_options=app_options)
        self._feeding = Feeding(runtime, lambda _: self.submit()[0], self.name)

    def submit(self, n: int = 1) -> list[Ticket]:
        """Submits n steps, which run one after another. Returns their tickets. A step that fails also
        fails the submitted steps behind it.

        The first starts behind the work that is on the current stream now, such as the copy of a batch. When
        the app is full (tasks_max), ResourceExhaustedError is raised, and the steps before it stay submitted.
        """
        if n < 1:
            raise ValueError(f'n is {n}, and it must be at least 1.')
        with self._lock:
            event = recorded_event()
            return [self._chain.submit(self._kernel, event=event if number == 0 else None) for number in range(n)]

    def start(self, outstanding: int = 4) -> None:
        """Submits steps on a thread of its own until stop() or close(), at most `outstanding` ahead of the GPU.

        The first step starts behind the work that is on the current stream now. A step that fails, and an exception of
        a callback, end the thread; wait() and stop() raise it.
        """
        self._feeding.start(None, outstanding)

    def stop(self, timeout_s: float | None = None) -> None:
        """Ends start(), or a feed() of another thread, and waits until the submitted steps are complete.

        Raises what ended the thread of start(), once. Raises DeadlineExceededError after timeout_s seconds; the steps
        go on. In a callback of on_step it returns at once.
        """
        self._feeding.stop(timeout_s)

    @property
    def steps_done(self) -> int:
        """The number of steps of start() and feed() that ended well. Steps of submit() are not in it."""
        return self._feeding.steps_done

    def on_step(self, callback: Callable[[int], None], every: int = 100) -> None:
        """Calls callback(steps_done) each time that start() and feed() have done `every` further steps.

        It runs on the thread that feeds. Later steps run meanwhile, at most `outstanding` of them: what it reads of
        the step's tensors may be theirs.
        """
        self._feeding.on_step(callback, every)

    def wait(self, timeout_s: float | None = None) -> None:
        """Waits for every submitted step. Then parameters and outputs may be read and inputs written.

        Raises TaskError if the last one failed, and what ended the thread of start().
        """
        super().wait(timeout_s)
        self._feeding.check()

    def close(self) -> None:
        """Ends start(), waits for every submitted step, then releases the app and the memory."""
        self._feeding.close()
        super().close()

    def __enter__(self) -> Training:
        return self
