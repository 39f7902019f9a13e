"""BE inference: a function of tensors as a CUDA graph that runs when LC work leaves room, with results of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch

from gpushare.runtime import Runtime
from gpushare.ticket import Ticket
from gpushare.torch._captured_work import CapturedWork
from gpushare.torch._ring import RingMemory, copy_options
from gpushare.torch._tensors import map_tensors, recorded_event, require_result, tensor_pairs
from gpushare.torch.memory_pool import MemoryPool, allocated_in

_numbers = itertools.count(1)


class BestEffort(CapturedWork):
    """A function of tensors as BE work: submit() takes inputs and returns the results of these inputs.

    fn: takes the tensors of `inputs` and returns tensors, or tuples, lists and dicts of them. It runs without
    gradients, and must not wait for the GPU or depend on values of its inputs in Python.
    inputs: example inputs, on the CPU or GPU, as in Training. Later ones have the same shapes and types.
    to_cpu: results are in pinned memory on the CPU, else in new tensors on the GPU.
    batches, state, generators, pool, name, measure, kernel_options, app_options: as in Training. name: 'besteffort-1'
    and so on.

    Threads: any. close() waits for what was submitted; the runtime's close ends what is left.
    """

    def __init__(self, runtime: Runtime, fn: Callable[..., Any], inputs: Any, *, to_cpu: bool = False, batches: int = 2,
                 state: Sequence[Any] = (), generators: Sequence[Any] = (), pool: MemoryPool | None = None,
                 name: str | None = None, warmup_runs: int = 3, measure: bool = True,
                 kernel_options: dict[str, Any] | None = None,
                 **app_options: Any) -> None:
        with allocated_in(pool):
            memory = RingMemory(inputs, batches)

        def call() -> Any:
            with torch.no_grad():
                return map_tensors(require_result, fn(*memory.inputs))

        super().__init__(
            runtime, call, name or f'besteffort-{next(_numbers)}', state=state, generators=generators, pool=pool,
            warmup_runs=warmup_runs, measure=measure, kernel_options=kernel_options, app_options=app_options)
        self._to_cpu = to_cpu
        self._inputs = self._use_ring(memory)

    def submit(self, inputs: Any) -> Results:
        """Submits one run on these inputs, behind what was submitted before, and returns its results to come.

        Do not write the inputs until the results are complete. A run that fails also fails the submitted runs
        behind it. When the app is full (tasks_max), ResourceExhaustedError is raised and the run has no results. A run
        takes a task, two for each input on the CPU, and one for each other input and each result.
        """
        with allocated_in(self._pool):  # first: without memory nothing is submitted
            results = map_tensors(self._new_result, self.outputs)
        with self._lock:
            self._chain.begin_pass()
            loaded = self._inputs.load(inputs)
            ticket = self._chain.submit(self._kernel, event=None if loaded else recorded_event())
            # PyTorch may have taken the memory of a result from work that is still on the current stream.
            event = recorded_event()
            for source, target in tensor_pairs(self.outputs, results, 'the result'):
                if source.numel():
                    ticket = self._chain.submit(event=event, uses=[target], **copy_options(target, source))
            return Results(ticket, results)

    def _new_result(self, output: Any) -> Any:
        if self._to_cpu:
            return torch.empty_like(output, device='cpu', pin_memory=True)
        return torch.empty_like(output)

    def __enter__(self) -> BestEffort:
        return self


class Results:
    """The results of one run, which wait() or await gives when they are complete.

    ticket: of the run's last task; ticket.future() is a concurrent.futures.Future of its record.
    """

    def __init__(self, ticket: Ticket, tensors: Any) -> None:
        self.ticket = ticket
        self._tensors = tensors

    def done(self) -> bool:
        """Whether they are complete, or the run has failed."""
        return self.ticket.done()

    def wait(self, timeout_s: float | None = None) -> Any:
        """The tensors, in the shape that fn returned. Any stream may use them.

        Raises TaskError if the run failed, DeadlineExceededError after the timeout.
        """
        self.ticket.wait_ok(timeout_s)
        return self._tensors

    def __await__(self) -> Generator[Any, None, Any]:
        yield from self.ticket.__await__()
        return self._tensors
