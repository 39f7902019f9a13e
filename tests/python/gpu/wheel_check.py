#!/usr/bin/env python3
"""The wheel on a GPU: it brings its own library, and a service of PyTorch is served beside a training.

  wheel_check.py [--out FILE] [--seconds S]

Needs torch, and the wheel installed or unpacked on PYTHONPATH; GPUSHARE_LIBRARY must not be set. tools/package_check.sh
runs it. Prints one line a case and writes JSON with the figures. Exit code 0: every case passed; 1: one failed; 77:
there is no GPU or no PyTorch.
"""

import pathlib
import sys

import torch_check
from harness import main, torch

import gpushare
import gpushare.torch as gt

# A query of some 0.3 ms: it reads 1 GB of weights. The bound itself needs more queries than a check has time for.
WIDTH, DEPTH, P99_BOUND, P99_RATIO_MAX = 8192, 8, 1.05, 1.25


class Checks:
    def __init__(self, seconds):
        self.seconds = seconds
        self.figures = {}

    def the_wheel_brings_its_library(self):
        package = pathlib.Path(gpushare.__file__).parent
        assert package in pathlib.Path(gpushare.library_path()).parents, gpushare.library_path()
        self.figures['versions'] = gpushare.versions().splitlines()

    @torch.no_grad()
    def a_service_is_served_beside_a_training(self):
        net, step = torch_check.model(WIDTH, DEPTH), torch_check.Step()
        x = torch.randn(8, WIDTH, device='cuda').half()
        expected = net(x)
        with gpushare.Runtime(device='cuda') as runtime, gt.Service(runtime, net, x, p99_bound=P99_BOUND) as service:
            alone = self._p99_ns(service, x, expected)
            service.app.update(p99_bound=P99_BOUND, p99_alone_ns=alone)
            with torch.enable_grad():
                training = gt.Training(runtime, step, state=step.state)
            with training:  # a wrong answer closes it too, before its service and runtime
                training.start(outstanding=4)
                beside = self._p99_ns(service, x, expected)
                training.stop(torch_check.LIMIT_S)
                steps, ratio = training.steps_done, beside / alone
                evictions = training.app.stats().evictions
        self.figures.update({
            'p99 alone us': alone / 1e3, 'p99 beside us': beside / 1e3, 'p99 over alone': round(ratio, 3),
            'training steps beside': steps, 'evictions': evictions})
        assert steps > 0, 'the training had no step'
        assert ratio <= P99_RATIO_MAX, f'the p99 beside is {ratio:.2f} of the p99 alone'

    def _p99_ns(self, service, x, expected):
        return torch_check.quantile(torch_check.Checks.latencies(service, x, expected, self.seconds / 2), 0.99)


if __name__ == '__main__':
    sys.exit(main(Checks, __doc__))
