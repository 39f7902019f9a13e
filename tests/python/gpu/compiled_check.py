#!/usr/bin/env python3
"""Kernels of Triton and of torch.compile on a GPU: they run on the SMs of their place, with the same bits.

  compiled_check.py [--out FILE]

Needs torch and triton; GPUSHARE_LIBRARY names the library. Prints one line a case and writes JSON with the figures.
Exit code 0: every case passed; 1: one failed; 77: there is no GPU, no PyTorch or no Triton.
"""

import argparse
import json
import pathlib
import sys
import traceback

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    print('skipped: PyTorch or Triton is not installed')
    sys.exit(77)
if not torch.cuda.is_available():
    print('skipped: PyTorch sees no GPU')
    sys.exit(77)

import gpushare
import gpushare.torch as gt
import gpushare.triton

LIMIT_S = 60  # of one wait
ROWS, COLUMNS = 4096, 1024


@triton.jit
def softmax_kernel(out, sms, x, columns, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float('inf'))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=at < columns)
    sm = tl.inline_asm_elementwise('mov.u32 $0, %smid;', '=r', [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(sms + row, sm)


@triton.jit
def matmul_kernel(c, a, b, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    rows = tl.program_id(0) * bm + tl.arange(0, bm)
    columns = tl.program_id(1) * bn + tl.arange(0, bn)
    total = tl.zeros((bm, bn), dtype=tl.float32)
    for start in range(0, k, bk):
        inner = start + tl.arange(0, bk)
        total = tl.dot(tl.load(a + rows[:, None] * k + inner[None, :]),
                       tl.load(b + inner[:, None] * n + columns[None, :]), total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16))


def product(a, b):
    c = torch.empty(a.shape[0], b.shape[1], dtype=torch.bfloat16, device='cuda')
    matmul_kernel[(a.shape[0] // 128, b.shape[1] // 128)](
        c, a, b, b.shape[1], a.shape[1], bm=128, bn=128, bk=64, num_warps=8, num_stages=3)
    return c


def inputs():
    torch.manual_seed(1)
    return (torch.randn(ROWS, COLUMNS, device='cuda'), torch.randn(2048, 1024, device='cuda').bfloat16(),
            torch.randn(1024, 2048, device='cuda').bfloat16())


def network():
    torch.manual_seed(2)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, activation='gelu', dropout=0.0)
    return torch.nn.Sequential(layer, torch.nn.LayerNorm(512), torch.nn.GELU()).cuda().half().eval()


def captured_everywhere(runtime, name, fn):
    """What fn returns in each place, by its SMs: the registration captures it there and runs the capture."""
    results = {}
    fn()  # loads its kernels
    torch.cuda.synchronize()

    def capture(stream, sm_count):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)), torch.no_grad():
            results[sm_count] = fn()
    with runtime.register_kernel(name, capture=capture, segment_ns=-1, measure_places=True):
        torch.cuda.synchronize()
    return results


def softmax(x):
    """The softmax, and the SMs that its rows ran on."""
    out, sms = torch.empty_like(x), torch.full((x.shape[0],), -1, dtype=torch.int32, device='cuda')
    softmax_kernel[(x.shape[0],)](out, sms, x, x.shape[1], block=COLUMNS)
    return out, sms


def without_images(_figures):
    """A function of a module without its image is refused in a place, and the error names the kernel."""
    x, _, _ = inputs()
    with gpushare.Runtime() as runtime:
        try:
            captured_everywhere(runtime, 'unknown', lambda: softmax(x))
        except gpushare.UnimplementedError as error:
            assert 'softmax_kernel' in str(error) and 'no image' in str(error), str(error)
            return
        raise AssertionError('it was registered')


def same_in_places(name, fn, figures):
    """The results in each place, which must be those of the whole device."""
    with gpushare.Runtime() as runtime:
        results = captured_everywhere(runtime, name, fn)
    expected = results[max(results)]
    differ = [sms for sms, result in results.items() if not torch.equal(result, expected)]
    figures['places'] = len(results)
    assert len(results) > 3 and not differ, f'the results in places of {differ} SMs differ'
    assert torch.equal(expected, fn()), 'the results differ from those of the function'


def functions_stay_in_their_place(figures):
    x, _, _ = inputs()
    with gpushare.Runtime() as runtime:
        results = captured_everywhere(runtime, 'softmax', lambda: softmax(x))
    figures['sms'] = {place: len(sms.unique()) for place, (_, sms) in results.items()}
    whole = max(figures['sms'])
    assert figures['sms'][whole] == whole, figures['sms']
    for place, sms in figures['sms'].items():
        assert sms <= place, f'{sms} SMs in a place of {place}'
        assert torch.equal(results[place][0], results[whole][0]), f'a place of {place} SMs has other bits'


def triton_has_the_same_bits(figures):
    """A product whose kernel needs more than 48 KB of shared memory."""
    _, a, b = inputs()
    same_in_places('triton', lambda: product(a, b), figures)


def compiled_has_the_same_bits(figures):
    torch.manual_seed(3)
    net, x = network(), torch.randn(16, 128, 512, device='cuda').half()
    compiled = torch.compile(net, dynamic=False)
    with torch.no_grad():
        before = gpushare.triton.known_functions()
        compiled(x)
        figures['functions'] = gpushare.triton.known_functions() - before
        assert figures['functions'] > 0, 'torch.compile loaded no function that gpushare has seen'
        same_in_places('compiled', lambda: compiled(x), figures)


def a_service_of_compiled_code_answers(figures):
    net, x = network(), torch.randn(16, 128, 512, device='cuda').half()
    compiled = torch.compile(net, dynamic=False)
    with torch.no_grad(), gpushare.Runtime() as runtime:
        expected = compiled(x)
        service = gt.Service(runtime, compiled, (x,), name='compiled', measure=False)
        assert not service.unconfinable, service.unconfinable
        figures['equal'] = sum(torch.equal(service(x), expected) for _ in range(20))
        assert figures['equal'] == 20


def compiled_step_in_segments(figures):
    def make():
        torch.manual_seed(4)
        net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.LayerNorm(4096),
                                  torch.nn.Linear(4096, 1024)).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
        x, y = torch.randn(2048, 1024, device='cuda'), torch.randn(2048, 1024, device='cuda')
        loss_of = torch.compile(lambda x, y: torch.nn.functional.mse_loss(net(x), y), dynamic=False)

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            return loss.detach()
        return net, optimizer, step

    _, _, step = make()
    alone = [step().item() for _ in range(20)]
    net, optimizer, step = make()
    with gpushare.Runtime() as runtime:
        training = gt.Training(runtime, step, state=(net, optimizer))
        figures['unconfinable'] = training.unconfinable
        assert not training.unconfinable, training.unconfinable
        losses = []
        for _ in range(20):
            training.submit(1)[0].wait(LIMIT_S)
            losses.append(training.outputs.item())
        figures['alone'], figures['losses'] = alone[-1], losses[-1]
        assert losses == alone, f'{losses} and alone {alone}'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', type=pathlib.Path)
    options = parser.parse_args()
    figures, failed = {}, 0
    for case in (without_images, functions_stay_in_their_place, triton_has_the_same_bits, compiled_has_the_same_bits,
                 a_service_of_compiled_code_answers, compiled_step_in_segments):
        if case is functions_stay_in_their_place:
            gpushare.triton.enable()
            softmax_kernel.device_caches.clear()  # loads them again, where they are seen
            matmul_kernel.device_caches.clear()
        figures[case.__name__] = {}
        try:
            case(figures[case.__name__])
            print(f'passed  {case.__name__} {figures[case.__name__]}', flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f'FAILED  {case.__name__}', flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(figures, indent=1) + '\n')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
