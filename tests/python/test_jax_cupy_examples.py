"""examples/jax and examples/cupy against stubs with the names that they use, on the simulated device.

Where JAX is installed, its example runs as it is: JAX on the CPU, its handler built against JAX's own headers.
"""

import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import types

import pytest

import gpushare

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'examples'


def module(monkeypatch, name, **names):
    made = types.ModuleType(name)
    vars(made).update(names)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def example(monkeypatch, folder, name):
    monkeypatch.syspath_prepend(str(EXAMPLES / folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


# --- JAX ---


@pytest.mark.skipif(importlib.util.find_spec('jax') is None, reason='JAX is not installed')
def test_the_example_of_jax_runs_with_jax_itself():
    done = subprocess.run([sys.executable, EXAMPLES / 'jax/jax_ffi.py', '--device', 'sim', '--calls', '10'],
                          env={**os.environ, 'JAX_PLATFORMS': 'cpu'}, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert '10 of 10 calls are complete queries, 0 results differ' in done.stdout


@pytest.fixture
def jax_ffi(monkeypatch):
    """The example, with a JAX that notes what it is asked."""
    noted = []
    ffi = types.SimpleNamespace(
        include_dir=lambda: '/jax/include', pycapsule=lambda function: ('capsule', function),
        register_ffi_target=lambda name, function, platform: noted.append((name, function[0], platform)),
        ffi_call=lambda name, result, has_side_effect: lambda x, factor: noted.append((name, result, factor)) or x)
    numpy = module(monkeypatch, 'jax.numpy', float32='float32')
    module(monkeypatch, 'numpy', float32=float)
    module(monkeypatch, 'jax', ffi=ffi, numpy=numpy, Array=object,
           ShapeDtypeStruct=lambda shape, dtype: ('array', shape, dtype))
    yield example(monkeypatch, 'jax', 'jax_ffi'), noted
    del sys.modules['jax_ffi']


def functions(opened=0, completed=(0, 2)):
    counts = iter(completed)
    made = types.SimpleNamespace(example_scale_cpu=1, example_scale_cuda=2, example_close=lambda: None,
                                 gpushare_last_error_message=lambda: b'No device.')
    made.example_completed = lambda: next(counts)
    made.example_open = lambda device, bound: opened
    for name in ('example_completed', 'example_open', 'gpushare_last_error_message'):
        kept = getattr(made, name)
        setattr(made, name, type('Function', (), {'__call__': lambda _, *given, kept=kept: kept(*given)})())
    return made


def test_a_handler_is_registered_for_its_platform_and_called_by_its_name(jax_ffi, monkeypatch):
    program, noted = jax_ffi
    monkeypatch.setattr(program.ctypes, 'CDLL', lambda path: functions())
    with program.Handler('handler.so', 'cuda', 'cuda', 1.05) as handler:
        x = types.SimpleNamespace(shape=(3,), dtype='float32')
        assert handler.scale(x, 2) is x
        assert handler.completed(2) == 2
    assert noted == [('example_scale_cuda', 'capsule', 'CUDA'), ('example_scale_cuda', ('array', (3,), 'float32'), 2.0)]
    monkeypatch.setattr(program.ctypes, 'CDLL', lambda path: functions(opened=-1))
    with pytest.raises(RuntimeError, match='No device'):
        program.Handler('handler.so', 'cpu', 'sim', 1.05)


def test_the_handler_is_built_with_the_headers_of_jax_and_of_gpushare(jax_ffi, monkeypatch, tmp_path):
    program, _ = jax_ffi
    commands = []
    monkeypatch.setattr(program.subprocess, 'run', lambda command, check: commands.append(command))
    for platform in ('cpu', 'cuda'):
        (tmp_path / platform).mkdir()
        program.built(platform, tmp_path / platform, '/lib/libgpushare.so.1')
        assert (tmp_path / platform / 'gpushare/gpushare.h').exists()
    assert [command[0] for command in commands] == ['g++', 'nvcc']
    assert all('/jax/include' in command and '/lib/libgpushare.so.1' in command for command in commands)


def test_every_function_that_the_program_calls_is_in_the_handler(jax_ffi):
    code = (EXAMPLES / 'jax/handler.cc').read_text(encoding='utf-8')
    for name in ('example_open(', 'example_completed(', 'example_close(', *jax_ffi[0].TARGETS.values()):
        assert name in code


# --- CuPy ---


class Runtime(gpushare.Runtime):
    """Registers a simulated graph for each graph."""

    registered = []

    def __init__(self):
        super().__init__(device='sim')
        Runtime.registered.clear()

    def register_kernel(self, name, **options):
        Runtime.registered.append((name, options))
        return super().register_kernel({'query': 'resnet50_b1', 'step': 'bert_b1'}[name])


class Array(list):
    @property
    def size(self):
        return len(self)

    def __truediv__(self, number):
        return Array(one / number for one in self)

    def __eq__(self, other):
        return types.SimpleNamespace(all=lambda: list(self) == list(other))

    def copy(self):
        return Array(self)


class Stream:
    ptr = 77

    def __init__(self, non_blocking):
        assert non_blocking

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def synchronize(self):
        pass


@pytest.fixture
def cupy_capture(monkeypatch):
    """The example, with a CuPy whose kernels add their arguments. `calls` notes captures and launches in order."""
    calls, graphs = [], iter((0x700, 0x701))

    def kernel(code, name):
        assert f'void {name}(' in code

        def launch(grid, block, arguments):
            calls.append('launch')
            given, result, a, b, count = arguments
            assert grid[0] * block[0] >= count == len(given)
            result[:] = [a * one + b for one in given]

        return launch

    runtime = types.SimpleNamespace(
        streamBeginCapture=lambda stream: calls.append(('begin', stream)),
        streamEndCapture=lambda stream: calls.append(('end', stream)) or next(graphs),
        graphDestroy=lambda graph: calls.append(('destroy', graph)), deviceSynchronize=lambda: None)
    module(monkeypatch, 'cupy', RawKernel=kernel, float32=float, uint64=int, zeros_like=lambda x: Array([0.0] * len(x)),
           arange=lambda size, dtype: Array(map(float, range(size))),
           cuda=types.SimpleNamespace(runtime=runtime, Stream=Stream))
    monkeypatch.setattr(gpushare, 'Runtime', Runtime)
    program = example(monkeypatch, 'cupy', 'cupy_capture')
    monkeypatch.setattr(program, 'SIZE', 8)
    monkeypatch.setattr(program, 'JOB_SIZE', 16)
    yield program, calls
    del sys.modules['cupy_capture']


def test_the_work_of_cupy_runs_as_a_query_and_as_a_step(cupy_capture, monkeypatch, capsys):
    program, calls = cupy_capture
    monkeypatch.setattr(sys, 'argv', ['cupy_capture.py', '--queries', '20'])
    assert program.main() == 0
    alone, beside, job, results = capsys.readouterr().out.splitlines()
    assert alone.startswith('alone: p50')
    assert beside.startswith('beside the job: p50')
    assert float(job.split()[1]) > 0
    assert results == 'results: those of plain CuPy'
    first = calls.index(('begin', 77))
    assert first == program.LAYERS  # it ran once before the capture
    assert calls[first + 1:first + 1 + program.LAYERS] == ['launch'] * program.LAYERS
    assert calls[first + 1 + program.LAYERS] == ('end', 77)
    assert [call for call in calls if call[0] == 'destroy'] == [('destroy', 0x700), ('destroy', 0x701)]
    (query, options), (step, others) = Runtime.registered
    assert (query, options['graph'], options['segment_ns']) == ('query', 0x700, -1)
    assert (step, others['graph'], 'segment_ns' in others) == ('step', 0x701, False)
    assert options['confinable'] == others['confinable'] == gpushare.Choice.NO


def test_a_result_that_is_another_one_fails(cupy_capture):
    program, _ = cupy_capture
    network = program.Network(8, 2)
    network()
    assert program.same(network)
    network.y[3] += 1
    assert not program.same(network)
