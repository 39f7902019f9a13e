#!/usr/bin/env python3
"""gpushare.torch.Server on a GPU: the graphs of an engine repeat their bits, from one pool, at little cost.

  server_check.py [--out FILE] [--seconds S]

The engine is a decoder of 1.1 B parameters (22 layers of 2048, bfloat16): 48 decode graphs and 12 of prefill. Needs
torch and 20 GB of GPU memory; GPUSHARE_LIBRARY names the library. Prints one line a case and writes JSON with the
figures. Exit code 0: every case passed; 1: one failed; 77: there is no GPU or no PyTorch.
"""

import asyncio
import random
import sys
import threading
import time

from harness import main, torch
from torch_check import LIMIT_S, Step, quantile

import gpushare
import gpushare.torch as gt

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY, CONTEXT, SLOTS = 22, 2048, 32, 5632, 32_000, 512, 48
BUCKETS = tuple(range(40, 500, 40))  # tokens of a prompt
REGISTERED_S_MAX, REGISTERED_BYTES_MAX = 10, 3 << 30  # of 60 graphs
RUN_OVER_REPLAY_MAX = 1.25  # of the medians of a step
REPLAYS = 100  # by PyTorch, of a graph whose runs differ: does it repeat its bits at all? 12 miss a rare difference
GPU = {'device': 'cuda', 'dtype': torch.bfloat16}


class Decoder(torch.nn.Module):
    """A decoder with a cache of its own. A decode step takes a token of each row, a prefill a prompt."""

    def __init__(self, layers=LAYERS, width=WIDTH, hidden=HIDDEN, slots=SLOTS):
        super().__init__()
        torch.manual_seed(5)
        self.width, self.heads = width, HEADS * width // WIDTH
        self.embedding = torch.nn.Embedding(VOCABULARY, width, **GPU)
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict({
                'qkv': torch.nn.Linear(width, 3 * width, bias=False, **GPU),
                'out': torch.nn.Linear(width, width, bias=False, **GPU),
                'up': torch.nn.Linear(width, hidden, bias=False, **GPU),
                'down': torch.nn.Linear(hidden, width, bias=False, **GPU)}) for _ in range(layers))
        self.head = torch.nn.Linear(width, VOCABULARY, bias=False, **GPU)
        self.cache = torch.zeros(layers, 2, slots, self.heads, CONTEXT, width // self.heads, **GPU)
        self.positions = torch.arange(CONTEXT, device='cuda')

    def decode(self, tokens, lengths):
        """Tokens and lengths of the rows: (batch,). Returns the next tokens, (batch,)."""
        count = len(tokens)
        at = lengths[:, None, None, None].expand(count, self.heads, 1, self.width // self.heads)
        mask = (self.positions[None, :] <= lengths[:, None])[:, None, None, :]

        def attend(layer, q, k, v):
            keys, values = self.cache[layer, 0, :count], self.cache[layer, 1, :count]
            keys.scatter_(2, at, k)
            values.scatter_(2, at, v)
            return torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)

        return self.run(tokens[:, None], attend)

    def prefill(self, prompt):
        """A prompt, (length,), into slot 0. Returns the next token, (1,)."""
        def attend(layer, q, k, v):
            self.cache[layer, 0, 0, :, :len(prompt)] = k[0]
            self.cache[layer, 1, 0, :, :len(prompt)] = v[0]
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        return self.run(prompt[None], attend)

    def run(self, tokens, attend):
        x = self.embedding(tokens)
        for number, layer in enumerate(self.layers):
            q, k, v = (part.reshape(*tokens.shape, self.heads, -1).transpose(1, 2) for part in
                       layer['qkv'](self.norm(x)).chunk(3, -1))
            x = x + layer['out'](attend(number, q, k, v).transpose(1, 2).reshape(*tokens.shape, -1))
            x = x + layer['down'](torch.nn.functional.silu(layer['up'](self.norm(x))))
        return self.head(self.norm(x[:, -1])).argmax(-1)

    @staticmethod
    def norm(x):
        return torch.nn.functional.rms_norm(x, x.shape[-1:])


def steps_of(decoder, batches, buckets):
    """Functions with their inputs by the name of the graph, the largest first."""
    steps = {f'p{bucket}': (decoder.prefill, (torch.randint(VOCABULARY, (bucket,), device='cuda'),))
             for bucket in sorted(buckets, reverse=True)}
    for batch in sorted(batches, reverse=True):
        steps[f'd{batch}'] = decoder.decode, (torch.randint(VOCABULARY, (batch,), device='cuda'),
                                              torch.randint(1, CONTEXT - 1, (batch,), device='cuda'))
    return steps


def free_bytes():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def sums_of(cache):
    return cache.sum((2, 3, 4, 5), dtype=torch.float64)


def same(found, others):
    return all(torch.equal(one, other) for one, other in zip(found, others, strict=True))


class Checks:
    def __init__(self, seconds):
        self.seconds = seconds
        self.figures = {}
        self.first = {}  # tokens and sums of the cache by layer, by the name of the graph
        self.repeats = {}  # whether PyTorch's replays repeat their bits, of graphs whose runs differ

    @torch.no_grad()
    def sixty_graphs_cost_little_and_repeat_their_bits(self):
        decoder = Decoder()
        steps = steps_of(decoder, range(1, SLOTS + 1), BUCKETS)
        saved = decoder.cache.normal_().clone()
        with gpushare.Runtime(device='cuda') as runtime, gt.Server(runtime, name='engine') as server:
            for function, given in steps.values():
                function(*given)  # what eager runs keep is the engine's own
            decoder.cache.copy_(saved)
            kept, before, began = True, free_bytes(), time.monotonic()
            for name, (function, given) in steps.items():
                server.add(name, function, given, state=() if server.graphs else [decoder.cache])
                kept = kept and (len(server.graphs) > 1 or torch.equal(decoder.cache, saved))
            took, used = time.monotonic() - began, before - free_bytes()
            self.figures.update({
                'graphs': len(server.graphs), 'registered in s': round(took, 2),
                'registered GiB': round(used / 2**30, 3),
                'pool GiB': round(sum(part['total_size'] for part in server.pool.snapshot()) / 2**30, 3),
                'unconfinable': [name for name, graph in server.graphs.items() if graph.unconfinable]})
            self._same_bits(server, steps, decoder, saved, 'alone')
            self._beside(runtime, server, steps, decoder, saved)
            self.figures['GiB after serving'] = round((before - free_bytes()) / 2**30, 3)
        assert kept, 'the state was not put back'
        assert took <= REGISTERED_S_MAX, f'60 graphs took {took:.1f} s'
        assert used <= REGISTERED_BYTES_MAX, f'60 graphs took {used / 2**30:.2f} GiB'

    def _beside(self, runtime, server, steps, decoder, saved):
        """The same beside a training, whose steps the library moves between places."""
        step = Step()
        with torch.enable_grad():
            training = gt.Training(runtime, step, state=step.state)
        stop = threading.Event()

        def feed():
            while not stop.is_set():
                training.submit(4)
                training.wait(LIMIT_S)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            self._same_bits(server, steps, decoder, saved, 'beside')
        finally:
            stop.set()
            feeder.join()
            training.close()
        self.figures['training steps beside'] = step.count.item()

    def _same_bits(self, server, steps, decoder, saved, when):
        """Runs the graphs in random order, and compares tokens and cache with those of the first run of each graph.

        The first run must have those of PyTorch's own replay of the same graph. Where runs differ, so must PyTorch's
        own replays: on an H200 a decode step of eight rows or more does not repeat its bits, eager runs do not either.
        Eager runs may take other kernels of cuBLAS than a capture: how many steps differ from them is a figure.
        """
        order = list(steps) * 2
        random.Random(3).shuffle(order)
        differ, unlike_replay, times, eager = [], [], [], 0
        for name in order:
            function, given = steps[name]
            decoder.cache.copy_(saved)
            torch.cuda.synchronize()
            began = time.monotonic_ns()
            found = server.run(name)
            times.append(time.monotonic_ns() - began)
            found = found.clone(), sums_of(decoder.cache)
            if name not in self.first:
                if not same(found, self._replayed(server[name], decoder, saved)) and \
                        self._repeats(server[name], decoder, saved):
                    unlike_replay.append(name)
                decoder.cache.copy_(saved)
                eager += not torch.equal(found[0], function(*given))
            if not same(found, self.first.setdefault(name, found)) and \
                    self._repeats(server[name], decoder, saved):
                differ.append(name)
        if when == 'alone':
            self.figures['steps whose tokens differ from an eager run'] = eager
        self.figures[f'p50 {when} us'] = round(quantile(times, 0.5) / 1e3, 1)
        assert not differ, f'{when}, {len(differ)} of {len(order)} runs differ: {differ[:8]}'
        assert not unlike_replay, f'{len(unlike_replay)} graphs are not as replayed: {unlike_replay[:8]}'

    def _repeats(self, graph, decoder, saved):
        """Whether PyTorch's replays have the same bits again and again. Those of a graph that does not are counted."""
        if graph.name not in self.repeats:
            first = self._replayed(graph, decoder, saved)
            self.repeats[graph.name] = all(
                same(self._replayed(graph, decoder, saved), first) for _ in range(REPLAYS))
            self.figures['graphs whose replays differ'] = sum(not found for found in self.repeats.values())
        return self.repeats[graph.name]

    @staticmethod
    def _replayed(graph, decoder, saved):
        """Tokens and sums of the cache of PyTorch's replay."""
        decoder.cache.copy_(saved)
        captured = next(part for part in graph._memory if isinstance(part, torch.cuda.CUDAGraph))
        captured.replay()
        torch.cuda.synchronize()
        return graph.outputs.clone(), sums_of(decoder.cache)

    @torch.no_grad()
    def graphs_of_the_callers_are_served(self):
        decoder = Decoder(layers=2, slots=4)
        pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
        with gpushare.Runtime(device='cuda') as runtime, gt.Server(runtime) as server:
            for name, (function, given) in steps_of(decoder, (1, 4), (64,)).items():
                function(*given)
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph(keep_graph=True)
                with torch.cuda.graph(graph, pool=pool, stream=stream):
                    found = function(*given)
                server.add(name, graph=graph, inputs=given, outputs=found)
                assert torch.equal(server.run(name).clone(), function(*given)), name
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                given[0].add_(0)
            try:
                server.add('lost', graph=graph)
            except gpushare.InvalidArgumentError as error:
                self.figures['without keep_graph'] = str(error)
            else:
                raise AssertionError('a graph without keep_graph was taken')

    @torch.no_grad()
    def pinned_inputs_and_results_are_nodes_of_the_graph(self):
        decoder = Decoder(layers=2, slots=4)
        given = torch.zeros(2, 4, dtype=torch.int64, pin_memory=True)
        found = torch.zeros(4, dtype=torch.int64, pin_memory=True)

        def step(tokens):
            on_gpu = tokens.to('cuda', non_blocking=True)
            return found.copy_(decoder.decode(on_gpu[0], on_gpu[1]), non_blocking=True)

        with gpushare.Runtime(device='cuda') as runtime, gt.Server(runtime) as server:
            server.add('d4', step, given)
            for number in range(1, 100):
                given[0], given[1] = torch.randint(VOCABULARY, (4,)), number
                assert server.run('d4') is found
                got = found.clone()
                assert torch.equal(got.cuda(), decoder.decode(given[0].cuda(), given[1].cuda())), number

    @torch.no_grad()
    def every_form_of_a_query_gives_its_result(self):
        net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512)).cuda().half()
        x = torch.randn(8, 512, device='cuda').half()

        async def ask(service, given):
            return await asyncio.gather(*(service.call(one) for one in given))

        with gpushare.Runtime(device='cuda') as runtime:
            server = gt.Server(runtime, places='captured', p99_bound=1.2)
            server.add('whole', net, x, measure=True)
            given = [torch.randn_like(x) for _ in range(20)]
            for one in given:
                ticket = server.submit('whole', one, arrival_ns=runtime.from_monotonic_ns(time.monotonic_ns()),
                                       input_size=8)
                assert ticket.wait(LIMIT_S).measured_ns > 0
                torch.testing.assert_close(server['whole'].outputs, net(one), rtol=2e-2, atol=2e-2)
            with gt.Service(runtime, net, x, name='service') as service:
                for one, answer in zip(given, asyncio.run(ask(service, given)), strict=True):
                    torch.testing.assert_close(answer, net(one), rtol=2e-2, atol=2e-2)
            server.close()

    @torch.no_grad()
    def what_fails_in_places_runs_on_the_whole_device(self):
        gru = torch.nn.GRU(256, 256, num_layers=2).cuda().half()
        x = torch.randn(32, 8, 256, device='cuda').half()
        with gpushare.Runtime(device='cuda') as runtime:
            for places in ('captured', 'copied'):
                with gt.Service(runtime, lambda given: gru(given)[0], x, name=f'gru-{places}',
                                places=places) as service:
                    torch.testing.assert_close(service(x), gru(x)[0], rtol=2e-2, atol=2e-2)
                    self.figures[f'GRU {places} unconfinable'] = service.unconfinable.splitlines()[:1]
            with gt.Service(runtime, lambda given: given + 1, x, name='after') as service:
                assert torch.equal(service(x), x + 1)
        torch.cuda.synchronize()

    @torch.no_grad()
    def a_step_costs_no_more_than_a_replay(self):
        net = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda().half()
        x = torch.randn(8, 2048, device='cuda').half()
        with gpushare.Runtime(device='cuda') as runtime, gt.Server(runtime) as server:
            server.add('step', net, x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                net(x)
            done = torch.cuda.Event()

            def replay():
                graph.replay()
                done.record()
                done.synchronize()

            every = {'replay': [], 'run': []}
            for _ in range(3):  # interleaved
                for name, step in (('replay', replay), ('run', lambda: server.run('step'))):
                    times = []
                    for _ in range(500):
                        began = time.monotonic_ns()
                        step()
                        times.append(time.monotonic_ns() - began)
                    every[name] += times
                    self.figures.setdefault(f'{name} us', []).append(
                        [round(quantile(times, share) / 1e3, 1) for share in (0.5, 0.99)])
        over = quantile(every['run'], 0.5) / quantile(every['replay'], 0.5)
        self.figures['p50 of a run over a replay'] = round(over, 3)
        assert over <= RUN_OVER_REPLAY_MAX, f'a run takes {over:.2f} times as long as a replay'


if __name__ == '__main__':
    sys.exit(main(Checks, __doc__))
