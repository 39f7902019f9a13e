#!/usr/bin/env python3
"""Networks compiled by torch.compile as services: confinable, with the same bits in every place, and right.

  compiled_networks_check.py [--out FILE]

Needs torch with Triton, and torchvision for ResNet-50; GPUSHARE_LIBRARY names the library. Prints one line a case and
writes JSON with the figures. Exit code 0: every case passed; 1: one failed; 77: there is no GPU or no PyTorch.
"""

import pathlib
import sys
import time

from harness import main, torch

import gpushare
import gpushare.torch as gt
import gpushare.triton

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / 'benchmarks/matrix'))
import networks

PLACES_MIN = 3
ANSWERS = 50


def gpt2_forward():
    net = networks.Gpt2(512).cuda().half().eval().requires_grad_(False)
    return net, torch.randint(0, 50257, (1, 512), device='cuda')


class Checks:
    def __init__(self, _seconds):
        self.figures = {}

    def resnet50_is_served_compiled(self):
        self._served('resnet50', *networks.SERVICES['resnet50_b1']())

    def bert_is_served_compiled(self):
        self._served('bert', *networks.bert_b1())

    def gpt2_forward_is_served_compiled(self):
        self._served('gpt2', *gpt2_forward())

    @torch.no_grad()
    def _served(self, name, net, x):
        gpushare.triton.enable()
        torch.manual_seed(6)
        began = time.monotonic()
        compiled = torch.compile(net, dynamic=False)
        expected = compiled(x).clone()
        figures = self.figures.setdefault(f'{name} compiled', {'compiled in s': round(time.monotonic() - began, 1)})
        with gpushare.Runtime(device='cuda') as runtime:
            results = self._in_places(runtime, name, compiled, x)
            whole = results[max(results)]
            figures['SMs of places'] = sorted(results)
            figures['places with other bits'] = [
                sms for sms, result in results.items() if not torch.equal(result, whole)]
            with gt.Service(runtime, compiled, x, name=f'{name} service') as service:
                figures['unconfinable'] = service.unconfinable
                answers = [service(x).clone() for _ in range(ANSWERS)]
                figures['answers with other bits'] = sum(not torch.equal(one, answers[0]) for one in answers)
                torch.testing.assert_close(answers[0], expected, rtol=2e-2, atol=2e-2)
        assert len(results) >= PLACES_MIN, f'it was captured in {sorted(results)} SMs'
        assert not figures['unconfinable'], figures['unconfinable']
        assert not figures['places with other bits'], figures['places with other bits']
        assert not figures['answers with other bits'], figures['answers with other bits']

    @staticmethod
    def _in_places(runtime, name, compiled, x):
        """What the network returns in each place, by its SMs. Its kernels are those of the whole device."""
        results = {}

        def capture(stream, sm_count):
            with torch.cuda.stream(torch.cuda.ExternalStream(stream)), torch.no_grad():
                results[sm_count] = compiled(x)

        with runtime.register_kernel(name, capture=capture, segment_ns=-1, measure_places=True):
            torch.cuda.synchronize()
        return {sms: result.clone() for sms, result in results.items()}


if __name__ == '__main__':
    sys.exit(main(Checks, __doc__))
