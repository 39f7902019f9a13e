"""transformers' continuous batching as the engine: its model, its steps, and requests in open loop.

Each step that it captures is a Switched graph, which replays on bare PyTorch or through the library, as `through` says.
So one engine, with one cache and one set of graphs, serves all conditions. It is the class of examples/llm otherwise.
"""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from batching import Line
from chunked import Chunked, step_name
from llama import SHAPES
from loop import Run
from traffic import Request
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / 'examples/llm'))

from llm import BATCHING, StepGraph  # isort: skip

_plain = torch.cuda.CUDAGraph  # while the engine lives, Switched stands in its place
ATTENTION = 'paged|sdpa'
WARM_UP_PROMPTS = (60, 120, 180, 250)  # tokens: one of each graph
WARM_UP_OUTPUT = 24  # tokens
ANSWER_S = 60.0  # of a request: one that gets none is a failure and not a hang
SNAPSHOTS_MAX = 600  # steps with their inputs, about 2 MB each


class Switched(StepGraph):  # type: ignore[misc]
    """A step of the engine. `engine` is set before the first capture."""

    engine: Served
    through = False  # the library
    steps: list[tuple[str, int, int]] = []  # name, begin, end of those that were replayed
    snapshots: list[tuple[Switched, int, list[Any], Any]] | None = None  # None: not wanted

    def replay(self) -> None:
        given = self._given()
        began = time.monotonic_ns()
        if self.through:
            super().replay()
        else:
            self.bare()
        self.steps.append((self.engine.step_name(), began, time.monotonic_ns()))
        if given is not None and self.snapshots is not None:
            self.snapshots.append((self, self.engine.io.num_request_in_batch, given,
                                   self.engine.io.output_ids.clone()))

    def bare(self) -> None:
        """As PyTorch replays it. The engine waits for its stream next in any case."""
        _plain.replay(self)
        torch.cuda.current_stream().synchronize()

    def _given(self) -> list[Any] | None:
        if self.snapshots is None or len(self.snapshots) >= SNAPSHOTS_MAX:
            return None
        return [tensor.clone() for tensor in self.engine.tensors()]


class Served:
    """The engine. It has what the benchmark asks of engine.Engine."""

    prompt_max, output_max = 512, 128

    def __init__(self, name: str) -> None:
        self.shape = shape = SHAPES[name]
        config = LlamaConfig(hidden_size=shape.width, intermediate_size=shape.inner, num_hidden_layers=shape.layers,
                             num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
                             vocab_size=shape.vocabulary, attn_implementation='sdpa')
        with torch.device('cuda'):
            self._model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
        self._model.set_attn_implementation(ATTENTION)
        self._open = contextlib.ExitStack()
        self.forms: dict[str, Any] = {}  # of its steps, when they are captured

    def batching(self) -> Chunked:
        return Chunked(BATCHING.max_batch_tokens, BATCHING.q_padding_interval_size, BATCHING.max_requests_per_batch)

    def graphs(self, priority: int = 0) -> dict[str, Any]:
        """None: a step is registered when it is captured."""
        return {}

    # --- the engine's life ---

    def start(self) -> dict[str, float]:
        """Starts it and captures its steps. Returns the time of a step of each form with the host's share, in ns."""
        Switched.engine, torch.cuda.CUDAGraph = self, Switched
        self._open.callback(setattr, torch.cuda, 'CUDAGraph', _plain)
        self._manager = self._open.enter_context(self._model.continuous_batching_context_manager(
            GenerationConfig(do_sample=False, eos_token_id=-1), continuous_batching_config=BATCHING))
        self.io = self._manager.batch_processor.inputs_and_outputs
        for _ in range(2):  # the first captures
            self.warm_up()
        self.forms = dict.fromkeys(name for name, _, _ in Switched.steps)
        return step_times(Switched.steps)

    def warm_up(self) -> None:
        """Serves one request after another, of all sizes of a step."""
        Switched.steps = []
        for number, prompt in enumerate(WARM_UP_PROMPTS):
            self.serve([Request(number, 0, prompt, WARM_UP_OUTPUT)], {number: list(range(prompt))})

    def close(self) -> None:
        self._open.close()

    def step_name(self) -> str:
        """Of the step that runs now."""
        return step_name(self.io.num_q_tokens, BATCHING.q_padding_interval_size)

    def tensors(self) -> list[Any]:
        """What a step reads, but for the cache."""
        io = self.io
        masks = (io.attention_mask or {}).values()
        return [io._bulk_input_tensor, io.write_index_storage, io.read_index_storage, *masks]

    # --- requests ---

    def serve(self, requests: Sequence[Request], prompts: Mapping[int, Sequence[int]]) -> Run:
        """Sends each request at its time, and collects the answers."""
        first, start, lines = len(Switched.steps), time.monotonic_ns(), {}
        for request in requests:
            time.sleep(max(0, start + request.arrival_ns - time.monotonic_ns()) / 1e9)
            name = self._manager.add_request(list(prompts[request.number]), max_new_tokens=request.output,
                                             record_timestamps=True)
            lines[name] = Line(request, prompts[request.number])
        offset = time.monotonic_ns() - time.perf_counter_ns() - start
        done = [self._answered(lines, offset) for _ in requests]
        steps = [(name, begin - start, end - start) for name, begin, end in Switched.steps[first:]]
        return Run(done, steps, time.monotonic_ns() - start, start)

    def _answered(self, lines: dict[str, Line], offset: int) -> Line:
        until = time.monotonic() + ANSWER_S
        while (result := self._manager.get_result(timeout=1)) is None:
            if not self._manager.is_running() or time.monotonic() > until:
                raise RuntimeError('The engine has ended, or it does not answer.')
        line, times = lines.pop(result.request_id), result.timestamps or []
        if result.error or len(times) != line.request.output:
            raise RuntimeError(f'A request for {line.request.output} tokens got {len(times)}. {result.error or ""}')
        line.times_ns = [int(one * 1e9) + offset for one in times]
        return line

    # --- tokens ---

    def differing(self, log: Sequence[tuple[Switched, int, list[Any], Any]]) -> dict[str, int]:
        """Replays steps with what they read on bare PyTorch, in their order, and counts the tokens that differ.

        The engine is idle. A run begins without a request, so what its steps read of the cache they wrote.
        """
        tokens = differ = 0
        with torch.no_grad(), torch.cuda.stream(self.io.compute_stream):
            for graph, count, given, found in log:
                for tensor, value in zip(self.tensors(), given, strict=True):
                    tensor.copy_(value)
                graph.bare()
                tokens += count
                differ += int((self.io.output_ids[0, :count] != found[0, :count]).sum().item())
        return {'steps': len(log), 'tokens': tokens, 'differ': differ}


def step_times(steps: Sequence[tuple[str, int, int]]) -> dict[str, float]:
    """The median time of each form, and what the host takes between two steps."""
    host = statistics.median(after[1] - before[2] for before, after in itertools.pairwise(steps))
    names = {name for name, _, _ in steps}
    return {one: host + statistics.median(end - begin for name, begin, end in steps if name == one) for one in names}
