#!/usr/bin/env python3
"""BE jobs of gpushare.torch on a GPU: dropout, batches, learning rates and inference are those of PyTorch alone.

  be_jobs_check.py [--out FILE] [--seconds S]

Losses are compared bit by bit with those of an eager loop with the same seeds. Needs torch; GPUSHARE_LIBRARY names the
library. Prints one line a case and writes JSON with the figures. Takes about a minute.
Exit code 0: every case passed; 1: one failed; 77: there is no GPU or no PyTorch.
"""

import itertools
import sys
import threading
import time

from harness import main, torch  # exits with 77 where nothing can be checked
from torch_check import LIMIT_S, PAUSE_S, model, quantile

import gpushare
import gpushare.torch as gt

WIDTH, ROWS = 1024, 512
STEPS = 60


def on_gpu(x, y):
    return x.cuda(), y.cuda()


def batch(number, pinned=False):
    generator = torch.Generator().manual_seed(100 + number)
    given = torch.randn(ROWS, WIDTH, generator=generator), torch.randn(ROWS, 16, generator=generator)
    return tuple(tensor.pin_memory() for tensor in given) if pinned else given


class Job:
    """A training step on a batch, with Adam. Each loss is noted at the step's own number."""

    def __init__(self, dropout=0.0, noise=None, rate=1e-3, scaled=False):
        torch.manual_seed(3)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Dropout(dropout),
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.Dropout(dropout),
            torch.nn.Linear(WIDTH, 16)).cuda()
        self.noise = noise
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=rate, capturable=True, fused=scaled)
        # A scale that overflows at first, and grows every second step.
        self.scaler = torch.amp.GradScaler('cuda', init_scale=2.0**40, growth_interval=2, enabled=scaled)
        self.losses = torch.zeros(1 << 16, device='cuda')
        self.count = torch.zeros((), dtype=torch.int64, device='cuda')

    def __call__(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        if self.noise is not None:
            x = x + 0.1 * torch.randn(x.shape, device='cuda', generator=self.noise)
        with torch.autocast('cuda', dtype=torch.float16 if self.scaler.is_enabled() else torch.bfloat16):
            loss = torch.nn.functional.mse_loss(self.net(x).float(), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.losses.scatter_(0, self.count.reshape(1), loss.detach().reshape(1))
        self.count += 1

    @property
    def state(self):
        return (self.net, self.optimizer, self.scaler, self.losses, self.count)


def same(eager, captured, steps=STEPS):
    assert captured.count.item() == steps, f'{captured.count.item()} steps ran'
    differ = (eager.losses[:steps].view(torch.int32) != captured.losses[:steps].view(torch.int32)).nonzero().flatten()
    assert not len(differ), f'{len(differ)} of {steps} losses differ, first that of step {differ[0].item()}'
    for one, other in zip(eager.net.parameters(), captured.net.parameters(), strict=True):
        assert torch.equal(one, other), 'parameters differ'


class Checks:
    def __init__(self, seconds):
        self.seconds = seconds
        self.figures = {}

    def dropout_and_noise_are_those_of_the_eager_loop(self):
        noise, own = torch.Generator('cuda').manual_seed(2**63 + 9), torch.Generator('cuda').manual_seed(2**63 + 9)
        eager, captured = Job(0.3, noise), Job(0.3, own)
        x, y = on_gpu(*batch(0))
        torch.cuda.manual_seed(11)
        for _ in range(STEPS):
            eager(x, y)
        after = [torch.cuda.default_generators[0].get_offset(), noise.get_offset()]
        torch.cuda.manual_seed(11)
        with gpushare.Runtime(device='cuda') as runtime:
            with gt.Training(runtime, captured, inputs=(x, y), state=captured.state, generators=[own]) as training:
                offset = torch.cuda.default_generators[0].get_offset()
                assert offset == 0, f'the generator of the caller moved to {offset}'
                training.submit(STEPS)
                training.wait(LIMIT_S)
                training.sync_generators()
                self.figures['dropout unconfinable'] = training.unconfinable
            same(eager, captured)
            assert [torch.cuda.default_generators[0].get_offset(), own.get_offset()] == after
        self.figures['dropout losses that differ from the first'] = (
            captured.losses[1:STEPS] != captured.losses[0]).sum().item()

    def each_queued_step_reads_its_batch(self):
        pages = {'pinned': [batch(number, True) for number in range(STEPS)],
                 'pageable': [batch(number) for number in range(STEPS)],
                 'on the GPU': [on_gpu(*batch(number)) for number in range(STEPS)]}
        eager = Job()
        for given in pages['on the GPU']:
            eager(*given)
        with gpushare.Runtime(device='cuda') as runtime:
            for kind, batches in pages.items():
                captured = Job()
                with gt.Training(runtime, captured, inputs=batches[0], state=captured.state) as training:
                    for given in batches:
                        training.submit(batch=given)
                    training.wait(LIMIT_S)
                    same(eager, captured)
                    self.figures[f'rate with batches, {kind}, over steps without'] = self.rate(training, batches)

    @staticmethod
    def rate(training, batches):
        began = time.monotonic()
        training.submit(len(batches))
        training.wait(LIMIT_S)
        plain = time.monotonic() - began
        began = time.monotonic()
        for given in batches:
            training.submit(batch=given)
        training.wait(LIMIT_S)
        return round(plain / (time.monotonic() - began), 3)

    def a_data_loader_feeds_a_training(self):
        data = [batch(number) for number in range(STEPS)]
        rows = torch.utils.data.TensorDataset(torch.cat([x for x, _ in data]), torch.cat([y for _, y in data]))
        loader = torch.utils.data.DataLoader(rows, batch_size=ROWS, pin_memory=True, drop_last=True)
        eager, captured = Job(), Job()
        for given in data:
            eager(*on_gpu(*given))
        with gpushare.Runtime(device='cuda') as runtime, \
                gt.Training(runtime, captured, inputs=data[0], state=captured.state) as training:
            assert training.feed(loader) == STEPS
            assert training.steps_done == STEPS
            same(eager, captured)

    def a_learning_rate_is_written_between_steps(self):
        schedule = [1e-3 / (1 + number // 5) for number in range(STEPS)]
        x, y = on_gpu(*batch(0))
        eager, captured = (Job(rate=torch.tensor(0.0, device='cuda')) for _ in range(2))
        for rate in schedule:
            eager.optimizer.param_groups[0]['lr'].fill_(rate)
            eager(x, y)
        with gpushare.Runtime(device='cuda') as runtime, \
                gt.Training(runtime, captured, inputs=(x, y), state=captured.state) as training:
            for rate in schedule:
                training.write(captured.optimizer.param_groups[0]['lr'], rate)
                training.submit()
            training.wait(LIMIT_S)
            same(eager, captured)

    def a_gradient_scaler_works_in_the_graph(self):
        x, y = on_gpu(*batch(0))
        eager, captured = Job(scaled=True), Job(scaled=True)
        for _ in range(STEPS):
            eager(x, y)
        with gpushare.Runtime(device='cuda') as runtime, \
                gt.Training(runtime, captured, inputs=(x, y), state=captured.state) as training:
            training.submit(STEPS)
            training.wait(LIMIT_S)
            same(eager, captured)
        assert eager.scaler.get_scale() == captured.scaler.get_scale()
        self.figures['scale after the steps'] = captured.scaler.get_scale()

    def started_training_with_dropout_beside_a_service(self):
        eager, captured, net = Job(0.3), Job(0.3), model()
        data = [on_gpu(*batch(number)) for number in range(8)]
        query = torch.randn(8, 1024, device='cuda').half()
        torch.cuda.manual_seed(11)
        with gpushare.Runtime(device='cuda') as runtime:
            training = gt.Training(runtime, captured, inputs=data[0], state=captured.state)
            before = training.submit(200)
            before[0].wait(LIMIT_S)
            began = time.monotonic()
            training.wait(LIMIT_S)
            alone = 199 / (time.monotonic() - began)
            began, used = time.monotonic(), time.process_time()
            training.start(outstanding=4)
            time.sleep(1)
            training.stop(LIMIT_S)
            started = training.steps_done
            self.figures['started: steps a second over those of submit(200)'] = round(
                started / (time.monotonic() - began) / alone, 3)
            self.figures['started: CPU us a step'] = round((time.process_time() - used) / started * 1e6, 1)
            with torch.no_grad():
                service = gt.Service(runtime, net, query, name='service')
            heard = []
            training.on_step(heard.append, every=50)
            training.start(outstanding=4, batches=itertools.cycle(data))
            latencies, until = [], time.monotonic() + self.seconds
            while time.monotonic() < until:
                sent = time.monotonic_ns()
                service(query)
                latencies.append(time.monotonic_ns() - sent)
                time.sleep(PAUSE_S)
            training.stop(LIMIT_S)
            steps = captured.count.item()
            assert steps == 200 + training.steps_done, f'{steps} steps ran, {training.steps_done} are counted'
            assert heard == [number for number in range(started + 1, training.steps_done + 1) if number % 50 == 0]
            self.figures['beside a service: steps, p99 us'] = [
                steps - 200 - started, round(quantile(latencies, 0.99) / 1e3)]
            service.close()
            training.close()
        torch.cuda.manual_seed(11)
        for number in range(steps):
            # The first batch was the example's; the last one that was loaded stayed in place.
            eager(*data[0 if number < 200 + started else (number - 200 - started) % 8])
        same(eager, captured, steps)

    def results_of_batch_inference_are_those_of_the_function(self):
        net = model()
        host = [torch.randn(64, 1024, generator=torch.Generator().manual_seed(number)).half() for number in range(50)]
        with torch.no_grad():
            expected = [net(x.cuda()) for x in host]
        with gpushare.Runtime(device='cuda') as runtime, gt.BestEffort(runtime, net, host[0]) as work, \
                gt.BestEffort(runtime, lambda x: (x[:, :16], net(x)), host[0].cuda(), to_cpu=True) as both:
            for sources in (host, [x.pin_memory() for x in host], [x.cuda() for x in host]):
                for result, wanted in zip([work.submit(x) for x in sources], expected, strict=True):
                    assert torch.equal(result.wait(LIMIT_S), wanted)
            for result, x, wanted in zip([both.submit(x) for x in host], host, expected, strict=True):
                part, whole = result.wait(LIMIT_S)
                assert whole.is_pinned()
                assert torch.equal(part, x[:, :16])
                assert torch.equal(whole, wanted.cpu())

    def a_memory_pool_bounds_be_work_alone(self):
        def large(x, y):
            return torch.empty(1 << 30, dtype=torch.uint8, device='cuda')

        def large_in_the_capture(x, y):
            return large(x, y) if torch.cuda.is_current_stream_capturing() else None

        given = batch(0)
        eager = Job()
        for _ in range(STEPS):
            eager(*on_gpu(*given))
        pool = gt.MemoryPool(1 << 30)
        with pool.use():
            captured = Job()
        before = torch.cuda.memory_reserved() - pool.used_bytes
        with gpushare.Runtime(device='cuda') as runtime, \
                gt.Training(runtime, captured, inputs=given, state=captured.state, pool=pool) as training:
            for step in (large, large_in_the_capture):
                try:
                    gt.Training(runtime, step, inputs=given, pool=pool)
                    raise AssertionError(f'{step.__name__} fits into the pool')
                except gpushare.ResourceExhaustedError as error:
                    assert 'A MemoryPool of' in str(error), error
                    self.figures[f'{step.__name__} says'] = str(error).splitlines()[0][:160]
            assert torch.ones(1 << 30, dtype=torch.uint8, device='cuda').sum().item() == 1 << 30  # beside the pool
            training.submit(STEPS)
            training.wait(LIMIT_S)
            same(eager, captured)
            assert 0 < pool.used_bytes <= pool.limit_bytes
            self.figures['pool: MiB taken, MiB of the training outside it'] = [
                pool.used_bytes >> 20, (torch.cuda.memory_reserved() - pool.used_bytes - before) >> 20]

    def trainings_of_a_pool_use_no_memory_of_each_other(self):
        """Both are captured on the same stream, because PyTorch hands out 32 in turns, and their steps run at once."""
        given, eager = batch(0), Job()
        for _ in range(STEPS):
            eager(*on_gpu(*given))
        pool, jobs, trainings = gt.MemoryPool(2 << 30), [], []
        with gpushare.Runtime(device='cuda') as runtime:
            for _ in range(2):
                with pool.use():
                    jobs.append(Job())
                trainings.append(gt.Training(runtime, jobs[-1], inputs=given, state=jobs[-1].state, pool=pool))
                for _ in range(31):
                    torch.cuda.Stream()
            for _ in range(STEPS):
                for training in trainings:
                    training.submit()
            for job, training in zip(jobs, trainings, strict=True):
                training.wait(LIMIT_S)
                same(eager, job)

    def failures_are_reported_and_nothing_is_left_running(self):
        captured = Job()
        with gpushare.Runtime(device='cuda') as runtime:
            training = gt.Training(runtime, captured, inputs=batch(0), state=captured.state)

            def loader():
                yield batch(0)
                raise KeyError('mine')

            training.start(batches=loader())
            try:
                while True:
                    training.wait(LIMIT_S)
                    time.sleep(0.01)
            except KeyError:
                pass
            try:
                training.stop()
                raise AssertionError('stop() did not raise')
            except KeyError:
                pass
            training.start()
            training.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith('gpushare-training')]


if __name__ == '__main__':
    sys.exit(main(Checks, __doc__))
