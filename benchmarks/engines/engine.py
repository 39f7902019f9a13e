"""The engine: a decoder with its slots, its graphs, and the pinned memory through which a step gets and gives tokens.

A step is one launch: the copies from and to pinned memory are nodes of its graph. All graphs share a memory pool,
because one of them runs at a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from batching import Batching, Decode, Step
from llama import SHAPES, caches_of, made

from gpushare.torch._tensors import own_workspaces

BATCHES = (1, 2, 4, 8, 16, 32)
BUCKETS = (64, 128, 256, 512, 768)
CONTEXT = 1024  # tokens of a slot
WARM_UP_RUNS = 2


@dataclasses.dataclass
class Form:
    """One kind of step, such as 'd8' or 'p256': its function and its pinned memory."""

    function: Callable[[], None]
    given: Any  # NumPy's view of what the step reads
    found: Any  # and of the tokens that it gives
    tensors: tuple[Any, ...]

    def write(self, step: Step) -> None:
        if isinstance(step, Decode):
            given = self.given.tolist()
            for slot, row in enumerate(step.rows):
                given[0][slot], given[1][slot] = (0, 0) if row is None else (row.last, row.length)
            self.given[:] = given
            return
        line, given = step.line, self.given
        length = len(given) - 2
        given[:len(line.prompt)] = line.prompt
        given[len(line.prompt):length] = 0
        given[length:] = (len(line.prompt), line.slot)

    def read(self) -> list[int]:
        return self.found.tolist()  # type: ignore[no-any-return]


class Engine:
    """A model with its forms of steps and their graphs. `eager`: prefills are no graphs but run eagerly."""

    def __init__(self, name: str, *, eager: bool = False, batches: Sequence[int] = BATCHES,
                 buckets: Sequence[int] = BUCKETS, context: int = CONTEXT, device: str = 'cuda') -> None:
        self.shape, self.device, self.eager = SHAPES[name], torch.device(device), eager
        self.batches, self.buckets = tuple(batches), () if eager else tuple(buckets)
        self.prompt_max, self.output_max = buckets[-1], context - buckets[-1]
        self.model = made(name, context, device, torch.bfloat16)
        self.caches = caches_of(self.model, self.batches[-1])
        self.forms = {f'd{batch}': self._form(self.model.decode, (2, batch), batch) for batch in self.batches}
        self.forms.update({f'p{bucket}': self._form(self.model.prefill, (bucket + 2,), 1) for bucket in self.buckets})
        self._eager_forms: dict[int, Form] = {}
        self._pool: Any = None
        self._captured: dict[int, dict[str, Any]] = {}  # by priority of the stream

    def batching(self) -> Batching:
        return Batching(self.batches, self.buckets)

    def form(self, step: Step) -> Form:
        """The form of a step; an eager prefill's is of its prompt's length."""
        if step.name in self.forms:
            return self.forms[step.name]
        assert not isinstance(step, Decode)
        return self._eager_form(step.line.request.prompt)

    def prepare(self, prompts: Iterable[Sequence[int]]) -> None:
        """Makes the forms of eager prefills: an allocation of pinned memory stops the GPU."""
        for length in {len(prompt) for prompt in prompts}:
            self._eager_form(length)

    def _eager_form(self, length: int) -> Form:
        if length not in self._eager_forms:
            self._eager_forms[length] = self._form(self.model.prefill, (length + 2,), 1)
        return self._eager_forms[length]

    def _form(self, function: Callable[..., Any], shape: tuple[int, ...], rows: int) -> Form:
        pinned = self.device.type == 'cuda'
        given = torch.zeros(shape, dtype=torch.int64, pin_memory=pinned)
        found = torch.zeros(rows, dtype=torch.int64, pin_memory=pinned)
        if len(shape) == 1:
            given[-2] = 1  # the length of an example prompt

        def call() -> None:
            with torch.no_grad():
                found.copy_(function(given.to(self.device, non_blocking=True), self.caches), non_blocking=True)

        return Form(call, given.numpy(), found.numpy(), (given, found))

    def graphs(self, priority: int = 0) -> dict[str, Any]:
        """A graph of each form, captured on a stream of the priority: kernels of a graph keep their stream's."""
        if priority not in self._captured:
            self._captured[priority] = self._capture(torch.cuda.Stream(priority=priority))
        return self._captured[priority]

    def _capture(self, stream: Any) -> dict[str, Any]:
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graphs = {}
        for name, form in sorted(self.forms.items(), key=lambda item: -len(item[1].given)):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP_RUNS):
                    form.function()
            stream.synchronize()
            # keep_graph: the library takes the graph, and bare replays instantiate it.
            graphs[name] = torch.cuda.CUDAGraph(keep_graph=True)
            with own_workspaces(), torch.cuda.graph(graphs[name], stream=stream, pool=self._pool,
                                                    capture_error_mode='relaxed'):
                form.function()
            graphs[name].instantiate()
        torch.cuda.synchronize()
        return graphs
