"""examples/control_loop.py, and plans of partitions from Python, on the simulated device."""

import pathlib
import re
import runpy

import pytest

import gpushare

MS = 1_000_000
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / 'examples/control_loop.py'


def test_example_keeps_every_deadline(capsys):
    runpy.run_path(str(EXAMPLE), run_name='__main__')
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('2 partitions of ')
    for line, jobs in zip(lines[1:3], (250, 16), strict=True):
        assert f'{jobs} jobs' in line and ', 0 late;' in line
        longest, bound = (float(number) for number in re.findall(r'([\d.]+) ms', line))
        assert 0 < longest <= bound
    work, wall = (int(number) for number in re.findall(r'(\d+) ms', lines[3]))
    assert work > 0.9 * wall, 'training has its SMs all the time'


def test_a_no_has_its_reason_and_the_plan_before_stays():
    with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL, policy='partitioned') as runtime:
        app = runtime.create_app('control', gpushare.LATENCY_CRITICAL, period_ns=2 * MS, worst_cases=[(8, MS)])
        plan = runtime.plan_partitions(slack_eviction_ns=50_000)
        assert (plan.partitions, plan.partition_sms) == (1, 8)
        heavy = runtime.create_app('heavy', gpushare.LATENCY_CRITICAL, period_ns=MS, worst_cases=[(64, 2 * MS)])
        with pytest.raises(gpushare.ResourceExhaustedError, match="'heavy' takes up to 2050000 ns"):
            runtime.plan_partitions(slack_eviction_ns=50_000)
        assert app.guarantee().partition_sms == 8
        assert heavy.guarantee().partition_sms == 0


def test_a_period_needs_the_policy_and_the_class():
    with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL) as runtime:
        with pytest.raises(gpushare.FailedPreconditionError, match='partitioned'):
            runtime.plan_partitions()
        with pytest.raises(gpushare.InvalidArgumentError, match='period'):
            runtime.create_app('training', gpushare.BEST_EFFORT, period_ns=MS)
        with pytest.raises(gpushare.InvalidArgumentError, match='deadline'):
            runtime.create_app('late', gpushare.LATENCY_CRITICAL, period_ns=MS, deadline_ns=2 * MS)
