#!/usr/bin/env python3
"""An LLM service of transformers beside the fine-tuning of another LLM by peft, on one GPU, in one process.

transformers' continuous batching serves requests that arrive at random times: latency-critical work (LC). A LoRA step
of peft takes what it leaves: best-effort work (BE). Both models have random weights, so nothing is downloaded.

  llm.py [--bound 1.05] [--seconds 10] [--rate 4] [--layers 16] [--bare]

Prints the time to the first token (TTFT), the time between tokens (TBT), and the steps of the fine-tuning, for the
engine alone and beside it; with --bare for the engine alone without the library. It needs a GPU, PyTorch 2.8 or later,
transformers 5.17 and peft 0.21.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import threading
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

import gpushare
import gpushare.torch

VOCABULARY, PROMPT, OUTPUT = 32000, 200, 48  # tokens: that exist, of a request
# Few sizes of a step, so few graphs: a multiple of 64 tokens beside the whole cache. One step at a time: no async.
BATCHING = ContinuousBatchingConfig(
    block_size=32, num_blocks=128, max_batch_tokens=256, max_requests_per_batch=16, allow_block_sharing=False,
    use_cuda_graph=True, use_async_batching=False, q_padding_interval_size=64, kv_padding_interval_size=32 * 128)


class StepGraph(torch.cuda.CUDAGraph):
    """A step of the engine: captured as every CUDA graph, replayed through the library as an LC query."""

    numbers = itertools.count(1)
    runtime: gpushare.Runtime
    queue: gpushare.Queue

    def __init__(self, keep_graph: bool = False) -> None:
        super().__init__(keep_graph=True)  # the library takes the graph; PyTorch instantiates none

    def capture_end(self) -> None:
        super().capture_end()
        self.kernel = self.runtime.register_kernel(f'step-{next(self.numbers)}', kind=gpushare.TaskKind.GRAPH,
                                                   graph=int(self.raw_cuda_graph()), segment_ns=-1)

    def replay(self) -> None:
        torch.cuda.current_stream().synchronize()  # the step's inputs are there
        self.queue.run(self.kernel)  # returns when the step is complete

    def reset(self) -> None:
        self.kernel.close()
        super().reset()


def run_engine_through(runtime: gpushare.Runtime, queue: gpushare.Queue) -> None:
    """From now on, graphs that the engine captures are steps. Make a Training before."""
    StepGraph.runtime, StepGraph.queue = runtime, queue
    torch.cuda.CUDAGraph = StepGraph


def llama(layers: int) -> LlamaForCausalLM:
    config = LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers, num_attention_heads=32,
                         num_key_value_heads=4, vocab_size=VOCABULARY, attn_implementation='sdpa')
    with torch.device('cuda'):
        return LlamaForCausalLM(config).to(torch.bfloat16)


def fine_tuning(runtime: gpushare.Runtime, layers: int) -> gpushare.torch.Training:
    model = get_peft_model(llama(layers), LoraConfig(r=16, target_modules=['q_proj', 'v_proj'], lora_dropout=0.0))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, capturable=True)
    # Write the next batch in place, after training.wait().
    batch = torch.randint(0, VOCABULARY, (4, 512), device='cuda')

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=batch, labels=batch, use_cache=False).loss
        loss.backward()
        optimizer.step()
        return loss.detach()

    return gpushare.torch.Training(runtime, step, state=(trained, optimizer), name='fine-tuning')


def serve(manager, seconds: float, rate: float) -> tuple[list[float], list[float]]:
    """Sends requests at random times for so long. TTFT and TBT of all in seconds, sorted."""
    draw, arrival, arrivals = random.Random(1), time.perf_counter(), {}
    for _ in range(max(1, int(seconds * rate))):
        prompt, arrival = draw.choices(range(VOCABULARY), k=PROMPT), arrival + draw.expovariate(rate)
        time.sleep(max(0.0, arrival - time.perf_counter()))
        arrivals[manager.add_request(prompt, max_new_tokens=OUTPUT, record_timestamps=True)] = arrival
    ttft, tbt = [], []
    for _ in arrivals:
        while (result := manager.get_result(timeout=1)) is None:
            if not manager.is_running():
                raise RuntimeError('The engine has ended.')
        if result.error:
            raise RuntimeError(result.error)
        ttft.append(result.timestamps[0] - arrivals[result.request_id])
        tbt += [after - before for before, after in itertools.pairwise(result.timestamps)]
    return sorted(ttft), sorted(tbt)


def keep_running(training: gpushare.torch.Training, stop: threading.Event) -> None:
    """Keeps four steps submitted, so that the next one begins without Python."""
    tickets = training.submit(4)
    while not stop.is_set():
        tickets.append(training.submit()[0])
        tickets.pop(0).wait()


def report(what: str, ttft: list[float], tbt: list[float]) -> None:
    def at(values: list[float], share: float) -> float:
        return values[min(len(values) - 1, int(share * len(values)))] * 1e3

    print(f'{what}: TTFT p50 {at(ttft, 0.5):.1f} ms, p99 {at(ttft, 0.99):.1f} ms; '
          f'TBT p50 {at(tbt, 0.5):.2f} ms, p99 {at(tbt, 0.99):.2f} ms', flush=True)


def compare(manager, training: gpushare.torch.Training | None, seconds: float, rate: float) -> None:
    serve(manager, 2, rate)  # captures the steps that are left
    report('engine alone', *serve(manager, seconds, rate))
    if training is None:
        return
    stop = threading.Event()
    feeder = threading.Thread(target=keep_running, args=(training, stop))
    feeder.start()
    done, began = training.app.stats().completed, time.perf_counter()
    try:
        report('beside fine-tuning', *serve(manager, seconds, rate))
    finally:
        stop.set()
    steps, took = training.app.stats().completed - done, time.perf_counter() - began
    feeder.join()
    print(f'fine-tuning: {steps / took:.1f} steps a second')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bound', type=float, default=1.05, help='p99 of a step over its p99 alone')
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--rate', type=float, default=4, help='requests a second')
    parser.add_argument('--layers', type=int, default=16)
    parser.add_argument('--bare', action='store_true', help='the engine alone, without the library')
    given = parser.parse_args()
    with gpushare.Runtime() as runtime:
        app = runtime.create_app('engine', gpushare.AppClass.LATENCY_CRITICAL, p99_bound=given.bound)
        engine = llama(given.layers).eval()
        engine.set_attn_implementation('paged|sdpa')
        with contextlib.nullcontext() if given.bare else fine_tuning(runtime, given.layers) as training:
            if not given.bare:
                run_engine_through(runtime, app.create_queue())
            with engine.continuous_batching_context_manager(GenerationConfig(do_sample=False, eos_token_id=-1),
                                                            continuous_batching_config=BATCHING) as manager:
                compare(manager, training, given.seconds, given.rate)


if __name__ == '__main__':
    main()
