"""BE training: a training step with autograd and optimizer as a CUDA graph that runs when LC work leaves room."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from gpushare.enums import Status
from gpushare.errors import FailedPreconditionError, InvalidArgumentError
from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._captured_work import CapturedWork
from gpushare.torch._feeding import Feeding
from gpushare.torch._ring import RingMemory, copy_options, laid_out
from gpushare.torch._tensors import recorded_event, tensor_pairs
from gpushare.torch.memory_pool import MemoryPool, allocated_in

_numbers = itertools.count(1)


class Training(CapturedWork):
    """A training step as BE work.

    step: a function that runs zero_grad(), forward, backward() and optimizer.step() on tensors that keep their
    addresses. It must not wait for the GPU or change shapes; Adam needs capturable=True. Random numbers, as of dropout,
    are those of the same steps outside a graph.
    inputs: an example batch, on the CPU or GPU: a tensor, or a tuple or list of step's positional arguments (tensors,
    nests of them, constants). The step gets the training's own copies, which submit(batch=...) writes.
    batches: how many batches from the CPU can be on their way; each takes the batch's size on the GPU.
    state: the modules, optimizers (anything with a state_dict), GradScalers and tensors that the step changes. The
    registration runs steps to warm up and to measure, and then restores the state. Without it these steps stay part of
    the training.
    generators: what the step draws random numbers from, beside the GPU's default generator. The first step draws what
    they would draw next when the training is made. They themselves stay where they are; see sync_generators().
    pool: what the training allocates comes from it, so that BE work runs out of memory before LC work does.
    name: of the app and its kernel; a profile knows the kernel by it. Default: 'training-1' and so on.
    measure: the registration executes the step, twice as a whole and for up to a second in places. The durations of its
    kernels decide where it is cut into segments, and its speed on part of the SMs becomes known.
    kernel_options are those of Runtime.register_kernel, such as segment_ns; app_options those of Runtime.create_app.

    The step is captured once, by PyTorch, in a memory pool of its own; the library makes a copy of the graph for
    each place. So a step that moves between places gives the same bits. What the step returns is in `outputs`,
    which each step overwrites.

    Threads: any. close() waits for the submitted steps; the runtime's close ends what is left.
    """

    def __init__(self, runtime: Runtime, step: Callable[..., Any], *, inputs: Any = None, batches: int = 2,
                 state: Sequence[Any] = (), generators: Sequence[Any] = (), pool: MemoryPool | None = None,
                 name: str | None = None, warmup_runs: int = 3, measure: bool = True,
                 kernel_options: dict[str, Any] | None = None,
                 **app_options: Any) -> None:
        with allocated_in(pool):
            memory = None if inputs is None else RingMemory(inputs, batches)
        given = () if memory is None else memory.inputs
        super().__init__(
            runtime, lambda: step(*given), name or f'training-{next(_numbers)}', state=state, generators=generators,
            pool=pool, warmup_runs=warmup_runs, measure=measure, kernel_options=kernel_options,
            app_options=app_options)
        if memory is not None:
            self._use_ring(memory)
        self._feeding = Feeding(runtime, lambda batch: self.submit(batch=batch)[0], self.name)

    def submit(self, n: int = 1, *, batch: Any = None) -> list[Ticket]:
        """Submits n steps, which run one after another. Returns their tickets. A step that fails also
        fails the submitted steps behind it.

        batch: inputs of these steps, of the shapes and types of the example: on the CPU, which copies from pinned
        memory fastest, or on the GPU. It is copied by BE copies behind the steps before, so do not write its tensors
        until the first ticket is complete. Without it the steps read the batch before.

        The first starts behind the work that is on the current stream now, such as the copy of a batch. When
        the app is full (tasks_max), ResourceExhaustedError is raised, and the steps before it stay submitted. A batch
        takes two tasks for each of its tensors on the CPU, one for each on the GPU. After the error submit it again.
        """
        if n < 1:
            raise ValueError(f'n is {n}, and it must be at least 1.')
        with self._lock:
            self._chain.begin_pass()
            event = None
            if batch is None:
                event = recorded_event()
            elif self._ring is None:
                raise FailedPreconditionError(
                    Status.FAILED_PRECONDITION, f"'{self.name}' takes no batch: it was made without inputs=.")
            elif not self._ring.load(batch):
                event = recorded_event()
            return [self._chain.submit(self._kernel, event=event if number == 0 else None) for number in range(n)]

    def feed(self, batches: Iterable[Any], outstanding: int = 4) -> int:
        """Submits a step for each batch, such as those of a DataLoader, and waits for them. Returns their number.

        At most `outstanding` steps are ahead of the GPU. It feeds on the caller's thread, behind the caller's current
        stream, and raises what a step, a callback of on_step or the batches raise. A batch of another shape, such as
        the last of a DataLoader without drop_last, raises InvalidArgumentError.
        """
        return self._feeding.feed(batches, outstanding)

    def start(self, outstanding: int = 4, batches: Iterable[Any] | None = None) -> None:
        """Submits steps on a thread of its own until stop() or close(), at most `outstanding` ahead of the GPU.

        batches: as in feed(), which it iterates on that thread; it ends with them. Without them each step reads what
        the step before read.
        The first step starts behind the work that is on the current stream now. A step that fails, and an exception of
        a callback, end the thread; wait() and stop() raise it.
        """
        self._feeding.start(batches, outstanding)

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

    def write(self, tensor: Any, value: Any) -> Ticket:
        """Sets a tensor on the GPU, such as a learning rate, behind the submitted steps and in front of later ones.

        value: a number, or a tensor of the same shape and type, which must not be written until the ticket is complete.
        """
        if not (tensor.is_cuda and tensor.is_contiguous()):
            raise InvalidArgumentError(
                Status.INVALID_ARGUMENT, 'The tensor to write is not contiguous on the GPU.')
        source = value
        if isinstance(value, (int, float)):
            source = torch.full_like(tensor, value, device='cpu', pin_memory=True)
        (target, source), = tensor_pairs(tensor.detach(), source, 'the value')
        source = laid_out(source, target)
        with self._lock:
            self._chain.begin_pass()
            return self._chain.submit(event=recorded_event(), uses=[source, target], **copy_options(target, source))

    def sync_generators(self) -> None:
        """Sets the generators to where the steps are, as after the same steps outside a graph. Call wait() first.

        Eager work, a checkpoint of their states or another Training then goes on from there.
        """
        self._random.sync()

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
