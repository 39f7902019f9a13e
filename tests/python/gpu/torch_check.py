#!/usr/bin/env python3
"""gpushare.torch on a GPU: services answer right, training is bitwise that of PyTorch alone, eager work stays right.

  torch_check.py [--out FILE] [--seconds S]

Needs torch; GPUSHARE_LIBRARY names the library. Prints one line a case and writes JSON with the figures.
Exit code 0: every case passed; 1: one failed; 77: there is no GPU or no PyTorch.
"""

import asyncio
import sys
import threading
import time

from harness import main, torch

import gpushare
import gpushare.torch as gt

LIMIT_S = 60  # of one wait: work that never runs is a failure, not a hang
PAUSE_S = 0.002  # between queries: without a pause they leave no room for BE work


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def model(width=1024, depth=4):
    layers = []
    for _ in range(depth):
        layers += [torch.nn.Linear(width, width), torch.nn.GELU()]
    return torch.nn.Sequential(*layers).cuda().half().eval()


def convolutions():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(64, 10)).cuda().half().eval().to(memory_format=torch.channels_last)


class Step:
    """A training step with autograd and Adam on a fixed batch."""

    def __init__(self, seed=3, width=1024):
        torch.manual_seed(seed)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width), torch.nn.GELU(),
            torch.nn.Linear(width, 16)).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3, capturable=True)
        self.x, self.y = torch.randn(512, width, device='cuda'), torch.randn(512, 16, device='cuda')
        self.losses = torch.zeros(4096, device='cuda')  # of the last steps
        self.count = torch.zeros((), dtype=torch.int64, device='cuda')

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = torch.nn.functional.mse_loss(self.net(self.x).float(), self.y)
        loss.backward()
        self.optimizer.step()
        self.losses.scatter_(0, self.count.reshape(1) % len(self.losses), loss.detach().reshape(1))
        self.count += 1
        return loss.detach()

    @property
    def state(self):
        return (self.net, self.optimizer, self.losses, self.count)


class Checks:
    def __init__(self, seconds):
        self.seconds = seconds
        self.figures = {}

    def service_answers_like_the_function(self):
        with gpushare.Runtime(device='cuda') as runtime, torch.no_grad():
            for name, net, shape in (('linear', model(), (8, 1024)), ('convolution', convolutions(), (2, 3, 64, 64))):
                began = time.monotonic()
                with gt.Service(runtime, net, torch.randn(shape, device='cuda').half(), name=name) as service:
                    self.figures[f'{name} registered in s'] = round(time.monotonic() - began, 2)
                    self.figures[f'{name} places'] = len(service.captures.place_sms)
                    for _ in range(50):
                        x = torch.randn(shape, device='cuda').half()
                        torch.testing.assert_close(service(x), net(x), rtol=2e-2, atol=2e-2)

    def regions_are_ordered_with_the_current_stream(self):
        net, steps = model(), 200
        with gpushare.Runtime(device='cuda') as runtime, torch.no_grad():
            app = runtime.create_app('engine', gpushare.LATENCY_CRITICAL)
            streams = set()
            with app.begin_token_stream() as tokens:
                for step in range(steps):
                    x = torch.randn((8, 1024), device='cuda').half()
                    follows = 50_000_000 if step + 1 < steps else gpushare.NO_NEXT
                    with gt.region(app, input_size=8, wait_s=1, next_within_ns=follows) as begun:
                        tokens.mark(begun.ticket)
                        answer = net(x)
                    torch.testing.assert_close(answer, net(x), rtol=2e-2, atol=2e-2)
                    assert begun.wait(LIMIT_S).verdict is gpushare.Verdict.OK
                    streams.add(begun.stream)
                found = app.guarantee()
            assert (found.first_tokens, found.token_distances) == (1, steps - 1), found
            self.figures['region streams'] = len(streams)
            self.figures['statements of a next region that lapsed'] = found.next_lapsed

    def training_alone_is_bitwise(self):
        eager, captured = Step(), Step()
        steps = 100
        for _ in range(steps):
            eager()
        torch.cuda.synchronize()
        with gpushare.Runtime(device='cuda') as runtime:
            with gt.Training(runtime, captured, state=captured.state) as training:
                training.submit(steps)
                training.wait(LIMIT_S)
                self.figures['training unconfinable'] = training.unconfinable
            self.same(eager, captured, steps)
        self.figures['first and last loss'] = [captured.losses[0].item(), captured.losses[steps - 1].item()]
        assert captured.losses[steps - 1] < captured.losses[0]

    def same(self, left, right, steps):
        assert right.count.item() == steps, f'{right.count.item()} steps ran'
        differ = (left.losses.view(torch.int32) != right.losses.view(torch.int32)).sum().item()
        assert differ == 0, f'{differ} of {steps} losses differ'
        for one, other in zip(left.net.parameters(), right.net.parameters(), strict=True):
            assert torch.equal(one, other), 'parameters differ'

    def training_beside_a_service_and_eager_work(self):
        eager, captured, net = Step(), Step(), model()
        x = torch.randn(8, 1024, device='cuda').half()
        with gpushare.Runtime(device='cuda') as runtime, torch.no_grad():
            expected = net(x)
            service = gt.Service(runtime, net, x, name='service')
            alone = self.latencies(service, x, expected, self.seconds / 2)
            service.close()
            with torch.enable_grad():
                training = gt.Training(runtime, captured, state=captured.state)
            began = time.monotonic()
            training.submit(200)
            training.wait(LIMIT_S)
            alone_rate = 200 / (time.monotonic() - began)
            service = gt.Service(runtime, net, x, name='service2', p99_alone_ns=quantile(alone, 0.99),
                                 solo_ns=quantile(alone, 0.5))
            stop, wrong, rounds = threading.Event(), [], [0]
            worker = threading.Thread(target=self.eager_work, args=(stop, wrong, rounds))
            worker.start()
            before = captured.count.item()
            began = time.monotonic()
            feeder_stop = threading.Event()
            feeder = threading.Thread(target=self.feed, args=(training, feeder_stop))
            feeder.start()
            beside = self.latencies(service, x, expected, self.seconds)
            feeder_stop.set()
            feeder.join()
            training.wait(LIMIT_S)
            span = time.monotonic() - began
            stop.set()
            worker.join()
            assert not wrong, f'eager work beside was wrong: {wrong[0]}'
            steps = captured.count.item()
            self.figures.update({
                'p50 alone us': quantile(alone, 0.5) / 1e3, 'p99 alone us': quantile(alone, 0.99) / 1e3,
                'p50 beside us': quantile(beside, 0.5) / 1e3, 'p99 beside us': quantile(beside, 0.99) / 1e3,
                'queries beside': len(beside), 'steps beside': steps - before, 'eager rounds beside': rounds[0],
                'BE of alone': round((steps - before) / span / alone_rate, 3)})
            service.close()
            training.close()
        for _ in range(steps):
            eager()
        self.same(eager, captured, steps)

    @staticmethod
    def latencies(service, x, expected, seconds):
        """Latencies of queries with a pause after each, each checked."""
        found, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic_ns()
            answer = service(x)
            found.append(time.monotonic_ns() - began)
            torch.testing.assert_close(answer, expected, rtol=2e-2, atol=2e-2)
            time.sleep(PAUSE_S)
        return found

    @staticmethod
    def feed(training, stop):
        """Keeps up to eight steps submitted."""
        before = training.submit(4)
        for _ in range(900):
            if stop.is_set():
                return
            after = training.submit(4)
            before[-1].wait_complete(LIMIT_S)
            before = after

    @staticmethod
    def eager_work(stop, wrong, rounds):
        with torch.cuda.stream(torch.cuda.Stream()):
            while not stop.is_set():
                values = torch.arange(100_000, device='cuda', dtype=torch.float64)
                total = (values * 2).sum().item()
                rounds[0] += 1
                if total != 9999900000.0:
                    wrong.append(total)
                time.sleep(0.01)

    def awaits_and_futures(self):
        step = Step()
        with gpushare.Runtime(device='cuda') as runtime, \
                gt.Training(runtime, step, state=step.state) as training:
            async def ask():
                return await asyncio.gather(*(self.awaited(ticket) for ticket in training.submit(100)))

            assert {record.verdict for record in asyncio.run(ask())} == {gpushare.Verdict.OK}
            assert training.submit(1)[0].future().result(30).measured_ns > 0

    @staticmethod
    async def awaited(ticket):
        return await ticket

    def what_cannot_be_captured_is_refused_and_the_gpu_goes_on(self):
        x = torch.randn(8, 64, device='cuda')
        dropout = torch.nn.Dropout(0.5).cuda().train()
        with gpushare.Runtime(device='cuda') as runtime:
            for name, function, words in (('dropout', dropout, 'random numbers'),
                                          ('item', lambda t: t * t.sum().item(), '')):
                try:
                    gt.Service(runtime, function, x, name=name)
                except Exception as error:  # PyTorch and the library raise different ones
                    assert words in str(error), f'{name}: {error}'
                    self.figures[f'{name} says'] = str(error).splitlines()[0][:200]
                else:
                    raise AssertionError(f'{name} was captured')
            with gt.Service(runtime, lambda t: t + 1, x, name='after') as service:
                assert torch.equal(service(x), x + 1)
        torch.cuda.synchronize()

    def the_ten_lines_run(self):
        net, image = convolutions(), torch.randn(1, 3, 64, 64, device='cuda').half()
        step = Step()
        with gpushare.Runtime() as runtime:
            service = gpushare.torch.Service(runtime, net, (image,), p99_bound=1.05)
            training = gpushare.torch.Training(runtime, step, state=step.state)
            tickets = training.submit(100)
            output = service(image)
            tickets[-1].wait(LIMIT_S)
        assert output.shape == (1, 10)
        assert step.count.item() == 100


if __name__ == '__main__':
    sys.exit(main(Checks, __doc__))
