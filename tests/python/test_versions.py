"""show_versions says what a report of a fault needs."""

import os
import subprocess
import sys

import pytest

import gpushare


def test_versions_name_the_library_the_device_and_the_environment(monkeypatch, capsys):
    monkeypatch.setenv('GPUSHARE_DEVICE', 'sim')
    monkeypatch.setenv('GPUSHARE_POLICY', 'fifo')
    gpushare.show_versions()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f'gpushare: {gpushare.version()} (C ABI {gpushare.library().gpushare_abi_version()})'
    assert f'library: {gpushare.library_path()}' in lines
    assert 'device: sim, 132 SMs, SIMULATED, in virtual time' in lines
    assert not [line for line in lines if line.startswith('warning: ')]  # of virtual time, in which nothing runs
    assert 'policy: fifo' in lines
    assert 'environment: GPUSHARE_POLICY=fifo' in lines


def test_versions_replace_no_trace(monkeypatch, tmp_path):
    trace = tmp_path / 'run.pftrace'
    trace.write_text("the user's")
    monkeypatch.setenv('GPUSHARE_DEVICE', 'sim')
    monkeypatch.setenv('GPUSHARE_TRACE', str(trace))
    assert f'environment: GPUSHARE_TRACE={trace}' in gpushare.versions().splitlines()
    assert trace.read_text() == "the user's"


def test_a_device_that_does_not_open_is_a_line_and_no_exception(monkeypatch):
    monkeypatch.setenv('GPUSHARE_POLICY', 'no_such_policy')
    line = next(line for line in gpushare.versions().splitlines() if line.startswith('device: '))
    assert line.startswith('device: none opens: ')
    assert 'GPUSHARE_POLICY in the environment' in line


@pytest.mark.parametrize('level', ['info', 'warning'])
def test_the_log_says_what_runs_if_asked(level):
    program = ('import gpushare\n'
               "with gpushare.Runtime(device='sim') as runtime:\n"
               "    runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05, p99_alone_ns=2_000_000)\n")
    said = subprocess.run([sys.executable, '-c', program], check=True, text=True, capture_output=True, timeout=60,
                          env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path), 'GPUSHARE_LOG': level}).stderr
    assert ("gpushare: info: app 'service' is latency-critical: p99 at most 1.05 of alone, p99 alone 2 ms."
            in said.splitlines()) == (level == 'info')


def test_the_package_and_its_library_state_one_version():
    assert gpushare.__version__ == gpushare.version()
