"""gpushare.ptx: what can be made of a text, why not, and a kernel of PTX on the simulated device."""

import re

import pytest

import gpushare
from gpushare import ptx

HEADER = '.version 8.0\n.target sm_90a\n.address_size 64\n'
NOTHING = '.visible .entry nothing()\n{\n  ret;\n}\n'
SPECIALISED = '.visible .entry specialised()\n{\n  setmaxnreg.dec.sync.aligned.u32 40;\n  ret;\n}\n'


def test_a_kernel_with_twins_makes_way_for_queries(polled):
    service = polled.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05, p99_alone_ns=2_000_000)
    training = polled.create_app('training', gpushare.BEST_EFFORT)
    chain = polled.register_kernel('chain1')
    kernel = polled.register_kernel('sincos_27us', ptx=ptx.Ptx(HEADER + NOTHING))
    info = polled.kernel_info('sincos_27us')
    assert info.evictable
    assert info.worker_refusal == ''
    assert info.slice_refusal == ''
    step = training.submit(kernel, block_tasks=100_000)
    polled.poll_until(polled.now_ns() + 1_000_000)  # a third of what it takes alone
    service.submit(chain).wait()
    assert step.wait().evictions > 0


def test_a_refused_kernel_says_why_and_runs_whole(training, runtime):
    code = ptx.Ptx(HEADER + NOTHING + SPECIALISED, 'specialised')
    refusal = code.refusal(gpushare.Form.WORKERS)
    assert refusal is not None
    assert refusal.line == 10
    assert "'specialised'" in refusal.reason
    assert 'setmaxnreg' in refusal.reason
    kernel = runtime.register_kernel('sincos_27us', ptx=code)
    info = runtime.kernel_info('sincos_27us')
    assert not info.evictable
    assert (info.worker_refusal, info.worker_refusal_line) == (refusal.reason, 10)
    assert training.submit(kernel, block_tasks=100).wait().evictions == 0
    with pytest.raises(gpushare.UnimplementedError, match='line 10'):
        code.transform()
    kernel.close()
    with pytest.raises(gpushare.UnimplementedError, match='line 10'):
        runtime.register_kernel('sincos_27us', ptx=code, evictable=gpushare.Choice.YES)


def test_text_goes_in_and_text_comes_out():
    text = HEADER + NOTHING + SPECIALISED
    assert ptx.entries(text) == ['nothing', 'specialised']
    code = ptx.Ptx(text.encode(), 'nothing')
    assert code.refusal(gpushare.Form.SLICE) is None
    assert NOTHING in code.transform()
    only_slice = ptx.Ptx(text, 'nothing', gpushare.enums.PtxFormBit.SLICE)
    assert len(only_slice.transform()) < len(code.transform())


def test_bad_input_is_named():
    with pytest.raises(gpushare.NotFoundError, match="'none'"):
        ptx.Ptx(HEADER + NOTHING, 'none').transform()
    with pytest.raises(gpushare.NotFoundError, match='entry is null'):
        ptx.Ptx(HEADER + NOTHING + SPECIALISED).transform()
    with pytest.raises(gpushare.InvalidArgumentError, match=r'ptx_code\.text'):
        ptx.Ptx('').transform()


@pytest.mark.parametrize('text', [5, [1, 2], None])
def test_a_text_of_a_wrong_type_is_refused(text):
    with pytest.raises(TypeError, match=rf'text is {re.escape(repr(text))}, and it must be a string or bytes\.'):
        ptx.Ptx(text)


def test_an_argument_of_a_wrong_type_is_named(runtime):
    with pytest.raises(TypeError, match="forms is 'workers', and it must be an integer"):
        ptx.Ptx(NOTHING, forms='workers')
    with pytest.raises(TypeError, match="form is 'workers', and it must be a Form"):
        ptx.Ptx(HEADER + NOTHING).refusal('workers')
    with pytest.raises(TypeError, match=r"ptx is 'text', and it must be a gpushare\.ptx\.Ptx"):
        runtime.register_kernel('sincos_27us', ptx='text')
